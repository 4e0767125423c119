/**
 * One node of any name as a store of locks (`node-format.ts`). Members of another make write no
 * record, and leave nothing behind. So a winner assumes that one of them has led, unless the parent
 * of the node proves that nobody did.
 */

import { StoreUnavailableError } from '../../base/errors.ts';
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
import type { NodeContent, NodeStat, ZooKeeperClient } from './client.ts';
import { codeOf, refusalOf } from './client.ts';
import { candidateOf } from './hadoop-format.ts';
import type { LockPlace, LockStoreOptions } from './held-node.ts';
import { HeldNode, isMissing, noElection, outcomeOf } from './held-node.ts';
import { queueLayout } from './layout.ts';
import type { Own, Picture } from './lock-nodes.ts';
import { encode, encodeLeft, LockNodes } from './lock-nodes.ts';
import { wipedAfterOf } from './lock-reading.ts';
import { isThat, placeName } from './lock-session.ts';
import { formatVersion, parseVersion } from './lock-version.ts';
import { nodePaths, parentOf } from './node-format.ts';

/** The record, and the parent of the node that a leader makes. */
interface Vicinity {
  readonly own: Own | undefined;
  readonly parent: NodeStat | null;
}

/** How often a look at the holder begins anew because the node has changed hands. */
const maxLooks = 5;

/** A badge says what a place in a queue of ours says. */
const { dataOf, memberFrom } = queueLayout('incumbent');

export class ZooKeeperNodeStore extends HeldNode implements LockStore {
  /** @param path the node that a leader makes */
  constructor(client: ZooKeeperClient, scope: Scope, path: string, options: LockStoreOptions) {
    super(client, scope, new LockNodes(client, nodePaths(path)), options);
  }

  /** The node that exists as long as this place of ours does. */
  badgeOf(place: Place): string {
    const { guid = '' } = place as LockPlace;
    return this.#badge(guid);
  }

