/**
 * Hadoop's nodes as a store of locks. Our record stands in the node of the election. Whenever one
 * of ours becomes active or stops, it is written in the same transaction as the breadcrumb. So one
 * can tell whether they belong together, and whether a member of another make has led since.
 */

import type { Scope } from '../../core/contest.ts';
import type { LockReading, LockStore, TakenLock } from '../../mechanisms/lock/store.ts';
import { leaderPlaceIn } from '../../mechanisms/queue/named-places.ts';
import type {
  Amendment,
  CommitResult,
  Entry,
  Member,
  Place,
  Version,
} from '../../mechanisms/queue/store.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import type { NodeStat, ZooKeeperClient } from './client.ts';
import { codeOf } from './client.ts';
import { candidateOf, hadoopPaths } from './hadoop-format.ts';
import type { LockStoreOptions } from './held-node.ts';
import { HeldNode, noElection, outcomeOf } from './held-node.ts';
import type { Picture } from './lock-nodes.ts';
import { encode, isWrittenWith, LockNodes } from './lock-nodes.ts';
import { readingOf } from './lock-reading.ts';
import { isThat, placeName } from './lock-session.ts';
import { formatVersion, isOf, parseVersion } from './lock-version.ts';

export class ZooKeeperLockStore extends HeldNode implements LockStore {
  readonly breadcrumbPath: string;
  /** The version of the breadcrumb that belongs to our last announced place. */
  #announced: { readonly place: string; readonly version: number } | undefined;

  /** @param path the node of the election */
  constructor(client: ZooKeeperClient, scope: Scope, path: string, options: LockStoreOptions) {
    const paths = hadoopPaths(path);
    super(client, scope, new LockNodes(client, paths), options);
    this.breadcrumbPath = paths.breadcrumb;
  }

  /**
   * The version that a resource in ZooKeeper checks for this place. Undefined before
   * it was announced.
   */
  breadcrumbVersion(place: Place): number | undefined {
    return this.#announced?.place === place.name ? this.#announced.version : undefined;
  }

  async take(entry: Entry, signal: AbortSignal): Promise<TakenLock | undefined> {
    this.requireTimeout();
    const { acl, create } = this.options;
    const make = () =>
      this.client.create(this.nodes.lockPath, this.data(entry), {
        ephemeral: true,
        acl,
        signal,
      });
    return this.attempt(async () => {
      // The reads are sent behind the create, on the same connection. They show the state after it,
      // or a later one.
      const [made, read] = await Promise.allSettled([make(), this.nodes.picture(signal)]);
      let stat: NodeStat | null;
      try {
        if (made.status === 'fulfilled') {
          ({ stat } = made.value);
        } else {
          if (codeOf(made.reason) !== 'NO_NODE') throw made.reason;
          if (!create) throw noElection(this.nodes.path);
          await this.client.ensurePath(this.nodes.path, { acl, signal });
          ({ stat } = await make());
        }
      } catch (error) {
        if (codeOf(error) === 'NODE_EXISTS') return undefined;
        throw error;
      }
      // Servers before 3.5 do not tell.
      stat ??= (await this.client.get(this.nodes.lockPath, { signal })).stat;
      const place = this.placeOf(stat);
      const isBehind = read.status === 'fulfilled' && read.value.lock?.stat.czxid === place.token;
      const picture = isBehind ? read.value : await this.nodes.picture(signal);
      // A leader of by now has a higher token, and that says nothing about the store.
      if (picture.lock === undefined || !isThat(picture.lock, place)) return undefined;
      return { place, reading: this.reading(picture) };
    });
  }

