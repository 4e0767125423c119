import {
  RecordDamagedError,
  StoreUnavailableError,
  StoreUnsuitableError,
} from '../../base/errors.ts';
import { leaderPlaceIn } from '../../mechanisms/queue/named-places.ts';
import type {
  Amendment,
  CommitResult,
  EndMark,
  Entry,
  Member,
  Place,
  QueueStore,
  RecordReading,
  Removal,
  Succession,
  Version,
  Watched,
} from '../../mechanisms/queue/store.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { decodeQueueRecord, encodeQueueRecord, isQueueRecord } from '../../record/queue-record.ts';
import type {
  NodeAcl,
  NodeContent,
  NodeStat,
  NodeWatch,
  ZooKeeperClient,
  ZooKeeperTransaction,
} from './client.ts';
import { codeOf, refusalOf } from './client.ts';
import { storeError } from './errors.ts';
import type { QueueLayout } from './layout.ts';
import { sequenceDistance } from './layout.ts';
import type { ZooKeeperPlace, ZooKeeperSession } from './session.ts';
import { ZooKeeperSuccession } from './succession.ts';

/** How many reads of members are under way at once. */
const readsAtOnce = 100;

export interface StoreSettings {
  readonly layout: QueueLayout;
  /** The election's node. */
  readonly path: string;
  readonly acl: readonly NodeAcl[];
  readonly createsNode: boolean;
  readonly namesSuccessor: boolean;
  /** The session timeout that the timing was derived from. */
  readonly sessionTimeoutMs: number;
}

/** As GoLea writes it. Its members look only whether the node is there. */
const markData = 'done';

const text = new TextDecoder();

/** One election as the children of a node, with the record as that node's data. */
export class ZooKeeperStore implements QueueStore {
  readonly session: ZooKeeperSession;
  readonly isMixed: boolean;
  readonly endMark?: EndMark;
  readonly removal?: Removal;
  readonly succession?: Succession;
  readonly isSame?: (place: Place, signal: AbortSignal) => Promise<boolean>;
  readonly #client: ZooKeeperClient;
  readonly #layout: QueueLayout;
  readonly #path: string;
  readonly #acl: readonly NodeAcl[];
  readonly #createsNode: boolean;
  readonly #sessionTimeoutMs: number;
  /** The path of the mark of the end, in layouts that have one. */
  readonly #markPath: string;
  /**
   * Guids with which a node has been made, or may have been. Kept until the node is given up: the
   * caller may have stopped waiting when the answer came.
   */
  #entered: readonly string[] = [];

