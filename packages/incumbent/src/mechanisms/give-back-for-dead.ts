/** A witness gives back the seat of a leader that it saw die (docs/design/hand-over.md). */
import { isIncurable } from '../base/errors.ts';
import { sleep } from '../base/wait.ts';
import type { DeadLeader, Scope } from '../core/contest.ts';
import type { ElectionRecord } from '../record/record.ts';
import { releasedForDead } from '../record/transitions.ts';

/** Every write of another process may cost one attempt. */
const mostTries = 5;

/** One look at the record, and the write that is conditional on it. */
export interface LookForDead<Record> {
  readonly record: Record | undefined;
  /**
   * Replaces that very record. A rejected write may have landed. `conflict`: this one has not.
   * `gone`: nor may it be tried again.
   */
  readonly write: (next: Record) => Promise<'ok' | 'conflict' | 'gone'>;
}

/**
 * Looks and writes until the seat of `leader` is given back, or is not its seat any more.
 * @throws the last error of the store; the reason of `signal`
 */
export async function giveBackForDead<Record extends ElectionRecord>(
  { clock, timing, uniqueId, onTrouble }: Scope,
  leader: DeadLeader,
  look: () => Promise<LookForDead<Record>>,
  signal: AbortSignal,
): Promise<boolean> {
  const nonces = new Set<string>();
  let isGone = false;
  for (let tries = 1; ; tries += 1) {
    try {
      const { record, write } = await look();
      if (record !== undefined && nonces.has(record.nonce)) return true;
      if (isGone || record === undefined || !isSeatOf(leader, record)) return false;
      const writing = { nonce: uniqueId(), wallMs: clock.wallMs() };
      nonces.add(writing.nonce);
      const outcome = await write(releasedForDead(record, leader.hasWorkEnded, writing));
      if (outcome === 'ok') return true;
      isGone = outcome === 'gone';
      if (tries >= mostTries) return false;
    } catch (error) {
      signal.throwIfAborted();
      if (isIncurable(error) || tries >= mostTries) throw error;
      onTrouble('giving back the seat of a dead leader', error);
      await sleep(clock, timing.retryBackoffMs, signal);
    }
  }
}

/**
 * The record names this very term, and the last write of its leader is one that the dead process
 * has sent. An operator's write keeps all of them.
 */
function isSeatOf(leader: DeadLeader, { token, nonce, holding }: ElectionRecord): boolean {
  return (
    holding !== undefined &&
    token === leader.token &&
    holding.candidate.id === leader.id &&
    holding.candidate.incarnation === leader.incarnation &&
    leader.nonces.includes(nonce)
  );
}