  async members(signal: AbortSignal): Promise<readonly Member[]> {
    return this.attempt(async () => {
      const { own, breadcrumb, lock } = await this.nodes.picture(signal);
      if (lock === undefined) return [];
      const { czxid } = lock.stat;
      const name = placeName(this.nodes.lockPath, czxid);
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
    if (own === undefined) throw noElection(this.nodes.path);
    const isWritten = breadcrumb !== undefined && isOf(breadcrumb, place);
    const data = this.data({ candidate: { id: record.holding?.candidate.id ?? '' } });
    const transaction = this.client
      .transaction()
      .check(this.nodes.lockPath)
      .set(this.nodes.path, encode(record, isWritten ? breadcrumb.mzxid : undefined), own);
    if (isWritten) transaction.check(this.breadcrumbPath, breadcrumb.version);
    else if (breadcrumb !== undefined) {
      transaction.set(this.breadcrumbPath, data, breadcrumb.version);
    } else {
      transaction.create(this.breadcrumbPath, data, { acl: this.options.acl });
    }
    return this.attempt(async () => {
      const [committed, lock, now] = await Promise.allSettled([
        transaction.commit({ signal }),
        this.nodes.lock(signal),
        this.nodes.get(this.breadcrumbPath, signal),
      ]);
      if (committed.status === 'rejected')
        return outcomeOf(committed.reason, (index) => index === 0);
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
    return this.attempt(async () => {
      // The lock may go with its session at any moment. A late deletion would meet the lock of
      // another member.
      if (place.session !== this.session.id) return { outcome: 'gone' };
      const lock = await this.nodes.lock(signal);
      // Belief has ended, and only an operator could delete the lock between this look and the
      // transaction. Then it may become another member's. That one would lose a lock, and race
      // again. It cannot lead twice.
      if (lock === undefined || !isThat(lock, place)) {
        this.unclaim(place);
        return { outcome: 'gone' };
      }
      const { own, breadcrumb } = parseVersion(version);
      const transaction = this.client.transaction();
      if (record !== undefined && own !== undefined) {
        transaction.set(this.nodes.path, encode(record, undefined), own);
        if (breadcrumb !== undefined && isOf(breadcrumb, place)) {
          transaction.delete(this.breadcrumbPath, breadcrumb.version);
        }
      }
      transaction.delete(this.nodes.lockPath, lock.stat.version);
      const isLock = (index: number) => record === undefined && index === 0;
      return this.commitRelease(place, transaction, isLock, signal);
    });
  }

  async amend(change: Amendment, signal: AbortSignal): Promise<CommitResult> {
    const { record, version, present, remove = [] } = change;
    const { own, lock: seen, breadcrumb } = parseVersion(version);
    return this.attempt(async () => {
      if (own === undefined) {
        await this.init(signal);
        return { outcome: 'conflict' };
      }
      const lock = await this.nodes.lock(signal);
      const name = this.nodes.names(lock)[0];
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
      const transaction = this.client.transaction().set(this.nodes.path, encode(record, kept), own);
      if (lock !== undefined && remove.length > 0) {
        transaction.delete(this.nodes.lockPath, lock.stat.version);
      } else if (present !== undefined) {
        transaction.check(this.nodes.lockPath);
      }
      if (takenBack !== undefined) transaction.delete(this.breadcrumbPath, takenBack.version);
      try {
        const { results } = await transaction.commit({ signal });
        const next = {
          own: results[0]?.stat?.version ?? own + 1,
          lock: remove.length > 0 ? undefined : seen,
          breadcrumb: takenBack === undefined ? breadcrumb : undefined,
        };
        return { outcome: 'ok', version: formatVersion(next) };
      } catch (error) {
        return outcomeOf(error, (index) => needed.length > 0 && index === 1);
      }
    });
  }

  async outdate(version: Version, signal: AbortSignal): Promise<boolean> {
    const { own, breadcrumb } = parseVersion(version);
    return this.attempt(async () => {
      const node = await this.nodes.get(this.nodes.path, signal);
      if (node === undefined || own === undefined) return node === own;
      if (node.stat.version !== own) return false;
      const { record, breadcrumb: noted } = this.nodes.ownOf(node);
      // The transaction that wrote both tells which breadcrumb belongs to the record, or the
      // record itself does.
      const kept = breadcrumb?.leader === undefined ? noted : breadcrumb.mzxid;
      const data = record === undefined ? '' : encode(record, kept);
      try {
        await this.client.set(this.nodes.path, data, { version: own, signal });
      } catch (error) {
        const code = codeOf(error);
        if (code !== 'BAD_VERSION' && code !== 'NO_NODE') throw error;
        return false;
      }
      return true;
    });
  }

  protected reading(picture: Picture): LockReading {
    const { own, breadcrumb, lock } = picture;
    const [name] = this.nodes.names(lock);
    const isAnnounced = name !== undefined && leaderPlaceIn(this, own?.record) === name;
    if (isAnnounced && breadcrumb !== undefined && isWrittenWith(own, breadcrumb)) {
      this.#announced = { place: name, version: breadcrumb.stat.version };
    }
    return readingOf(this.nodes, this.scope, picture, this.session.id);
  }
}
