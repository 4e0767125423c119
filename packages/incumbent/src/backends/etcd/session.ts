import type { Clock } from '../../base/clock.ts';
import { StoreUnavailableError } from '../../base/errors.ts';
import type { Place, Presence, QueueSession, SessionEvent } from '../../mechanisms/queue/store.ts';
import type { CallOptions, EtcdCalls } from './calls.ts';
import { ClientClosedError, storeError } from './errors.ts';
import { encodeKey } from './keys.ts';
import type { Lease } from './leases.ts';
import { LeaseKeeper } from './leases.ts';
import type {
  Compare,
  RangeRequest,
  RangeResponse,
  RequestOp,
  TxnRequest,
  TxnResponse,
} from './messages.ts';
import { compareResult, compareTarget } from './messages.ts';
import { range, txn } from './methods.ts';
import { WatchHub } from './watches.ts';

/** A place as this backend knows it. */
export interface EtcdPlace extends Place {
  readonly key: string;
  /** The lease that its key is attached to. */
  readonly session: Lease;
  readonly guid: string;
  /** The name of the place directly before it when it was made. '' for the first. */
  readonly before: string | undefined;
}

export interface SessionPlan {
  readonly calls: EtcdCalls;
  readonly clock: Clock;
  /** As asked for, in whole seconds. */
  readonly ttlMs: number;
  readonly onTrouble: (what: string, error: unknown) => void;
}

/** The leases, watches and confirmations that all elections of one process share. */
export class EtcdSession implements QueueSession {
  /** Servers take 128 comparisons in a transaction, unless they were told otherwise. */
  readonly maxPlaces = 120;
  readonly leases: LeaseKeeper;
  readonly watches: WatchHub;
  readonly calls: EtcdCalls;
  readonly clock: Clock;
  /** As asked for. */
  readonly ttlMs: number;
  readonly #listeners: Set<{ readonly listener: (event: SessionEvent) => void }> = new Set();
  #users = 0;

  constructor({ calls, clock, ttlMs, onTrouble }: SessionPlan) {
    this.calls = calls;
    this.clock = clock;
    this.ttlMs = ttlMs;
    const tell = (event: SessionEvent) => this.#tell(event);
    this.leases = new LeaseKeeper(calls, clock, ttlMs, tell, onTrouble);
    this.watches = new WatchHub(calls, clock, tell, onTrouble);
  }

  get isSuspended(): boolean {
    return this.leases.isSuspended || this.watches.isBroken;
  }

  get isEnded(): boolean {
    return this.calls.isClosed;
  }

  isOver(place: Place): boolean {
    return (place as EtcdPlace).session.group.isOver;
  }

  onEvent(listener: (event: SessionEvent) => void): () => void {
    // The same function given twice is two listeners.
    const own = { listener };
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /**
   * One more election uses this session.
   * @returns a function that says that this election is done. The last one gives the leases back
   */
  use(): () => void {
    this.#users += 1;
    let isUsing = true;
    return () => {
      if (!isUsing) return;
      isUsing = false;
      this.#users -= 1;
      if (this.#users === 0) this.leases.close();
    };
  }

  /**
   * A transaction with nothing but reads writes no log. It is still not answered from one server's
   * memory, as soon as one of its reads is linearizable (the default). The member first asks a
   * quorum which member leads, and applies all that had been committed by then. Otherwise a member
   * that is cut off answers as well (etcd's `IsTxnSerializable`): that holds for a transaction
   * without reads, or with `serializable` ones only. It would prove nothing.
   */
  async confirm(places: readonly Place[], signal: AbortSignal): Promise<Presence> {
    // A place whose lease was not kept lately is left out. That is no reason to lose the others.
    const fresh = (places as readonly EtcdPlace[]).filter(({ session }) =>
      this.leases.isFresh(session),
    );
    const known = fresh.length > 0 ? fresh : (places as readonly EtcdPlace[]);
    const [first] = known;
    if (first === undefined) return { there: [], gone: [] };
    this.requireFresh(known);
    const look = (key: string): Partial<RequestOp> => ({
      range: { key: encodeKey(key), keysOnly: true },
    });
    const { succeeded, responses } = await this.txn(
      {
        compare: known.map(isThere),
        success: [look(first.key)],
        failure: known.map(({ key }) => look(key)),
      },
      'confirming',
      signal,
      // The belief of leaders depends on this, so it does not wait behind candidates.
      { isUrgent: true, mayRepeat: true },
    );
    if (succeeded) return { there: known, gone: [] };
    // The reads that were made instead are of the same revision, and as linearizable. They tell
    // of each place.
    const isListed = ({ token }: Place, index: number) =>
      responses[index]?.range?.kvs[0]?.createRevision === token;
    return {
      there: known.filter(isListed),
      gone: known.filter((place, index) => !isListed(place, index)),
    };
  }

  /**
   * Members behind us may not wait for us, so belief counts from a lease that has just been kept.
   * @throws StoreUnavailableError before anything is sent
   */
  requireFresh(places: readonly EtcdPlace[]): void {
    if (places.every(({ session }) => this.leases.isFresh(session))) return;
    throw new StoreUnavailableError('the lease of these places has not been kept lately');
  }

  txn(
    request: TxnRequest,
    what: string,
    signal: AbortSignal,
    options: CallOptions = {},
  ): Promise<TxnResponse> {
    return this.attempt(what, () => this.calls.call(txn, request, signal, options));
  }

  /** Reads from any member that answers. */
  read(request: Partial<RangeRequest>, what: string, signal: AbortSignal): Promise<RangeResponse> {
    return this.attempt(what, () => this.calls.call(range, request, signal, { mayRepeat: true }));
  }

  /** Turns the driver's errors into errors of this library. */
  async attempt<T>(what: string, operation: () => Promise<T>): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      if (error instanceof ClientClosedError) this.leases.end();
      throw storeError(error, what, this.calls.wasReached);
    }
  }

  #tell(event: SessionEvent): void {
    for (const { listener } of [...this.#listeners]) listener(event);
  }
}

/** The key exists, and has not been deleted and put again. */
export function isThere(place: { readonly key: string; readonly token: bigint }): Partial<Compare> {
  return {
    result: compareResult.equal,
    target: compareTarget.create,
    key: encodeKey(place.key),
    createRevision: place.token,
  };
}

export function isAtVersion(key: string, modRevision: bigint): Partial<Compare> {
  return {
    result: compareResult.equal,
    target: compareTarget.mod,
    key: encodeKey(key),
    modRevision,
  };
}
