import type { Clock } from 'incumbent';
import { emptyLeaseRecord, sleep, uniqueId, Wakeup } from 'incumbent/internal';
import { nobody } from './assign.ts';
import type { Directory, Owner } from './codec.ts';
import { decodeDirectory, encodeDirectory } from './codec.ts';
import type { Context } from './context.ts';
import { requireList } from './head.ts';
import type { Names } from './lists.ts';
import type { SeenSlot } from './seen-slot.ts';
import { isLive, isReady } from './slot.ts';

/** The shortest time between two writes of it. */
const writeGapMs = 100;

/** Keeps the copy for clients up to date. Nothing depends on it, so a failure only delays it. */
export class DirectoryWriter<Shard> {
  readonly #context: Context<Shard>;
  #wanted: readonly SeenSlot[] | undefined;
  #written = '';
  /** The mark of the record that was written last, and the time of the last look at it, monotonic. */
  #nonce: string | undefined;
  #lookedMs: number = Number.NEGATIVE_INFINITY;
  #isWriting = false;
  #writing: Promise<void> = Promise.resolve();
  readonly #closing = new AbortController();

  constructor(context: Context<Shard>) {
    this.#context = context;
  }

  /** Waits for a write that is under way, and makes no more. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#writing;
  }

  update(slots: readonly SeenSlot[]): void {
    const { clock, timing } = this.#context.options;
    // Another coordinator that was late may have replaced it, or somebody has deleted it.
    const isFresh = clock.monotonicMs() < this.#lookedMs + timing.leaseMs;
    if (this.#closing.signal.aborted) return;
    if (isFresh && this.#signatureOf(slots) === this.#written) return;
    this.#wanted = slots;
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#writing = this.#write();
  }

  /** Differs when the directory would. Each change of the entries counts. */
  #signatureOf(slots: readonly SeenSlot[]): string {
    const states = slots.map(
      ({ record, state }) => `${record?.holding ? record.token : ''} ${state?.changes}`,
    );
    return [this.#context.options.names.digest, ...states].join('\n');
  }

  async #write(): Promise<void> {
    const { clock, onTrouble, timing } = this.#context.options;
    const stop = new AbortController().signal;
    const store = this.#context.directory;
    const { signal: closing } = this.#closing;
    while (this.#wanted !== undefined && !closing.aborted) {
      const slots = this.#wanted;
      this.#wanted = undefined;
      const signature = this.#signatureOf(slots);
      try {
        const { version, record: found } = await this.#context.ask(
          'reading the directory',
          stop,
          (signal) => store.read(signal),
        );
        this.#lookedMs = clock.monotonicMs();
        if (signature === this.#written && found !== undefined && found.nonce === this.#nonce)
          continue;
        const name = `${this.#context.options.name}/directory`;
        const record = {
          ...emptyLeaseRecord(name, uniqueId(), timing.leaseMs),
          shards: Buffer.from(
            encodeDirectory(directoryOf(this.#context.options.names, slots)),
          ).toString('base64'),
        };
        const result = await this.#context.ask('writing the directory', stop, (signal) =>
          store.swap(version, record, signal),
        );
        if (result.outcome === 'ok') {
          this.#written = signature;
          this.#nonce = record.nonce;
        } else this.#wanted ??= slots;
      } catch (error) {
        onTrouble('writing the directory', error);
      }
      await sleep(clock, writeGapMs, closing, true).catch(() => {});
    }
    this.#isWriting = false;
  }
}

/** The owner of each shard, by these slots. */
export function directoryOf(
  { list, digest, size: known }: Pick<Names<unknown>, 'list' | 'digest' | 'size'>,
  slots: readonly SeenSlot[],
): Directory {
  const members: Owner[] = [];
  // With those that are in the list no more, and have an owner still.
  const size = Math.max(
    known,
    ...slots.map(({ state }) => 1 + (state?.entries.at(-1)?.shard ?? -1)),
  );
  const owners = new Int32Array(size).fill(nobody);
  const tokens = new BigUint64Array(size);
  const unready = new Set<number>();
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
      if (!isReady(state, entry)) unready.add(entry.shard);
    }
  }
  return { list, digest, highest, members, owners, tokens, unready };
}

/** The last look at the directory. */
export interface Sight {
  /** Undefined: no coordinator has written it yet. */
  readonly directory: Directory | undefined;
  /** Why it cannot be read. */
  readonly error: Error | undefined;
}

/** Reads the directory as long as there are subscribers, once for all of them. */
export class DirectoryWatch {
  readonly clock: Clock;
  readonly #context: Context<string | number>;
  readonly #listeners = new Set<() => void>();
  #end: AbortController | undefined;
  #sight: Sight | undefined;
  #signature: string | undefined;

  constructor(context: Context<string | number>) {
    this.#context = context;
    this.clock = context.options.clock;
  }

  /** Undefined until it was read, and without subscribers. */
  get sight(): Sight | undefined {
    return this.#sight;
  }

  /**
   * @param listener called at each change of `sight`
   * @returns a function that ends the subscription
   */
  subscribe(listener: () => void): () => void {
    const own = () => listener();
    this.#listeners.add(own);
    if (this.#end === undefined) {
      this.#end = new AbortController();
      void this.#watch(this.#end.signal);
    }
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size === 0) this.close();
    };
  }

  close(): void {
    this.#end?.abort();
    this.#end = undefined;
    this.#sight = undefined;
    this.#signature = undefined;
  }

  /** One read. @throws ListDiffersError, the store's error */
  async read(signal: AbortSignal): Promise<Directory | undefined> {
    const { name, names } = this.#context.options;
    const { record } = await this.#context.ask('reading the directory', signal, (stop) =>
      this.#context.directory.read(stop),
    );
    if (record?.shards === undefined) return undefined;
    const source = Buffer.from(record.shards, 'base64');
    const directory = decodeDirectory(source, `the directory of "${name}"`);
    requireList(name, names.list, directory.list);
    if (names.size < directory.owners.length || names.digest !== directory.digest) {
      await this.#context.roster?.read(signal);
    }
    return directory;
  }

  async #watch(end: AbortSignal): Promise<void> {
    const { timing, onTrouble } = this.#context.options;
    const wakeup = new Wakeup();
    const unwatch = this.#context.directory.watch?.(() => wakeup.raise());
    while (!end.aborted) {
      wakeup.clear();
      try {
        const directory = await this.read(end);
        if (end.aborted) break;
        this.#see({ directory, error: undefined }, `${changesOf(directory)}`);
      } catch (error) {
        if (end.aborted) break;
        onTrouble('reading the directory', error);
        this.#see({ directory: this.#sight?.directory, error: error as Error }, 'unknown');
      }
      await wakeup.wait(this.clock, timing.pollEveryMs, end, true).catch(() => {});
    }
    unwatch?.();
  }

  #see(sight: Sight, signature: string): void {
    if (signature === this.#signature) return;
    this.#signature = signature;
    this.#sight = sight;
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Differs when the directory does. */
function changesOf(directory: Directory | undefined): string {
  if (directory === undefined) return '';
  return Buffer.from(encodeDirectory(directory)).toString('base64');
}
