import { OperationTimeoutError } from '../../base/errors.ts';
import type { Place, Presence, QueueSession, SessionEvent } from '../../mechanisms/queue/store.ts';
import type { ZooKeeperClient } from './client.ts';
import { refusalOf } from './client.ts';
import { storeError } from './errors.ts';

/** A place as this backend knows it. */
export interface ZooKeeperPlace extends Place {
  /** The `ephemeralOwner` of its node. */
  readonly session: bigint;
  /** True: a node of the same name may be another candidate's. Only the czxid tells. */
  readonly recurs: boolean;
  /** The guid of the entry that it was made for. */
  readonly guid: string;
}

const known = new WeakMap<ZooKeeperClient, ZooKeeperSession>();

/** The session of a client, shared by all elections on it. */
export class ZooKeeperSession implements QueueSession {
  /** Checks of a thousand paths of 300 bytes are a third of a server's default `jute.maxbuffer`. */
  readonly maxPlaces = 1_000;
  /** Places without a guid in their names: the entry's guid for each creation (czxid). */
  readonly claimed: Map<bigint, string> = new Map();
  readonly #client: ZooKeeperClient;
  readonly #listeners: Set<{ readonly listener: (event: SessionEvent) => void }> = new Set();

  static of(client: ZooKeeperClient): ZooKeeperSession {
    let session = known.get(client);
    if (session === undefined) {
      session = new ZooKeeperSession(client);
      known.set(client, session);
    }
    return session;
  }

  private constructor(client: ZooKeeperClient) {
    this.#client = client;
    client.onState(({ state }) => {
      const event = eventOf(state);
      // All of them were of the session that is over.
      if (event === 'over') this.claimed.clear();
      for (const { listener } of [...this.#listeners]) listener(event);
    });
  }

  /** Undefined while there is none. */
  get id(): bigint | undefined {
    return eventOf(this.#client.state) === 'over' ? undefined : this.#client.session?.id;
  }

  get isSuspended(): boolean {
    return eventOf(this.#client.state) === 'suspended';
  }

  get isEnded(): boolean {
    return this.#client.state === 'closed' || this.#client.state === 'auth-failed';
  }

  isOver(place: Place): boolean {
    return this.id !== place.session;
  }

  onEvent(listener: (event: SessionEvent) => void): () => void {
    // The same function given twice is two listeners.
    const own = { listener };
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  async confirm(places: readonly Place[], signal: AbortSignal): Promise<Presence> {
    const transaction = this.#client.transaction();
    for (const { name } of places) transaction.check(name);
    const recurring = places.filter((place) => (place as ZooKeeperPlace).recurs);
    try {
      // Sent behind the check, on the same session. So they show at least the state that
      // it has seen.
      const [, ...stats] = await Promise.all([
        transaction.commit({ signal }),
        ...recurring.map(({ name }) => this.#client.stat(name, { signal })),
      ]);
      const gone = new Set<Place>(
        recurring.filter(({ token }, index) => stats[index]?.stat?.czxid !== token),
      );
      return { there: places.filter((place) => !gone.has(place)), gone: [...gone] };
    } catch (error) {
      const refusal = refusalOf(error);
      // A refused transaction has no error in its header: the results of its operations
      // decide. It names the first refusal. The operations before that are not proved by
      // a refused transaction.
      const missing = refusal?.code === 'NO_NODE' ? places[refusal.index] : undefined;
      if (missing !== undefined) return { there: [], gone: [missing] };
      throw storeError(error, places[0]?.name ?? '/');
    }
  }

  /**
   * Belief is shorter than the time after which the client leaves a frozen server by itself.
   * @param reason why a confirmation had no answer
   */
  leaveSilentServer(reason: unknown): void {
    if (!(reason instanceof OperationTimeoutError)) return;
    // The request was sent a moment after its time began.
    this.#client.leaveSilentServer?.({ silentForMs: 0.8 * reason.timeoutMs });
  }
}

function eventOf(state: string): SessionEvent {
  switch (state) {
    case 'connected':
      return 'restored';
    case 'expired':
    case 'closed':
    case 'auth-failed':
      return 'over';
    default:
      return 'suspended';
  }
}
