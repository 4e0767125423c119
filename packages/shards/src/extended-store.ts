import type { LeaseRecord, LeaseStore, Reading, SwapResult, Version } from 'incumbent/backend';

/** A record, and what shards add to it. */
export interface Extended<State> {
  readonly record: LeaseRecord | undefined;
  readonly state: State;
}

/** The part of a record that is for shards, and how each write of the lease race carries it on. */
export interface Extension<State> {
  /** @throws for a record that is not theirs, or that belongs to others */
  decode(record: LeaseRecord | undefined): State;
  encode(state: State): string;
  /** The state that goes with `next`, which replaces `before`. */
  follow(before: Extended<State>, next: LeaseRecord): State;
  /** `next` has replaced that very version. */
  onWritten(written: Extended<State>): void;
  /** True: the record was set back, so this process writes it no more. */
  readonly isLost?: boolean;
  /** A read is about to be sent. */
  onReading?(): unknown;
  /**
   * @param mark from `onReading`
   * @returns the record as the lease race is to see it
   */
  onRead?(read: Extended<State>, mark: unknown): LeaseRecord | undefined;
}

/**
 * Readings whose versions the lease race may still write on. It writes on the newest, so few are enough.
 * Each of them may hold all entries of a slot.
 */
const mostKnown = 8;

/**
 * The store, as the lease race sees it: records without shards. A change that a coordinator
 * makes in them looks to it like a request of an operator: the nonce stays, and the version moves. So
 * the race, its terms and their proof stay as they are.
 */
export function extendedStore<State>(inner: LeaseStore, extension: Extension<State>): LeaseStore {
  const known = new Map<Version, Extended<State>>();

  const remember = (version: Version, read: Extended<State>) => {
    known.delete(version);
    known.set(version, read);
    const [oldest] = known.keys();
    if (known.size > mostKnown && oldest !== undefined) known.delete(oldest);
  };

  const plain = (reading: Reading, mark?: unknown): Reading => {
    const { record } = reading;
    const read = { record, state: extension.decode(record) };
    remember(reading.version, read);
    const shown = extension.onRead === undefined ? record : extension.onRead(read, mark);
    return { ...reading, record: withoutShards(shown) };
  };

  const told = (reading: Reading): Reading | undefined => {
    try {
      return plain(reading);
    } catch {
      // The read that follows meets the same record, and reports it.
      return undefined;
    }
  };

  const own: Partial<LeaseStore> = {
    async read(signal) {
      const mark = extension.onReading?.();
      const reading = await inner.read(signal);
      // Nobody waits for it any more, and later writes may have been answered since.
      signal.throwIfAborted();
      return plain(reading, mark);
    },
    async swap(expected, next, signal): Promise<SwapResult> {
      const before = known.get(expected);
      // Too old to be remembered: it has moved since. The lease race reads again.
      if (before === undefined || extension.isLost === true) return { outcome: 'conflict' };
      const state = extension.follow(before, next);
      // Slots are taken over all the time. Their history would be renewed with every confirmation.
      const record = { ...next, history: [], shards: extension.encode(state) };
      const result = await inner.swap(expected, record, signal);
      // For the lease race, a late answer is none: it has looked again, and written again.
      signal.throwIfAborted();
      if (result.outcome === 'ok') {
        const written = { record, state };
        remember(result.version, written);
        extension.onWritten(written);
      }
      return result;
    },
    ...(inner.watch !== undefined && {
      watch: (onHint: (reading?: Reading) => void) =>
        inner.watch?.((reading) => onHint(reading === undefined ? undefined : told(reading))) ??
        (() => {}),
    }),
  };
  // No people look for the candidates of a slot.
  const hidden = new Set<string | symbol>(['enlist', 'list']);
  return new Proxy(inner, {
    get(target, name) {
      if (Object.hasOwn(own, name)) return own[name as keyof LeaseStore];
      if (hidden.has(name)) return undefined;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

function withoutShards(record: LeaseRecord | undefined): LeaseRecord | undefined {
  if (record === undefined) return undefined;
  const { shards: _, ...rest } = record;
  return rest;
}