  async take(entry: Entry, signal: AbortSignal): Promise<TakenLock | undefined> {
    this.requireTimeout();
    const { acl, create } = this.options;
    const make = () =>
      this.client
        .transaction()
        .create(this.nodes.lockPath, this.data(entry), { ephemeral: true, acl })
        .create(this.#badge(entry.guid), dataOf(entry.candidate), { ephemeral: true, acl })
        .commit({ signal });
    return this.attempt(async () => {
      // All on one connection, which keeps the order: what was there before, and what was after.
      const [before, made, read, after] = await Promise.allSettled([
        this.#vicinity(signal),
        make(),
        this.nodes.picture(signal),
        this.#parent(signal),
      ]);
      try {
        if (made.status === 'rejected') {
          if (!isMissing(made.reason)) throw made.reason;
          if (!create) throw noElection(this.nodes.path);
          await this.client.ensurePath(this.nodes.path, { acl, signal });
          await make();
        }
      } catch (error) {
        const refusal = refusalOf(error);
        if (refusal?.code !== 'NODE_EXISTS') throw error;
        // The node of an earlier attempt was deleted by hand, and its badge was not.
        if (refusal.index === 1) await this.#deleteBadge(this.#badge(entry.guid), signal);
        return undefined;
      }
      const isOurs = (lock: NodeContent | undefined) =>
        lock !== undefined && lock.stat.ephemeralOwner === this.session.id;
      const isBehind = read.status === 'fulfilled' && isOurs(read.value.lock);
      const picture = isBehind ? read.value : await this.nodes.picture(signal);
      if (picture.lock === undefined || !isOurs(picture.lock)) return undefined;
      const place = this.placeOf(picture.lock.stat);
      const followsOurs =
        made.status === 'fulfilled' &&
        before.status === 'fulfilled' &&
        after.status === 'fulfilled' &&
        isDirectlyBehind(place, before.value, { own: picture.own, parent: after.value });
      return { place, reading: { ...this.reading(picture), mayFollowOther: !followsOurs } };
    });
  }

  override async leave(entry: Entry, place: Place | undefined, signal: AbortSignal): Promise<void> {
    if (this.isClaimedFor(entry)) {
      await this.attempt(async () => {
        await this.client.sync(this.nodes.path, { signal });
        const lock = await this.nodes.lock(signal);
        const isOurs = lock !== undefined && lock.stat.ephemeralOwner === this.session.id;
        await this.#deleteTogether(isOurs ? lock : undefined, this.#badge(entry.guid), signal);
      });
    }
    return super.leave(entry, place, signal);
  }

  async members(signal: AbortSignal): Promise<readonly Member[]> {
    return this.attempt(async () => {
      for (let looks = 0; looks < maxLooks; looks += 1) {
        const { own, lock } = await this.nodes.picture(signal);
        if (lock === undefined) return [];
        const { czxid } = lock.stat;
        const name = placeName(this.nodes.lockPath, czxid);
        const holding = own?.record?.holding;
        if (holding !== undefined && leaderPlaceIn(this, own?.record) === name) {
          return [{ name, token: czxid, candidate: holding.candidate, isOurs: true }];
        }
        const badge = await this.#badgeWith(czxid, signal);
        if (badge !== undefined) {
          const text = Buffer.from(badge.data ?? []).toString('utf8');
          const { candidate } = memberFrom(badge.path, text);
          return [{ name, token: czxid, candidate, isOurs: true }];
        }
        // One of ours takes its badge with it. So it was there as long as the node was.
        const now = await this.nodes.lock(signal);
        if (now?.stat.czxid !== czxid) continue;
        return [{ name, token: czxid, candidate: candidateOf(lock, czxid), isOurs: false }];
      }
      throw new StoreUnavailableError(
        `the node ${this.nodes.lockPath} changed hands ${maxLooks} times while it was looked at`,
      );
    });
  }

  async commit(
    place: Place,
    record: QueueRecord,
    version: Version,
    signal: AbortSignal,
  ): Promise<CommitResult> {
    const { own, lock: seen } = parseVersion(version);
    // With its record an election has lost the badge below it.
    if (seen !== place.token || own === undefined) return { outcome: 'gone' };
    const transaction = this.client
      .transaction()
      .check(this.badgeOf(place))
      .check(this.nodes.lockPath)
      .set(this.nodes.path, encode(record, undefined), own);
    return this.attempt(async () => {
      const [committed, lock] = await Promise.allSettled([
        transaction.commit({ signal }),
        this.nodes.lock(signal),
      ]);
      if (committed.status === 'rejected') {
        return outcomeOf(committed.reason, (index) => index < 2);
      }
      // As with a confirmation: the node was there, and may have been another member's.
      if (lock.status === 'rejected') throw lock.reason;
      if (lock.value === undefined || !isThat(lock.value, place)) return { outcome: 'gone' };
      const written = committed.value.results[2]?.stat?.version ?? own + 1;
      return { outcome: 'ok', version: versionOf(written, place.token) };
    });
  }

  async release(
    place: Place,
    record: QueueRecord | undefined,
    version: Version,
    signal: AbortSignal,
  ): Promise<CommitResult> {
    return this.attempt(async () => {
      // As in the layout of Hadoop: a late deletion would meet the node of another member.
      if (place.session !== this.session.id) return { outcome: 'gone' };
      const [lock, badge] = await Promise.all([
        this.nodes.lock(signal),
        this.nodes.get(this.badgeOf(place), signal),
      ]);
      if (lock === undefined || !isThat(lock, place)) {
        if (badge !== undefined) await this.#deleteBadge(this.badgeOf(place), signal);
        this.unclaim(place);
        return { outcome: 'gone' };
      }
      const { own } = parseVersion(version);
      const transaction = this.client.transaction().delete(this.nodes.lockPath, lock.stat.version);
      if (badge !== undefined) transaction.delete(this.badgeOf(place));
      if (record !== undefined && own !== undefined) {
        transaction.set(this.nodes.path, encodeLeft(record), own);
      }
      return this.commitRelease(place, transaction, (index) => index === 0, signal);
    });
  }

  async amend(change: Amendment, signal: AbortSignal): Promise<CommitResult> {
    const { record, version, present, remove = [] } = change;
    const { own, lock: seen } = parseVersion(version);
    return this.attempt(async () => {
      if (own === undefined) {
        await this.init(signal);
        return { outcome: 'conflict' };
      }
      const lock = await this.nodes.lock(signal);
      const name = this.nodes.names(lock)[0];
      const needed = present === undefined ? remove : [present, ...remove];
      if (needed.some((one) => one !== name)) return { outcome: 'gone' };
      const transaction = this.client
        .transaction()
        .set(this.nodes.path, encode(record, undefined), own);
      if (lock !== undefined && remove.length > 0) {
        transaction.delete(this.nodes.lockPath, lock.stat.version);
        const badge = await this.#badgeWith(lock.stat.czxid, signal);
        if (badge !== undefined) transaction.delete(badge.path);
      } else if (present !== undefined) {
        transaction.check(this.nodes.lockPath);
      }
      try {
        const { results } = await transaction.commit({ signal });
        const written = results[0]?.stat?.version ?? own + 1;
        return { outcome: 'ok', version: versionOf(written, remove.length > 0 ? undefined : seen) };
      } catch (error) {
        return outcomeOf(error, (index) => needed.length > 0 && index === 1);
      }
    });
  }

  override async remove(name: string, signal: AbortSignal): Promise<void> {
    await this.attempt(async () => {
      const lock = await this.nodes.lock(signal);
      if (lock === undefined || this.nodes.names(lock)[0] !== name) return;
      const badge = await this.#badgeWith(lock.stat.czxid, signal);
      await this.#deleteTogether(lock, badge?.path, signal);
    });
  }

  async outdate(version: Version, signal: AbortSignal): Promise<boolean> {
    const { own } = parseVersion(version);
    return this.attempt(async () => {
      const node = await this.nodes.get(this.nodes.path, signal);
      if (node === undefined || own === undefined) return node === own;
      if (node.stat.version !== own) return false;
      const { record } = this.nodes.ownOf(node);
      const data = record === undefined ? '' : encode(record, undefined);
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

  protected reading({ own, lock }: Picture): LockReading {
    return {
      record: own?.record,
      version: versionOf(own?.stat.version, lock?.stat.czxid),
      isTheirs: false,
      wasFenced: false,
      wipedAfter: wipedAfterOf(own),
      mayFollowOther: true,
    };
  }

  async #vicinity(signal: AbortSignal): Promise<Vicinity> {
    const [node, parent] = await Promise.all([
      this.nodes.get(this.nodes.path, signal),
      this.#parent(signal),
    ]);
    return { own: node && this.nodes.ownOf(node), parent };
  }

  async #parent(signal: AbortSignal): Promise<NodeStat | null> {
    return (await this.client.stat(parentOf(this.nodes.lockPath), { signal })).stat;
  }

  #badge(guid: string): string {
    return `${this.nodes.path}/${guid}`;
  }

  /** The badge that was made with the node of that number. Undefined: a member of another make has it. */
  async #badgeWith(
    czxid: bigint,
    signal: AbortSignal,
  ): Promise<(NodeContent & { readonly path: string }) | undefined> {
    let children: readonly string[];
    try {
      ({ children } = await this.client.getChildren(this.nodes.path, { signal }));
    } catch (error) {
      if (codeOf(error) === 'NO_NODE') return undefined;
      throw error;
    }
    const paths = children.map((child) => this.#badge(child));
    const badges = await Promise.all(paths.map((path) => this.nodes.get(path, signal)));
    for (const [index, badge] of badges.entries()) {
      if (badge?.stat.czxid === czxid) return { ...badge, path: paths[index] as string };
    }
    return undefined;
  }

  /**
   * Both at once: what the badge guards is refused as soon as another member can have the node. And
   * no reader takes a node of ours for one of theirs.
   */
  async #deleteTogether(
    lock: NodeContent | undefined,
    badge: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (lock !== undefined && badge !== undefined) {
      const both = this.client.transaction();
      both.delete(this.nodes.lockPath, lock.stat.version).delete(badge);
      try {
        await both.commit({ signal });
      } catch (error) {
        const refusal = refusalOf(error);
        if (refusal?.code !== 'NO_NODE') throw error;
        // A node that stands there by now is another member's.
        if (refusal.index === 0) await this.#deleteBadge(badge, signal);
        else await this.nodes.deleteLock(lock, signal);
      }
    } else if (badge !== undefined) await this.#deleteBadge(badge, signal);
    else if (lock !== undefined) await this.nodes.deleteLock(lock, signal);
  }

  async #deleteBadge(path: string, signal: AbortSignal): Promise<void> {
    try {
      await this.client.delete(path, { signal });
    } catch (error) {
      if (codeOf(error) !== 'NO_NODE') throw error;
    }
  }
}

/**
 * True when the last leader was ours, ended clean, and no node stood there since. Its end was the
 * last change below the parent before ours. A sibling that came or went hides that, and costs a
 * wait.
 */
function isDirectlyBehind(place: Place, before: Vicinity, after: Vicinity): boolean {
  const { own, parent } = before;
  if (own === undefined || !own.isLeft || own.stat.mzxid !== after.own?.stat.mzxid) return false;
  if (parent?.cversion === undefined || parent.pzxid !== own.stat.mzxid) return false;
  const changes = (after.parent?.cversion ?? 0) - parent.cversion;
  return after.parent?.pzxid === place.token && (changes | 0) === 1;
}

function versionOf(own: number | undefined, lock: bigint | undefined): string {
  return formatVersion({ own, lock, breadcrumb: undefined });
}
