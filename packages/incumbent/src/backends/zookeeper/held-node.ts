/**
 * One ephemeral node as a lock, whatever stands beside it: who has it, how it is given up, and
 * watches on it. The layouts that build on it say how it is made, and how the record is written.
 */

import { StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';
import type { Scope } from '../../core/contest.ts';
import type { Holder, LockReading, TakenLock } from '../../mechanisms/lock/store.ts';
import type { CommitResult, Entry, Place, Watched } from '../../mechanisms/queue/store.ts';
import type {
  NodeAcl,
  NodeContent,
  NodeStat,
  ZooKeeperClient,
  ZooKeeperTransaction,
} from './client.ts';
import { codeOf, refusalOf } from './client.ts';
import { storeError } from './errors.ts';
import type { LockNodes, Picture } from './lock-nodes.ts';
import { LockSession, placeName } from './lock-session.ts';

export interface LockStoreOptions {
  readonly acl: readonly NodeAcl[];
  /** True: makes the nodes that an election needs when they are not there. */
  readonly create: boolean;
  /** Undefined: the candidate's id. */
  readonly activeData: string | Uint8Array | undefined;
}

export interface LockPlace extends Place {
  /** The guid of the claim under which it was made, if it is of our session. */
  readonly guid: string | undefined;
}

export abstract class HeldNode {
  readonly session: LockSession;
  /** Members of another make lead without writing our record. */
  readonly isMixed = true;
  protected readonly client: ZooKeeperClient;
  protected readonly nodes: LockNodes;
  protected readonly scope: Scope;
  protected readonly options: LockStoreOptions;

  constructor(client: ZooKeeperClient, scope: Scope, nodes: LockNodes, options: LockStoreOptions) {
    this.client = client;
    this.nodes = nodes;
    this.scope = scope;
    this.options = options;
    this.session = LockSession.of(client);
  }

  abstract take(entry: Entry, signal: AbortSignal): Promise<TakenLock | undefined>;
  protected abstract reading(picture: Picture): LockReading;

  nameHere(recorded: string): string {
    return this.nodes.nameHere(recorded);
  }

  // --- having the lock ---

  claim({ guid }: Entry): boolean {
    return this.session.claim(this.nodes.lockPath, guid);
  }

  isClaimedFor({ guid }: Entry): boolean {
    return this.session.claimant(this.nodes.lockPath) === guid;
  }

  onUnclaimed(listener: () => void): () => void {
    return this.session.onUnclaimed(this.nodes.lockPath, listener);
  }

  async enter(entry: Entry, signal: AbortSignal): Promise<Place> {
    const taken = this.claim(entry) ? await this.take(entry, signal) : undefined;
    if (taken === undefined) throw new StoreUnavailableError('somebody else has the lock');
    return taken.place;
  }

  async leave(entry: Entry, _place: Place | undefined, signal: AbortSignal): Promise<void> {
    return this.attempt(async () => {
      // Without a claim it has made none, or its lock went with its session.
      if (!this.isClaimedFor(entry)) return;
      // A request that had no answer may have been carried out, without this server knowing yet.
      await this.client.sync(this.nodes.path, { signal });
      const lock = await this.nodes.lock(signal);
      if (lock !== undefined && lock.stat.ephemeralOwner === this.session.id) {
        await this.nodes.deleteLock(lock, signal);
      }
      if (this.isClaimedFor(entry)) this.session.unclaim(this.nodes.lockPath);
    });
  }

  async survey(
    signal: AbortSignal,
  ): Promise<{ readonly holder: Holder | undefined; readonly reading: LockReading }> {
    return this.attempt(async () => {
      const picture = await this.nodes.picture(signal);
      return { holder: this.#holderOf(picture.lock), reading: this.reading(picture) };
    });
  }

  async remove(name: string, signal: AbortSignal): Promise<void> {
    await this.attempt(async () => {
      const lock = await this.nodes.lock(signal);
      if (lock === undefined || this.nodes.names(lock)[0] !== name) return;
      await this.nodes.deleteLock(lock, signal);
    });
  }

  // --- reading ---

  async read(signal: AbortSignal): Promise<LockReading> {
    return this.attempt(async () => this.reading(await this.nodes.picture(signal)));
  }

  async look(
    signal: AbortSignal,
  ): Promise<{ readonly reading: LockReading; readonly names: readonly string[] }> {
    return this.attempt(async () => {
      const picture = await this.nodes.picture(signal);
      return { reading: this.reading(picture), names: this.nodes.names(picture.lock) };
    });
  }

  async sync(signal: AbortSignal): Promise<void> {
    await this.attempt(() => this.client.sync(this.nodes.path, { signal }));
  }

  async list(signal: AbortSignal): Promise<readonly string[]> {
    return this.attempt(async () => this.nodes.names(await this.nodes.lock(signal)));
  }

  // --- watching ---

  async watchHolder(signal: AbortSignal): Promise<Watched<Holder | undefined>> {
    return this.#watchLock(signal, (lock) => this.#holderOf(lock));
  }

  async watchPlace(name: string, signal: AbortSignal): Promise<Watched<boolean>> {
    return this.#watchLock(signal, (lock) => this.nodes.names(lock)[0] === name);
  }

  async watchList(signal: AbortSignal): Promise<Watched<readonly string[]>> {
    return this.#watchLock(signal, (lock) => this.nodes.names(lock));
  }

  async watchRecord(signal: AbortSignal): Promise<Watched<LockReading>> {
    return this.attempt(async () => {
      const { value, changed, cancel } = await this.nodes.watchPicture(signal);
      return { value: this.reading(value), changed, cancel };
    });
  }

  async init(signal: AbortSignal): Promise<void> {
    const { acl, create } = this.options;
    await this.attempt(async () => {
      if (create) await this.client.ensurePath(this.nodes.path, { acl, signal });
      else if ((await this.client.stat(this.nodes.path, { signal })).stat === null) {
        throw noElection(this.nodes.path);
      }
    });
  }

  // --- for the layouts ---

  /** The belief that is safe beside members that do not wait was derived from D. */
  protected requireTimeout(): void {
    const { leaseMs } = this.scope.timing;
    const grantedMs = this.client.session?.timeoutMs ?? leaseMs;
    if (grantedMs >= leaseMs) return;
    throw new StoreUnsuitableError(
      `this session was granted ${grantedMs} ms, the one before it ${leaseMs} ms, from which the ` +
        'timing was derived: make another backend from the client, and give all servers the same ' +
        'tickTime and maxSessionTimeout',
    );
  }

  /** The claim ends with the lock, whoever has taken it away. */
  protected async commitRelease(
    place: Place,
    transaction: ZooKeeperTransaction,
    isLock: (index: number) => boolean,
    signal: AbortSignal,
  ): Promise<CommitResult> {
    let outcome: CommitResult = { outcome: 'ok', version: undefined };
    try {
      await transaction.commit({ signal });
    } catch (error) {
      outcome = outcomeOf(error, isLock);
    }
    if (outcome.outcome !== 'conflict') this.unclaim(place);
    return outcome;
  }

  protected unclaim(place: Place): void {
    const { guid } = place as LockPlace;
    // A later claim is another candidate's.
    if (this.session.claimant(this.nodes.lockPath) === guid)
      this.session.unclaim(this.nodes.lockPath);
  }

  protected placeOf({ czxid, ephemeralOwner }: NodeStat): LockPlace {
    return {
      name: placeName(this.nodes.lockPath, czxid),
      token: czxid,
      session: ephemeralOwner,
      guid: this.session.claimant(this.nodes.lockPath),
    };
  }

  protected data({
    candidate,
  }: {
    readonly candidate: { readonly id: string };
  }): string | Uint8Array {
    return this.options.activeData ?? candidate.id;
  }

  protected async attempt<T>(operation: () => Promise<T>): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      throw storeError(error, this.nodes.path);
    }
  }

  #holderOf(lock: NodeContent | undefined): Holder | undefined {
    if (lock === undefined) return undefined;
    const place = this.placeOf(lock.stat);
    return { name: place.name, place, isOfOurSession: place.session === this.session.id };
  }

  async #watchLock<Value>(
    signal: AbortSignal,
    toValue: (lock: NodeContent | undefined) => Value,
  ): Promise<Watched<Value>> {
    return this.attempt(async () => {
      const watch = await this.client.watch(this.nodes.lockPath, { signal });
      return {
        value: toValue(watch.value),
        changed: watch.changed,
        cancel: () => watch.cancel(),
      };
    });
  }
}

/**
 * @param isLock true for the index of an operation whose refusal says that the lock is gone
 */
export function outcomeOf(error: unknown, isLock: (index: number) => boolean): CommitResult {
  const refusal = refusalOf(error);
  if (refusal?.code === 'NO_NODE') {
    return { outcome: isLock(refusal.index) ? 'gone' : 'conflict' };
  }
  if (refusal?.code === 'BAD_VERSION' || refusal?.code === 'NODE_EXISTS') {
    return { outcome: 'conflict' };
  }
  throw error;
}

/** True for the error of an operation on a node that is not there. */
export function isMissing(error: unknown): boolean {
  return codeOf(error) === 'NO_NODE' || refusalOf(error)?.code === 'NO_NODE';
}

export function noElection(path: string): StoreUnsuitableError {
  return new StoreUnsuitableError(
    `there is no node ${path}: make it with ensureParentNode or \`incumbent init\`, or let candidates ` +
      'make it (`create: true`)',
  );
}
