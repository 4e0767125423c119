import { emptyLeaseRecord, uniqueId } from 'incumbent/internal';
import { nobody } from './assign.ts';
import type { Directory, Owner } from './codec.ts';
import { decodeDirectory, encodeDirectory } from './codec.ts';
import type { Context } from './context.ts';
import type { SeenSlot } from './seen-slot.ts';
import { isLive } from './slot.ts';

/** The shortest time between two writes of it. */
const writeGapMs = 100;

/** Keeps the copy for clients up to date. Nothing depends on it, so a failure only delays it. */
export class DirectoryWriter<Shard> {
  readonly #context: Context<Shard>;
  #wanted: readonly SeenSlot[] | undefined;
  #written = '';
  #isWriting = false;

  constructor(context: Context<Shard>) {
    this.#context = context;
  }

  update(slots: readonly SeenSlot[]): void {
    const signature = signatureOf(slots);
    if (signature === this.#written) return;
    this.#wanted = slots;
    if (this.#isWriting) return;
    this.#isWriting = true;
    void this.#write();
  }

  async #write(): Promise<void> {
    const { clock, onTrouble, timing } = this.#context.options;
    const stop = new AbortController().signal;
    const store = this.#context.directory;
    while (this.#wanted !== undefined) {
      const slots = this.#wanted;
      this.#wanted = undefined;
      const signature = signatureOf(slots);
      try {
        const { version } = await this.#context.ask('reading the directory', stop, (signal) =>
          store.read(signal),
        );
        const name = `${this.#context.options.name}/directory`;
        const record = {
          ...emptyLeaseRecord(name, uniqueId(), timing.leaseMs),
          shards: Buffer.from(encodeDirectory(this.#directoryOf(slots))).toString('base64'),
        };
        const result = await this.#context.ask('writing the directory', stop, (signal) =>
          store.swap(version, record, signal),
        );
        if (result.outcome === 'ok') this.#written = signature;
        else this.#wanted ??= slots;
      } catch (error) {
        onTrouble('writing the directory', error);
      }
      await new Promise<void>((resolve) => {
        clock.setTimer(resolve, writeGapMs, true);
      });
    }
    this.#isWriting = false;
  }

  #directoryOf(slots: readonly SeenSlot[]): Directory {
    const { list } = this.#context.options.names;
    const members: Owner[] = [];
    const owners = new Int32Array(list.count).fill(nobody);
    const tokens = new BigUint64Array(list.count);
    let highest = 0n;
    for (const { number, record, state } of slots) {
      if (state === undefined) continue;
      if (state.highest > highest) highest = state.highest;
      if (record?.holding === undefined) continue;
      const { id, addresses } = record.holding.candidate;
      const index = members.push({ slot: number, id, addresses }) - 1;
      for (const entry of state.entries) {
        if (!isLive(entry)) continue;
        owners[entry.shard] = index;
        tokens[entry.shard] = entry.token;
      }
    }
    return { list, highest, members, owners, tokens };
  }
}

/** Differs when the directory would. Each change of the entries counts. */
function signatureOf(slots: readonly SeenSlot[]): string {
  return slots
    .map(({ record, state }) => `${record?.holding ? record.token : ''} ${state?.changes}`)
    .join('\n');
}

/** The directory, as the last read of it shows it. Undefined: no coordinator has written it yet. */
export async function readDirectory<Shard>(
  context: Context<Shard>,
  signal: AbortSignal,
): Promise<Directory | undefined> {
  const { record } = await context.ask('reading the directory', signal, (stop) =>
    context.directory.read(stop),
  );
  if (record?.shards === undefined) return undefined;
  return decodeDirectory(
    Buffer.from(record.shards, 'base64'),
    `the directory of "${context.options.name}"`,
  );
}
