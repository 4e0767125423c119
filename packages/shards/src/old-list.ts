import { RecordDamagedError } from 'incumbent';
import { sleep } from 'incumbent/internal';
import type { Context } from './context.ts';
import { SeenSlot } from './seen-slot.ts';

/**
 * Whether the processes with another list are gone. It takes up to a lease to be sure of one that has
 * crashed.
 * @returns false as soon as one of them shows that it lives
 */
export async function isAbandoned<Shard>(
  context: Context<Shard>,
  signal: AbortSignal,
): Promise<boolean> {
  const { clock, timing, names } = context.options;
  const head = await context.readHead(signal);
  const slots = Array.from({ length: head?.slots ?? 0 }, (_, i) => {
    const name = context.slotName(i + 1);
    return new SeenSlot(i + 1, context.slot(i + 1), context.scope(name));
  });
  const nonces = new Map<number, string>();
  for (let look = 1; ; look += 1) {
    const readings = await context.readSlots(slots.length, signal);
    let isHeld = false;
    for (const [i, reading] of readings.entries()) {
      const slot = slots[i] as SeenSlot;
      try {
        if (reading instanceof Error) throw reading;
        slot.learn(reading, look);
      } catch (error) {
        if (!(error instanceof RecordDamagedError)) throw error;
        // Its holder cannot confirm any more.
        slot.spoil(error, look, undefined);
        isHeld ||= slot.spoiltMs < timing.leaseMs;
        continue;
      }
      const { record, state } = slot;
      if (record?.holding === undefined || slot.isOver) continue;
      // A process with this list may be waiting, too. It holds no slot yet.
      if (state !== undefined && state.list.digest === names.list.digest) {
        if (state.list.count === names.list.count) continue;
      }
      const before = nonces.get(slot.number);
      if (before !== undefined && before !== record.nonce) return false;
      nonces.set(slot.number, record.nonce);
      isHeld = true;
    }
    if (!isHeld) return true;
    await sleep(clock, timing.renewEveryMs, signal);
  }
}
