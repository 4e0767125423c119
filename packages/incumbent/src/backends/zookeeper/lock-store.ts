/**
 * Hadoop's nodes as a store of locks. Our record stands in the node of the election. Whenever one
 * of ours becomes active or stops, it is written in the same transaction as the breadcrumb. So one
 * can tell whether they belong together, and whether a member of another make has led since.
 */

import { StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';
import type { Scope } from '../../core/contest.ts';
import type {
  Holder,
  LockReading,
  LockStore,
  Survey,
  TakenLock,
} from '../../mechanisms/lock/store.ts';
import { leaderPlaceIn } from '../../mechanisms/queue/named-places.ts';
import type {
  Amendment,
  CommitResult,
  Entry,
  Member,
  Place,
  Version,
  Watched,
} from '../../mechanisms/queue/store.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import type { NodeAcl, NodeContent, NodeStat, ZooKeeperClient } from './client.ts';
import { codeOf, refusalOf } from './client.ts';
import { storeError } from './errors.ts';
import { candidateOf } from './hadoop-format.ts';
import type { Picture } from './lock-nodes.ts';
import { encode, isWrittenWith, LockNodes } from './lock-nodes.ts';
import { readingOf } from './lock-reading.ts';
import { isThat, LockSession, placeName } from './lock-session.ts';
import { formatVersion, isOf, parseVersion } from './lock-version.ts';

export interface LockStoreOptions {
  /** The node of the election. */
  readonly path: string;
  readonly acl: readonly NodeAcl[];
  /** True: makes the node of the election when it is not there. */
  readonly create: boolean;
  /** Undefined: the candidate's id. */
  readonly activeData: string | Uint8Array | undefined;
}

interface LockPlace extends Place {
  /** The guid of the claim under which it was made, if it is of our session. */
  readonly guid: string | undefined;
}

export class ZooKeeperLockStore implements LockStore {
  readonly session: LockSession;
  /** Members of another make lead without writing our record. */
  readonly isMixed = true;
  readonly #client: ZooKeeperClient;
  readonly #nodes: LockNodes;
  readonly #scope: Scope;
  readonly #options: LockStoreOptions;
  /** The version of the breadcrumb that belongs to our last announced place. */
  #announced: { readonly place: string; readonly version: number } | undefined;

  constructor(client: ZooKeeperClient, scope: Scope, options: LockStoreOptions) {
    this.#client = client;
    this.#nodes = new LockNodes(client, options.path);
    this.#scope = scope;
    this.#options = options;
    this.session = LockSession.of(client);
  }

  get breadcrumbPath(): string {
    return this.#nodes.breadcrumbPath;
  }

  nameHere(recorded: string): string {
    return this.#nodes.nameHere(recorded);
  }

  /**
   * The version that a resource in ZooKeeper checks for this place. Undefined before
   * it was announced.
   */
  breadcrumbVersion(place: Place): number | undefined {
    return this.#announced?.place === place.name ? this.#announced.version : undefined;
  }

  // --- having the lock ---

  claim({ guid }: Entry): boolean {
    return this.session.claim(this.#nodes.lockPath, guid);
  }

  isClaimedFor({ guid }: Entry): boolean {
    return this.session.claimant(this.#nodes.lockPath) === guid;
  }

  onUnclaimed(listener: () => void): () => void {
    return this.session.onUnclaimed(this.#nodes.lockPath, listener);
  }

  async take(entry: Entry, signal: AbortSignal): Promise<TakenLock | undefined> {
    this.#requireTimeout();
    const { acl, create } = this.#options;
    const make = () =>
      this.#client.create(this.#nodes.lockPath, this.#data(entry), {
        ephemeral: true,
        acl,
        signal,
      });
    return this.#attempt(async () => {
      // The reads are sent behind the create, on the same connection. They show the state after it,
      // or a later one.
      const [made, read] = await Promise.allSettled([make(), this.#nodes.picture(signal)]);
      let stat: NodeStat | null;
      try {
        if (made.status === 'fulfilled') {
          ({ stat } = made.value);
        } else {
          if (codeOf(made.reason) !== 'NO_NODE') throw made.reason;
          if (!create) throw noElection(this.#nodes.path);
          await this.#client.ensurePath(this.#nodes.path, { acl, signal });
          ({ stat } = await make());
        }
      } catch (error) {
        if (codeOf(error) === 'NODE_EXISTS') return undefined;
        throw error;
      }
      // Servers before 3.5 do not tell.
      stat ??= (await this.#client.get(this.#nodes.lockPath, { signal })).stat;
      const place = this.#placeOf(stat);
      const isBehind = read.status === 'fulfilled' && read.value.lock?.stat.czxid === place.token;
      const picture = isBehind ? read.value : await this.#nodes.picture(signal);
      // A leader of by now has a higher token, and that says nothing about the store.
      if (picture.lock === undefined || !isThat(picture.lock, place)) return undefined;
      return { place, reading: this.#reading(picture) };
    });
  }

  async enter(entry: Entry, signal: AbortSignal): Promise<Place> {
    const taken = this.claim(entry) ? await this.take(entry, signal) : undefined;
    if (taken === undefined) throw new StoreUnavailableError('somebody else has the lock');
    return taken.place;
  }

  async leave(entry: Entry, _place: Place | undefined, signal: AbortSignal): Promise<void> {
    return this.#attempt(async () => {
      // Without a claim it has made none, or its lock went with its session.
      if (!this.isClaimedFor(entry)) return;
      // A request that had no answer may have been carried out, without this server knowing yet.
      await this.#client.sync(this.#nodes.path, { signal });
      const lock = await this.#nodes.lock(signal);
      if (lock !== undefined && lock.stat.ephemeralOwner === this.session.id) {
        await this.#nodes.deleteLock(lock, signal);
      }
      if (this.isClaimedFor(entry)) this.session.unclaim(this.#nodes.lockPath);
    });
  }

  async survey(signal: AbortSignal): Promise<Survey> {
    return this.#attempt(async () => {
      const picture = await this.#nodes.picture(signal);
      return { holder: this.#holderOf(picture.lock), reading: this.#reading(picture) };
    });
  }

  async watchHolder(signal: AbortSignal): Promise<Watched<Holder | undefined>> {
    return this.#watchLock(signal, (lock) => this.#holderOf(lock));
  }

  // --- the record ---

  async read(signal: AbortSignal): Promise<LockReading> {
    return this.#attempt(async () => this.#reading(await this.#nodes.picture(signal)));
  }

  async look(
    signal: AbortSignal,
  ): Promise<{ readonly reading: LockReading; readonly names: readonly string[] }> {
    return this.#attempt(async () => {
      const picture = await this.#nodes.picture(signal);
      return { reading: this.#reading(picture), names: this.#nodes.names(picture.lock) };
    });
  }

  async sync(signal: AbortSignal): Promise<void> {
    await this.#attempt(() => this.#client.sync(this.#nodes.path, { signal }));
  }

  async list(signal: AbortSignal): Promise<readonly string[]> {
    return this.#attempt(async () => this.#nodes.names(await this.#nodes.lock(signal)));
  }

  async members(signal: AbortSignal): Promise<readonly Member[]> {
    return this.#attempt(async () => {
      const { own, breadcrumb, lock } = await this.#nodes.picture(signal);
      if (lock === undefined) return [];
      const { czxid } = lock.stat;
      const name = placeName(this.#nodes.lockPath, czxid);
      const holding = own?.record?.holding;
      const isOurLeader = holding !== undefined && leaderPlaceIn(this, own?.record) === name;
      // A holder that is not active yet may be one of ours. It leads only when the record says so.
      const isActive =
        breadcrumb !== undefined &&
        breadcrumb.stat.mzxid > czxid &&
        // One of ours became active after its lock had gone, and will see that.
        !isWrittenWith(own, breadcrumb);
      const candidate = isOurLeader ? holding.candidate : candidateOf(lock, czxid);
      return [{ name, token: czxid, candidate, isOurs: isOurLeader || !isActive }];
    });
  }

  /** Becomes active, or tells more about an active member: writes the record and the breadcrumb. */
  async commit(
    place: Place,
    record: QueueRecord,
    version: Version,
    signal: AbortSignal,
  ): Promise<CommitResult> {
    const { own, lock: seen, breadcrumb } = parseVersion(version);
    // The transaction can only check that there is a lock. Under another member's lock, an
    // announcement would replace the breadcrumb of the leader.
    if (seen !== place.token) return { outcome: 'gone' };
    if (own === undefined) throw noElection(this.#nodes.path);
    const isWritten = breadcrumb !== undefined && isOf(breadcrumb, place);
    const data = this.#data({ candidate: { id: record.holding?.candidate.id ?? '' } });
    const transaction = this.#client
      .transaction()
      .check(this.#nodes.lockPath)
      .set(this.#nodes.path, encode(record, isWritten ? breadcrumb.mzxid : undefined), own);
    if (isWritten) transaction.check(this.#nodes.breadcrumbPath, breadcrumb.version);
    else if (breadcrumb !== undefined) {
      transaction.set(this.#nodes.breadcrumbPath, data, breadcrumb.version);
    } else {
      transaction.create(this.#nodes.breadcrumbPath, data, { acl: this.#options.acl });
    }
    return this.#attempt(async () => {
      const [committed, lock, now] = await Promise.allSettled([
        transaction.commit({ signal }),
        this.#nodes.lock(signal),
        this.#nodes.get(this.#nodes.breadcrumbPath, signal),
      ]);
      if (committed.status === 'rejected') return outcomeOf(committed.reason, 0);
      // As with a confirmation: the transaction alone could have met another member's lock.
      if (lock.status === 'rejected') throw lock.reason;
      if (lock.value === undefined || !isThat(lock.value, place)) return { outcome: 'gone' };
      if (now.status === 'rejected') throw now.reason;
      if (now.value === undefined) return { outcome: 'conflict' };
      const { stat } = now.value;
      const written = committed.value.results[1]?.stat;
      // One of theirs has followed meanwhile. That breadcrumb is its own.
      const ours = isWritten ? breadcrumb.mzxid : written?.mzxid;
      if (stat.mzxid !== ours) return { outcome: 'conflict' };
      this.#announced = { place: place.name, version: stat.version };
      return {
        outcome: 'ok',
        version: formatVersion({
          own: written?.version ?? own + 1,
          lock: place.token,
          breadcrumb: { version: stat.version, mzxid: stat.mzxid, leader: place.token },
        }),
      };
    });
  }

  /** A clean end: no leader needs to be fenced any more. */
  async release(
    place: Place,
    record: QueueRecord | undefined,
    version: Version,
    signal: AbortSignal,
  ): Promise<CommitResult> {
    return this.#attempt(async () => {
      // The lock may go with its session at any moment. A late deletion would meet the lock of
      // another member.
      if (place.session !== this.session.id) return { outcome: 'gone' };
      const lock = await this.#nodes.lock(signal);
      // Belief has ended, and only an operator could delete the lock between this look and the
      // transaction. Then it may become another member's. That one would lose a lock, and race
      // again. It cannot lead twice.
      if (lock === undefined || !isThat(lock, place)) {
        this.#unclaim(place);
        return { outcome: 'gone' };
      }
      const { own, breadcrumb } = parseVersion(version);
      const transaction = this.#client.transaction();
      if (record !== undefined && own !== undefined) {
        transaction.set(this.#nodes.path, encode(record, undefined), own);
        if (breadcrumb !== undefined && isOf(breadcrumb, place)) {
          transaction.delete(this.#nodes.breadcrumbPath, breadcrumb.version);
        }
      }
      transaction.delete(this.#nodes.lockPath, lock.stat.version);
      let outcome: CommitResult = { outcome: 'ok', version: undefined };
      try {
        await transaction.commit({ signal });
      } catch (error) {
        outcome = outcomeOf(error, record === undefined ? 0 : undefined);
      }
      if (outcome.outcome !== 'conflict') this.#unclaim(place);
      return outcome;
    });
  }

  async amend(change: Amendment, signal: AbortSignal): Promise<CommitResult> {
    const { record, version, present, remove = [] } = change;
    const { own, lock: seen, breadcrumb } = parseVersion(version);
    return this.#attempt(async () => {
      if (own === undefined) {
        await this.init(signal);
        return { outcome: 'conflict' };
      }
      const lock = await this.#nodes.lock(signal);
      const name = this.#nodes.names(lock)[0];
      const needed = present === undefined ? remove : [present, ...remove];
      if (needed.some((one) => one !== name)) return { outcome: 'gone' };
      const last = breadcrumb?.leader === undefined ? undefined : breadcrumb;
      // An announcement is taken back. No leader by it would have to be waited out or fenced.
      const takenBack = record.holding === undefined ? last : undefined;
      // Versions begin anew when the breadcrumb is made anew. Other makes do that
      // without our record.
      const isOther = lock?.stat.czxid !== seen;
      if (takenBack !== undefined && isOther) return { outcome: 'conflict' };
      const kept = takenBack === undefined ? last?.mzxid : undefined;
      const transaction = this.#client
        .transaction()
        .set(this.#nodes.path, encode(record, kept), own);
      if (lock !== undefined && remove.length > 0) {
        transaction.delete(this.#nodes.lockPath, lock.stat.version);
      } else if (present !== undefined) {
        transaction.check(this.#nodes.lockPath);
      }
      if (takenBack !== undefined)
        transaction.delete(this.#nodes.breadcrumbPath, takenBack.version);
      try {
        const { results } = await transaction.commit({ signal });
        const next = {
          own: results[0]?.stat?.version ?? own + 1,
          lock: remove.length > 0 ? undefined : seen,
          breadcrumb: takenBack === undefined ? breadcrumb : undefined,
        };
        return { outcome: 'ok', version: formatVersion(next) };
      } catch (error) {
        return outcomeOf(error, needed.length > 0 ? 1 : noOperation);
      }
    });
  }

  async remove(name: string, signal: AbortSignal): Promise<void> {
    await this.#attempt(async () => {
      const lock = await this.#nodes.lock(signal);
      if (lock === undefined || this.#nodes.names(lock)[0] !== name) return;
      await this.#nodes.deleteLock(lock, signal);
    });
  }

  async outdate(version: Version, signal: AbortSignal): Promise<boolean> {
    const { own, breadcrumb } = parseVersion(version);
    return this.#attempt(async () => {
      const node = await this.#nodes.get(this.#nodes.path, signal);
      if (node === undefined || own === undefined) return node === own;
      if (node.stat.version !== own) return false;
      const { record, breadcrumb: noted } = this.#nodes.ownOf(node);
      // The transaction that wrote both tells which breadcrumb belongs to the record, or the
      // record itself does.
      const kept = breadcrumb?.leader === undefined ? noted : breadcrumb.mzxid;
      const data = record === undefined ? '' : encode(record, kept);
      try {
        await this.#client.set(this.#nodes.path, data, { version: own, signal });
      } catch (error) {
        const code = codeOf(error);
        if (code !== 'BAD_VERSION' && code !== 'NO_NODE') throw error;
        return false;
      }
      return true;
    });
  }

  // --- watching ---

  async watchPlace(name: string, signal: AbortSignal): Promise<Watched<boolean>> {
    return this.#watchLock(signal, (lock) => this.#nodes.names(lock)[0] === name);
  }

  async watchList(signal: AbortSignal): Promise<Watched<readonly string[]>> {
    return this.#watchLock(signal, (lock) => this.#nodes.names(lock));
  }

  async watchRecord(signal: AbortSignal): Promise<Watched<LockReading>> {
    return this.#attempt(async () => {
      const { value, changed, cancel } = await this.#nodes.watchPicture(signal);
      return { value: this.#reading(value), changed, cancel };
    });
  }

  async init(signal: AbortSignal): Promise<void> {
    const { acl, create } = this.#options;
    await this.#attempt(async () => {
      if (create) await this.#client.ensurePath(this.#nodes.path, { acl, signal });
      else if ((await this.#client.stat(this.#nodes.path, { signal })).stat === null) {
        throw noElection(this.#nodes.path);
      }
    });
  }

  #reading(picture: Picture): LockReading {
    const { own, breadcrumb, lock } = picture;
    const [name] = this.#nodes.names(lock);
    const isAnnounced = name !== undefined && leaderPlaceIn(this, own?.record) === name;
    if (isAnnounced && breadcrumb !== undefined && isWrittenWith(own, breadcrumb)) {
      this.#announced = { place: name, version: breadcrumb.stat.version };
    }
    return readingOf(this.#nodes, this.#scope, picture, this.session.id);
  }

  /** The belief that is safe beside members that do not wait was derived from D. */
  #requireTimeout(): void {
    const { leaseMs } = this.#scope.timing;
    const grantedMs = this.#client.session?.timeoutMs ?? leaseMs;
    if (grantedMs >= leaseMs) return;
    throw new StoreUnsuitableError(
      `this session was granted ${grantedMs} ms, the one before it ${leaseMs} ms, from which the ` +
        'timing was derived: make another backend from the client, and give all servers the same ' +
        'tickTime and maxSessionTimeout',
    );
  }

  #unclaim(place: Place): void {
    const { guid } = place as LockPlace;
    // A later claim is another candidate's.
    if (this.session.claimant(this.#nodes.lockPath) === guid)
      this.session.unclaim(this.#nodes.lockPath);
  }

  #placeOf({ czxid, ephemeralOwner }: NodeStat): LockPlace {
    return {
      name: placeName(this.#nodes.lockPath, czxid),
      token: czxid,
      session: ephemeralOwner,
      guid: this.session.claimant(this.#nodes.lockPath),
    };
  }

  #holderOf(lock: NodeContent | undefined): Holder | undefined {
    if (lock === undefined) return undefined;
    const place = this.#placeOf(lock.stat);
    return { name: place.name, place, isOfOurSession: place.session === this.session.id };
  }

  async #watchLock<Value>(
    signal: AbortSignal,
    toValue: (lock: NodeContent | undefined) => Value,
  ): Promise<Watched<Value>> {
    return this.#attempt(async () => {
      const watch = await this.#client.watch(this.#nodes.lockPath, { signal });
      return {
        value: toValue(watch.value),
        changed: watch.changed,
        cancel: () => watch.cancel(),
      };
    });
  }

  #data({ candidate }: { readonly candidate: { readonly id: string } }): string | Uint8Array {
    return this.#options.activeData ?? candidate.id;
  }

  async #attempt<T>(operation: () => Promise<T>): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      throw storeError(error, this.#nodes.path);
    }
  }
}

/** The index of no operation. */
const noOperation = -1;

/**
 * @param lockIndex the operation whose refusal says that the lock is gone. Undefined: the last one
 */
function outcomeOf(error: unknown, lockIndex: number | undefined): CommitResult {
  const refusal = refusalOf(error);
  if (refusal?.code === 'NO_NODE') {
    return { outcome: refusal.index === lockIndex ? 'gone' : 'conflict' };
  }
  if (refusal?.code === 'BAD_VERSION' || refusal?.code === 'NODE_EXISTS') {
    return { outcome: 'conflict' };
  }
  throw error;
}

function noElection(path: string): StoreUnsuitableError {
  return new StoreUnsuitableError(
    `there is no node ${path}: make it with ensureParentNode or \`incumbent init\`, or let candidates ` +
      'make it (`create: true`)',
  );
}