  constructor(client: ZooKeeperClient, session: ZooKeeperSession, settings: StoreSettings) {
    this.#client = client;
    this.session = session;
    this.#layout = settings.layout;
    this.#path = settings.path;
    this.#acl = settings.acl;
    this.#createsNode = settings.createsNode;
    this.#sessionTimeoutMs = settings.sessionTimeoutMs;
    this.isMixed = settings.layout.isMixed;
    const { endMark, recurs } = settings.layout;
    if (recurs) this.isSame = (place, signal) => this.#isThere(place, signal);
    this.#markPath = `${settings.path}/${endMark}`;
    if (settings.namesSuccessor) {
      this.succession = new ZooKeeperSuccession(client, settings, (place) => this.#forget(place));
    }
    if (endMark === undefined) return;
    this.endMark = this.#endMark(this.#markPath);
    this.removal = this.#removal(this.#markPath);
  }

  /** The node is the election's child, by whatever path the writer knows the election. */
  nameHere(recorded: string): string {
    return `${this.#path}/${recorded.slice(recorded.lastIndexOf('/') + 1)}`;
  }

  // --- places ---

  async enter(entry: Entry, signal: AbortSignal): Promise<Place> {
    const { guid } = entry;
    this.#requireTimeout();
    if (this.#entered.includes(guid)) {
      const [found] = await this.#find(entry, signal);
      if (found !== undefined) return found;
    }
    this.#drop(guid);
    // No room to grow into: each waiting election has one of these.
    this.#entered = this.#entered.concat(guid);
    const place = await this.#attempt(async () => {
      const prefix = `${this.#path}/${this.#layout.namePrefix(guid)}`;
      const data = this.#layout.dataOf(entry.candidate);
      const options = { ephemeral: true, sequential: true, acl: this.#acl, signal };
      let made: { readonly path: string; readonly stat: NodeStat | null };
      try {
        made = await this.#client.create(prefix, data, options);
      } catch (error) {
        if (codeOf(error) !== 'NO_NODE') throw error;
        await this.#makeNode(signal);
        made = await this.#client.create(prefix, data, options);
      }
      // Servers before 3.5 do not tell what they have made.
      const stat = made.stat ?? (await this.#client.stat(made.path, { signal })).stat;
      return stat === null ? undefined : this.#place(made.path, stat, guid);
    });
    if (place === undefined || !this.#claim(place)) {
      const [found] = await this.#find(entry, signal);
      if (found === undefined) {
        throw new StoreUnavailableError(`the node made below ${this.#path} is gone already`);
      }
      return found;
    }
    return place;
  }

  /** The belief that is safe beside members that do not wait was derived from this timeout. */
  #requireTimeout(): void {
    const grantedMs = this.#client.session?.timeoutMs ?? this.#sessionTimeoutMs;
    if (!this.isMixed || grantedMs >= this.#sessionTimeoutMs) return;
    throw new StoreUnsuitableError(
      `this session was granted ${grantedMs} ms, the one before it ${this.#sessionTimeoutMs} ms, from ` +
        'which the timing was derived: make another backend from the client, and give all servers ' +
        'the same tickTime and maxSessionTimeout',
    );
  }

  async leave(entry: Entry, place: Place | undefined, signal: AbortSignal): Promise<void> {
    const places = place === undefined ? await this.#findAll(entry, signal) : [place];
    for (const each of places) {
      if (!(await this.#isAnothers(each, signal))) await this.remove(each.name, signal);
      this.#forget(each);
    }
    this.#drop(entry.guid);
  }

  async remove(name: string, signal: AbortSignal): Promise<void> {
    await this.#attempt(async () => {
      try {
        await this.#client.delete(name, { signal });
      } catch (error) {
        if (codeOf(error) !== 'NO_NODE') throw error;
      }
    });
  }

  async list(signal: AbortSignal): Promise<readonly string[]> {
    return this.#attempt(async () => {
      try {
        const { children } = await this.#client.getChildren(this.#path, { signal });
        return this.#inOrder(children);
      } catch (error) {
        if (codeOf(error) === 'NO_NODE') return [];
        throw error;
      }
    });
  }

  async members(signal: AbortSignal, most?: number): Promise<readonly Member[]> {
    const names = (await this.list(signal)).slice(0, most);
    const members: Member[] = [];
    for (let i = 0; i < names.length; i += readsAtOnce) {
      const read = names.slice(i, i + readsAtOnce).map((name) => this.#member(name, signal));
      for (const member of await Promise.all(read)) if (member !== undefined) members.push(member);
    }
    return members;
  }

  async watchPlace(name: string, signal: AbortSignal): Promise<Watched<boolean>> {
    const watched = await this.#attempt(() => this.#client.watch(name, { signal }));
    return watchedOf(watched.value !== undefined, watched);
  }

  async watchList(signal: AbortSignal): Promise<Watched<readonly string[]>> {
    return this.#attempt(async () => {
      try {
        const watched = await this.#client.watchChildren(this.#path, { signal });
        return {
          value: this.#inOrder(watched.value.children),
          changed: watched.changed,
          cancel: () => watched.cancel(),
        };
      } catch (error) {
        if (codeOf(error) !== 'NO_NODE') throw error;
        const watched = await this.#client.watch(this.#path, { signal });
        return { value: [], changed: watched.changed, cancel: () => watched.cancel() };
      }
    });
  }

  directlyFollows(place: Place, previous: string): boolean {
    const sequenceOf = (name: string) =>
      this.#layout.sequenceOf(name.slice(name.lastIndexOf('/') + 1));
    const mine = sequenceOf(place.name);
    const theirs = sequenceOf(previous);
    return mine !== undefined && theirs !== undefined && sequenceDistance(theirs, mine) === 1;
  }

  // --- the record ---

  async read(signal: AbortSignal): Promise<RecordReading> {
    return this.#attempt(async () => {
      try {
        return this.#reading(await this.#client.get(this.#path, { signal }));
      } catch (error) {
        if (codeOf(error) === 'NO_NODE') return this.#reading(undefined);
        throw error;
      }
    });
  }

  async look(
    signal: AbortSignal,
  ): Promise<{ readonly reading: RecordReading; readonly names: readonly string[] }> {
    // One session answers in the order of the requests, so the list is not older than the record.
    const [reading, names] = await Promise.all([this.read(signal), this.list(signal)]);
    const leader = leaderPlaceIn(this, reading.record);
    if (leader === undefined || names.includes(leader)) return { reading, names };
    // The leader may have gone between the two, by a clean end. The record says so by now.
    const later = await this.read(signal);
    if (later.version === reading.version) return { reading, names };
    // The list must not be older than the record.
    return { reading: later, names: await this.list(signal) };
  }

  async watchRecord(signal: AbortSignal): Promise<Watched<RecordReading>> {
    const watched = await this.#attempt(() => this.#client.watch(this.#path, { signal }));
    const { changed, value } = watched;
    return { value: this.#reading(value), changed, cancel: () => watched.cancel() };
  }

  async sync(signal: AbortSignal): Promise<void> {
    await this.#attempt(() => this.#client.sync(this.#path, { signal }));
  }

  async commit(
    place: Place,
    record: QueueRecord,
    version: Version,
    signal: AbortSignal,
  ): Promise<CommitResult> {
    if (await this.#isAnothers(place, signal)) return { outcome: 'gone' };
    const written = this.#write(signal, record, version, (transaction) =>
      transaction.check(place.name),
    );
    if (!this.#layout.recurs) return written;
    // Sent behind it: the name may have become another candidate's between the two.
    const [result, isAnothers] = await Promise.all([written, this.#isAnothers(place, signal)]);
    return isAnothers ? { outcome: 'gone' } : result;
  }

  async release(
    place: Place,
    record: QueueRecord | undefined,
    version: Version,
    signal: AbortSignal,
  ): Promise<CommitResult> {
    const isAnothers = await this.#isAnothers(place, signal);
    if (record === undefined) {
      if (!isAnothers) await this.remove(place.name, signal);
      this.#forget(place);
      return { outcome: 'ok', version };
    }
    if (isAnothers) {
      this.#forget(place);
      return { outcome: 'gone' };
    }
    const result = await this.#write(signal, record, version, (transaction) =>
      transaction.delete(place.name),
    );
    if (result.outcome !== 'conflict') this.#forget(place);
    return result;
  }

  async amend(change: Amendment, signal: AbortSignal): Promise<CommitResult> {
    const { record, version, present, remove = [], endMark } = change;
    if (version === undefined) {
      await this.#attempt(() => this.#makeNode(signal));
      return { outcome: 'conflict' };
    }
    return this.#write(signal, record, version, (transaction) => {
      if (endMark === 'set') transaction.create(this.#markPath, markData, { acl: this.#acl });
      if (endMark === 'clear') transaction.delete(this.#markPath);
      if (present !== undefined) transaction.check(present);
      for (const name of remove) transaction.delete(name);
    });
  }

  async init(signal: AbortSignal): Promise<void> {
    await this.#attempt(() => this.#client.ensurePath(this.#path, { acl: this.#acl, signal }));
  }

  // --- helpers ---

  /** The record is written first, so any other refusal means that a place is gone. */
  async #write(
    signal: AbortSignal,
    record: QueueRecord,
    version: Version,
    add: (transaction: ZooKeeperTransaction) => void,
  ): Promise<CommitResult> {
    if (typeof version !== 'number') return { outcome: 'conflict' };
    const transaction = this.#client.transaction();
    transaction.set(this.#path, encodeQueueRecord(record), version);
    add(transaction);
    try {
      const { results } = await transaction.commit({ signal });
      return { outcome: 'ok', version: results[0]?.stat?.version };
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal?.code === 'NO_NODE') return { outcome: 'gone' };
      if (refusal?.code === 'BAD_VERSION' || refusal?.code === 'NODE_EXISTS') {
        return { outcome: 'conflict' };
      }
      throw storeError(error, this.#path);
    }
  }

  #reading(content: NodeContent | undefined): RecordReading {
    return readingOf(content, this.#path, this.isMixed);
  }

  async #makeNode(signal: AbortSignal): Promise<void> {
    if (!this.#createsNode) {
      throw new StoreUnsuitableError(
        `the election node ${this.#path} does not exist, and whoever owns the election makes it: ` +
          'create it, or say `create: true` (in a URL create=true)',
      );
    }
    await this.#client.ensurePath(this.#path, { acl: this.#acl, signal });
  }

  #inOrder(children: readonly string[]): readonly string[] {
    return placesAmong(children, this.#layout).map((child) => `${this.#path}/${child}`);
  }

  async #member(name: string, signal: AbortSignal): Promise<Member | undefined> {
    return this.#attempt(async () => {
      try {
        return memberFrom(name, await this.#client.get(name, { signal }), this.#layout);
      } catch (error) {
        if (codeOf(error) === 'NO_NODE') return undefined;
        throw error;
      }
    });
  }

  /** The nodes among those of `#findAll` that we may have. */
  async #find(entry: Entry, signal: AbortSignal): Promise<readonly ZooKeeperPlace[]> {
    return (await this.#findAll(entry, signal)).filter((place) => this.#claim(place));
  }

  /**
   * Nodes of the present session that can only come from this entry. A node of an older session is
   * not ours, whatever its name (CURATOR-498). It goes away by itself.
   */
  async #findAll(entry: Entry, signal: AbortSignal): Promise<readonly ZooKeeperPlace[]> {
    if (!this.#entered.includes(entry.guid)) return [];
    await this.sync(signal);
    const names = await this.list(signal);
    const candidates = names.filter(
      (name) =>
        this.#layout.recurs ||
        this.#layout.wasMadeWith(name.slice(this.#path.length + 1), entry.guid),
    );
    const places: ZooKeeperPlace[] = [];
    for (const name of candidates) {
      const content = await this.#attempt(() =>
        this.#client.get(name, { signal }).catch((error: unknown) => {
          if (codeOf(error) === 'NO_NODE') return undefined;
          throw error;
        }),
      );
      if (content === undefined || content.stat.ephemeralOwner !== this.session.id) continue;
      const claimant = this.session.claimed.get(content.stat.czxid);
      if (claimant !== undefined && claimant !== entry.guid) continue;
      const data = content.data === null ? '' : text.decode(content.data);
      if (this.#layout.recurs && data !== this.#layout.dataOf(entry.candidate)) continue;
      places.push(this.#place(name, content.stat, entry.guid));
      // Without a guid any of them will do, but only one.
      if (this.#layout.recurs) break;
    }
    return places;
  }

  #place(name: string, { czxid, ephemeralOwner }: NodeStat, guid: string): ZooKeeperPlace {
    return { name, token: czxid, session: ephemeralOwner, recurs: this.#layout.recurs, guid };
  }

  /**
   * @returns false when another candidate of this process has found it before its maker was told
   */
  #claim(place: ZooKeeperPlace): boolean {
    if (!place.recurs) return true;
    const claimant = this.session.claimed.get(place.token);
    if (claimant !== undefined && claimant !== place.guid) return false;
    this.session.claimed.set(place.token, place.guid);
    return true;
  }

  #forget(place: Place): void {
    this.session.claimed.delete(place.token);
    this.#drop((place as ZooKeeperPlace).guid);
  }

  #drop(guid: string): void {
    this.#entered = this.#entered.filter((other) => other !== guid);
  }

  async #isThere({ name, token }: Place, signal: AbortSignal): Promise<boolean> {
    const { stat } = await this.#attempt(() => this.#client.stat(name, { signal }));
    return stat?.czxid === token;
  }

  /**
   * True where names come again and the node of that name is not the one that we made, or is not
   * there. A transaction checks names only.
   */
  async #isAnothers(place: Place, signal: AbortSignal): Promise<boolean> {
    return this.#layout.recurs && !(await this.#isThere(place, signal));
  }

  #endMark(path: string): EndMark {
    return {
      isSet: (signal) =>
        this.#attempt(async () => (await this.#client.stat(path, { signal })).stat !== null),
      watch: (signal) =>
        this.#attempt(async () => {
          const { value, changed, cancel } = await this.#client.watch(path, { signal });
          const isCreation = (event: unknown) =>
            (event as { type?: unknown } | undefined)?.type === 'created';
          return { value: value !== undefined, changed: changed.then(isCreation), cancel };
        }),
      set: (signal) =>
        this.#attempt(async () => {
          try {
            await this.#client.create(path, markData, { acl: this.#acl, signal });
          } catch (error) {
            // Ending an election that is not there succeeds.
            if (codeOf(error) !== 'NODE_EXISTS' && codeOf(error) !== 'NO_NODE') throw error;
          }
        }),
      clear: (signal) => this.remove(path, signal),
    };
  }

  #removal(markPath: string): Removal {
    return {
      markId: (signal) =>
        this.#attempt(async () => (await this.#client.stat(markPath, { signal })).stat?.czxid),
      strangers: (signal) => this.#strangers(markPath, signal),
      remove: (version, signal) => this.#removeElection(markPath, version, signal),
    };
  }

  async #strangers(markPath: string, signal: AbortSignal): Promise<readonly string[]> {
    return this.#attempt(async () => {
      try {
        const { children } = await this.#client.getChildren(this.#path, { signal });
        return children.filter(
          (child) =>
            this.#layout.sequenceOf(child) === undefined && `${this.#path}/${child}` !== markPath,
        );
      } catch (error) {
        if (codeOf(error) === 'NO_NODE') return [];
        throw error;
      }
    });
  }

  async #removeElection(
    markPath: string,
    version: Version,
    signal: AbortSignal,
  ): Promise<'removed' | 'conflict'> {
    if (typeof version !== 'number') return 'conflict';
    try {
      await this.#client
        .transaction()
        .delete(markPath)
        .delete(this.#path, version)
        .commit({ signal });
      return 'removed';
    } catch (error) {
      const code = refusalOf(error)?.code ?? '';
      if (['NO_NODE', 'BAD_VERSION', 'NOT_EMPTY'].includes(code)) return 'conflict';
      throw storeError(error, this.#path);
    }
  }

  async #attempt<T>(operation: () => Promise<T>): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      throw storeError(error, this.#path);
    }
  }
}

