import type { Place, Presence, QueueSession, SessionEvent } from '../../mechanisms/queue/store.ts';
import type { NodeContent, ZooKeeperClient } from './client.ts';
import { codeOf, refusalOf } from './client.ts';
import { storeError } from './errors.ts';
import { ZooKeeperSession } from './session.ts';

const known = new WeakMap<ZooKeeperClient, LockSession>();

interface Claim {
  readonly guid: string;
  readonly session: bigint;
}

/** The session of a client, as the locks on it share it. */
export class LockSession implements QueueSession {
  /** As many checks, and reads after them, as should be under way at once. */
  readonly maxPlaces = 500;
  readonly #client: ZooKeeperClient;
  readonly #session: ZooKeeperSession;
  /** By the path of the lock: the candidate that alone may make it, and in which session. */
  readonly #claims: Map<string, Claim> = new Map();
  readonly #unclaimed: Map<string, Set<() => void>> = new Map();

  static of(client: ZooKeeperClient): LockSession {
    let session = known.get(client);
    if (session === undefined) {
      session = new LockSession(client);
      known.set(client, session);
    }
    return session;
  }

  private constructor(client: ZooKeeperClient) {
    this.#client = client;
    this.#session = ZooKeeperSession.of(client);
  }

  /** Undefined while there is none, or when it is over. */
  get id(): bigint | undefined {
    return this.#session.id;
  }

  get isSuspended(): boolean {
    return this.#session.isSuspended;
  }

  isOver(place: Place): boolean {
    return this.#session.isOver(place);
  }

  onEvent(listener: (event: SessionEvent) => void): () => void {
    return this.#session.onEvent(listener);
  }

  /**
   * The transaction proves that there is a lock of that name, which may be another's by now. The
   * read after it is on the same connection, and of no older state. It proves that the lock is the
   * one that we made, and so that it was ours all the time.
   */
  async confirm(places: readonly Place[], signal: AbortSignal): Promise<Presence> {
    const paths = places.map(({ name }) => pathOf(name));
    const transaction = this.#client.transaction();
    for (const path of paths) transaction.check(path);
    const [committed, ...reads] = await Promise.allSettled([
      transaction.commit({ signal }),
      ...paths.map((path) => this.#client.get(path, { signal })),
    ]);
    if (committed.status === 'rejected') {
      this.#session.leaveSilentServer(signal.reason);
      const refusal = refusalOf(committed.reason);
      const missing = refusal?.code === 'NO_NODE' ? places[refusal.index] : undefined;
      if (missing !== undefined) return { there: [], gone: [missing] };
      throw storeError(committed.reason, paths[0] ?? '/');
    }
    const there: Place[] = [];
    const gone: Place[] = [];
    for (const [index, place] of places.entries()) {
      const read = reads[index] as PromiseSettledResult<NodeContent>;
      if (read.status === 'fulfilled') (isThat(read.value, place) ? there : gone).push(place);
      else if (codeOf(read.reason) === 'NO_NODE') gone.push(place);
      else throw storeError(read.reason, place.name);
    }
    return { there, gone };
  }

  /**
   * A claim ends with the session.
   * @returns false while another candidate has one
   */
  claim(path: string, guid: string): boolean {
    const session = this.id;
    if (session === undefined) return false;
    const claim = this.#claims.get(path);
    if (claim !== undefined && claim.session === session) return claim.guid === guid;
    this.#claims.set(path, { guid, session });
    return true;
  }

  /** The guid of the claim's holder. */
  claimant(path: string): string | undefined {
    const claim = this.#claims.get(path);
    return claim !== undefined && claim.session === this.id ? claim.guid : undefined;
  }

  unclaim(path: string): void {
    if (!this.#claims.delete(path)) return;
    for (const listener of [...(this.#unclaimed.get(path) ?? [])]) listener();
  }

  /** @returns a function that stops telling */
  onUnclaimed(path: string, listener: () => void): () => void {
    let listeners = this.#unclaimed.get(path);
    if (listeners === undefined) {
      listeners = new Set();
      this.#unclaimed.set(path, listeners);
    }
    const all = listeners;
    const own = () => listener();
    all.add(own);
    return () => {
      all.delete(own);
      if (all.size === 0 && this.#unclaimed.get(path) === all) this.#unclaimed.delete(path);
    };
  }
}

/** The lock's name recurs, so its czxid is added, which does not. */
export function placeName(path: string, czxid: bigint): string {
  return `${path}@0x${czxid.toString(16)}`;
}

function pathOf(name: string): string {
  return name.slice(0, name.lastIndexOf('@'));
}

export function isThat({ stat }: Pick<NodeContent, 'stat'>, place: Place): boolean {
  return stat.czxid === place.token && stat.ephemeralOwner === place.session;
}