/**
 * Made outside of the call, and without the reading. A function made there would keep the call's
 * variables, and a waiting candidate has two of these for as long as it waits.
 */
function watchedOf<Value>(value: Value, { changed, cancel }: NodeWatch<unknown>): Watched<Value> {
  return { value, changed, cancel };
}

/**
 * @param content undefined: the election's node is not there
 * @throws RecordDamagedError, RecordTooNewError
 */
export function readingOf(
  content: NodeContent | undefined,
  path: string,
  isMixed: boolean,
): RecordReading {
  if (content === undefined) return { record: undefined, version: undefined };
  const { data, stat } = content;
  const json = data === null ? '' : text.decode(data);
  if (json === '') return { record: undefined, version: stat.version };
  if (isQueueRecord(json)) return { record: decodeQueueRecord(json, path), version: stat.version };
  if (!isMixed) throw new RecordDamagedError(path, 'its data is not ours');
  return { record: undefined, version: stat.version, isForeign: true };
}

/** The children that are places, in the order of the queue. */
export function placesAmong(children: readonly string[], layout: QueueLayout): readonly string[] {
  const places: { readonly child: string; readonly sequence: number }[] = [];
  for (const child of children) {
    const sequence = layout.sequenceOf(child);
    if (sequence !== undefined) places.push({ child, sequence });
  }
  return places.sort((a, b) => sequenceDistance(b.sequence, a.sequence)).map(({ child }) => child);
}

/** @param name the path of a place */
export function memberFrom(name: string, { data, stat }: NodeContent, layout: QueueLayout): Member {
  const child = name.slice(name.lastIndexOf('/') + 1);
  const said = layout.memberFrom(child, data === null ? '' : text.decode(data));
  return { name, token: stat.czxid, ...said };
}
