import type { Clock } from '@incumbent/zookeeper';
import type { Term } from 'incumbent';
import type { ZooKeeperGuard } from 'incumbent/zookeeper';
import { pause } from '../clock.ts';
import { gemManagers, leaveGemPlace, takeGemPlace } from '../gem-lock.ts';
import type { Nodes, Paths, PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { OpenNode, Replication } from '../redis/node-connection.ts';
import { heldAddress } from '../redis/replication.ts';
import type { ReadTail } from '../redis/tail.ts';
import type { ZooKeeperClient } from '../zookeeper-client.ts';
import type { Decision, Situation } from './decide.ts';
import { decide, isReturned, strayAct } from './decide.ts';
import { discard, isDiscarded } from './discard.ts';
import { discoverPrimary, firstRecord, goesOnAfterGem, strangePrimary } from './discover.ts';
import type { ManagerEvent, MoveReason, Trouble } from './events.ts';
import { lastCallMs, waitForViewsSince } from './fence.ts';
import { Hands } from './hands.ts';
import type { ManagerHooks } from './hooks.ts';
import { join, StreamNotes, wouldLose } from './join.ts';
import { Keeper } from './keeper.ts';
import type { Replications } from './lineage.ts';
import {
  goesOn,
  includes,
  isSameProcess,
  lineageOf,
  recordedLineage,
  writtenLineage,
} from './lineage.ts';
import { movePrimary } from './move.ts';
import type { MoveMemory, MovePlan, MoveWorld } from './move-world.ts';
import {
  everyNode,
  MoveRefusedError,
  MoveTooEarlyError,
  MoveWithdrawnError,
  memoryOf,
  PatienceError,
  refusalOf,
} from './move-world.ts';
import { foreignNodes, oncePerProcess } from './node-lists.ts';
import type { NodeSight } from './node-watcher.ts';
import type { ResolvedOptions } from './options.ts';
import type { ReportBoard } from './reports.ts';
import type { Verdict } from './strategies.ts';
import { hasEnoughReports, judge } from './strategies.ts';
import { TroubleError, troubleOf } from './trouble.ts';
import type { Wake } from './wake.ts';
import type { Wish } from './wishes.ts';
import { manualSeenNow, manualWish, openRequests } from './wishes.ts';

/**
 * The context of the elected manager: its options, its ZooKeeper client, and what it sees and
 * reports.
 */
export interface Realm {
  readonly options: ResolvedOptions;
  readonly hooks: ManagerHooks;
  readonly zk: ZooKeeperClient;
  readonly paths: Paths;
  readonly board: ReportBoard;
  readonly sightOf: (node: NodeAddress) => NodeSight;
  /** Called whenever there may be something to do. */
  readonly wake: Wake;
  readonly tell: (event: ManagerEvent) => void;
  /** Updates the status of the manager. */
  readonly show: (shown: {
    readonly record?: PrimaryRecord | undefined;
    readonly trouble?: Trouble | undefined;
    readonly verdicts?: ReadonlyMap<NodeAddress, Verdict>;
    readonly quarantined?: readonly NodeAddress[];
  }) => void;
  readonly clock: Clock;
  readonly openNode: OpenNode;
  readonly readTail?: ReadTail | undefined;
  readonly memory: MoveMemory;
}

/** After so many failed attempts to move the primary the manager lets another one lead. */
const mostAttempts = 3;

/**
 * Our clients rely for 9 s on what managers of the gem have published, because that carries no
 * term.
 */
const rubyViewMs = 1.1 * 9_000;

/** A manager that is in trouble for so long lets another one lead. */
const mostTroubleMs = 15_000;

/** The same limit if only other managers list the primary. */
const mostListMs = 1_000;

/** How long a manager waits silently for its own report. */
const mostSilenceMs = 10_000;

/** The interval of looks while the primary does not answer: it may come back empty. */
const watchEveryMs = 50;

/**
 * How long a request waits for a node without a connection. A primary may delay its copies by 5 s.
 */
const connectsWithinMs = 10_000;

/** How often at most a waiting request is told its progress. Each time is a write. */
const tellEveryMs = 1_000;

/** How often at most the position of the primary is written. */
const positionEveryMs = 900;

/** The interval of looks while a request waits for a node. */
const waitingEveryMs = 200;

/** The interval of looks while nothing happens. */
const lookEveryMs = 1_000;

/**
 * One term of the elected manager's leadership. Resolves when it is over, or when another manager
 * shall try.
 */
export async function reign(realm: Realm, term: Term<ZooKeeperGuard>): Promise<void> {
  using hands = new Hands(
    {
      id: realm.options.id,
      access: realm.options.access,
      nodeTimeoutMs: realm.options.nodeTimeoutMs,
      hooks: realm.hooks,
      tell: realm.tell,
      openNode: realm.openNode,
      readTail: realm.readTail,
    },
    term,
  );
  const ruler = new Ruler(realm, term, hands);
  await untilRead(realm.board, term.signal);
  try {
    while (!term.signal.aborted) {
      const goesOn = await ruler.look();
      if (!goesOn) return;
      await realm.wake.wait(ruler.nextLookMs(), term.signal);
    }
  } finally {
    // Not waited for: without it the place in the gem's lock goes with the session.
    leaveGemPlace(realm.zk, realm.paths).catch(() => {});
  }
}

/**
 * Waits until all reports have been read. With only some of them a few managers would be the
 * majority.
 */
async function untilRead(board: ReportBoard, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = () => {
      signal.removeEventListener('abort', end);
      resolve();
    };
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
    void board.whenRead().then(end);
  });
}

/**
 * The elected manager at work in one term of its leadership: it looks at the set again and again,
 * and does what is due.
 */
class Ruler {
  readonly #realm: Realm;
  readonly #term: Term<ZooKeeperGuard>;
  readonly #hands: Hands;
  readonly #keeper: Keeper;
  readonly #world: MoveWorld;
  #failedAttempts = 0;
  /**
   * In this look the requests have been served. A failure afterwards does not keep them waiting.
   */
  #hasServed = false;
  #toldRequestsAtMs = Number.NEGATIVE_INFINITY;
  #troubledSinceMs: number | undefined;
  #silentSinceMs: number | undefined;
  /** When the primary on record was first seen in another process. */
  #returnedAtMs: number | undefined;
  #primary: NodeAddress | undefined;
  #positionAtMs = Number.NEGATIVE_INFINITY;
  /** The last move was put off for a node that may have newer data. */
  #waitsForNode = false;
  /**
   * The requests that wait for a node: when each was first seen, and when its progress was last
   * told.
   */
  #waiting = new Map<string, { readonly sinceMs: number; toldAtMs: number }>();
  #verdicts: ReadonlyMap<NodeAddress, Verdict> = new Map();
  #known: ReadonlyMap<NodeAddress, Replication> = new Map();
  /** The processes around a primary that our managers had not judged before. */
  #firstSeen: ReadonlySet<string> = new Set();
  #errors: ReadonlyMap<NodeAddress, Error> = new Map();
  /**
   * The state in which each node has kept its configuration: its process, and the node that it
   * follows.
   */
  readonly #kept = new Map<NodeAddress, string>();
  /** Names that other managers have for nodes of the own list. */
  readonly #aliases = new Set<NodeAddress>();

  constructor(realm: Realm, term: Term<ZooKeeperGuard>, hands: Hands) {
    const { options, hooks, zk, paths, tell, clock } = realm;
    const nowMs = () => clock.monotonicMs();
    this.#realm = realm;
    this.#term = term;
    this.#hands = hands;
    this.#keeper = new Keeper(zk, paths, term, hooks);
    this.#world = {
      ...{ keeper: this.#keeper, hands, hooks, tell, nowMs },
      nodes: options.nodes,
      others: () => this.#others(),
      signal: term.signal,
      // The caller looks at the signal when the pause is over.
      sleep: (forMs) => pause(clock, forMs, term.signal),
      clientViewMs: options.clientViewMs,
      author: { manager: options.id, token: `${term.token}` },
      revokedAtMs: undefined,
      earlierRevokedAtMs: nowMs(),
      refused: new Set(),
      errors: new Map(),
      memory: realm.memory,
      managers: () => realm.board.current().size,
      othersLapseAtMs: Number.NEGATIVE_INFINITY,
      rejoin: options.rejoin,
      quarantined: new Map(),
    };
  }

  /** Looks at everything once, and does what is due. @returns false if another manager shall try */
  async look(): Promise<boolean> {
    const { board, show } = this.#realm;
    const { nowMs } = this.#world;
    this.#hasServed = false;
    try {
      await this.#expectNoRubyManagers();
      if (!this.#judge()) return true;
      await this.#look().finally(() => show({ quarantined: this.#asideNodes() }));
      this.#failedAttempts = 0;
      this.#troubledSinceMs = undefined;
      show({ trouble: undefined });
    } catch (error) {
      if (this.#term.signal.aborted) return false;
      const trouble = troubleOf(error);
      show({ trouble });
      if (!this.#hasServed) await this.#tellRequests(trouble);
      this.#troubledSinceMs ??= nowMs();
      if (this.#failedAttempts >= mostAttempts) return false;
      // The fault may be this manager's: another one may reach more nodes, or have the right list.
      const mostMs = this.#isLedByOthers() ? mostListMs : mostTroubleMs;
      const isLong = nowMs() - this.#troubledSinceMs >= mostMs;
      if (isLong && board.current().size > 1) return false;
    }
    return true;
  }

  /** Tells each requester about the trouble, because silence looks as if no manager were there. */
  async #tellRequests({ message }: Trouble): Promise<void> {
    const { zk, paths } = this.#realm;
    const now = this.#world.nowMs();
    if (now - this.#toldRequestsAtMs < tellEveryMs) return;
    this.#toldRequestsAtMs = now;
    try {
      const wishes = await openRequests(zk, paths, this.#term.signal);
      for (const wish of wishes) await wish.tell?.(message);
    } catch {
      // ZooKeeper may be the trouble.
    }
  }

  async #look(): Promise<void> {
    // Anybody may have changed the record, even by mistake.
    this.#keeper.forget();
    const { record, nodes, isMovedByGem } = await this.#keeper.read();
    this.#realm.show({ record });
    this.#primary = record?.primary ?? undefined;
    if (record === undefined) return this.#begin(nodes, undefined);
    if (isMovedByGem) return this.#begin(nodes, record);
    if (record.gemViews) await this.#outliveTheGem(record);
    // An operator's decision counts also while there is no primary.
    if (await this.#serveDecision(record)) return;
    if (record.primary === null) {
      await this.#askAll();
      await this.#setStraysAside(record);
      return this.#move('unfinished', {});
    }
    const reigning = { ...record, primary: record.primary };
    await this.#askAll(reigning);
    if (this.#isStranger) return this.#leaveToOthers(reigning);
    const decision = await this.#decide(reigning);
    const mayGoOn =
      decision.do === 'keep' || (decision.do === 'move' && decision.reason === 'lost-role');
    if (mayGoOn) await this.#keepFromCopying(reigning, this.#known);
    if (decision.do === 'keep') memoryOf(record, this.#world.memory).waitsSinceMs = undefined;
    else if (decision.do !== 'move' || decision.reason !== 'found') {
      await this.#setStraysAside(reigning);
    }
    if (decision.do === 'move') {
      const { reason } = decision;
      if (reason === 'lost-data') await this.#setPrimaryAside(record.primary);
      return this.#move(reason, reason === 'found' ? { target: decision.target } : {});
    }
    if (decision.do !== 'keep') {
      await this.#setPrimaryAside(record.primary);
      throw returnedTrouble(record.primary, decision);
    }
    const primary = this.#known.get(record.primary);
    if (primary !== undefined) {
      await this.#noteLineage(primary);
      await this.#notePosition(primary);
    }
    if (await this.#serve(record.primary)) return;
    await this.#reconcile(record.primary);
  }

  async #decide(record: Situation['record']): Promise<Decision> {
    const { options } = this.#realm;
    const { nowMs } = this.#world;
    const [nodes, others, known] = [options.nodes, this.#others(), this.#known];
    this.#returnedAtMs = isReturned({ record, known })
      ? (this.#returnedAtMs ?? nowMs())
      : undefined;
    const returnedForMs = nowMs() - (this.#returnedAtMs ?? nowMs());
    const isUp = (node: NodeAddress) => this.#isUp(node);
    const memory = memoryOf(record, this.#world.memory);
    // With `rejoin: 'always'` the data that only one node has may be lost, so no node is waited
    // for.
    const position = options.rejoin === 'always' ? undefined : await this.#keeper.position();
    const { cameBackAtMs } = memory;
    const cameBackForMs = cameBackAtMs === undefined ? undefined : nowMs() - cameBackAtMs;
    const decision = decide({
      ...{ record, nodes, others, known, isUp },
      ...{ position, cameBackForMs, returnedForMs },
    });
    // The time of this wait counts for a move that follows.
    if (decision.do === 'wait') memory.waitsSinceMs ??= this.#returnedAtMs;
    return decision;
  }

  /**
   * The primary is not on this manager's list, so another manager has to lead. Until then this one
   * keeps nodes from copying what that primary may have come back with, because no manager has
   * judged it yet.
   */
  async #leaveToOthers(record: Situation['record']): Promise<never> {
    const says = await this.#hands.look(record.primary).catch(() => undefined);
    this.#term.signal.throwIfAborted();
    const known = new Map(
      [...this.#known].filter(
        ([, { runId, primary }]) => runId !== says?.runId && primary !== heldAddress,
      ),
    );
    if (says !== undefined) {
      // Held, not set aside: the manager that judges this has to find the nodes as they are.
      const hold = (node: NodeAddress) => this.#hands.hold(node);
      await this.#keepFromCopying(record, new Map([...known, [record.primary, says]]), hold);
    }
    throw strangePrimary(record.primary, this.#realm.options.nodes);
  }

  /**
   * A replica copies its primary by itself. Replicas that may have data which the primary lacks are
   * cut off from it first.
   */
  async #keepFromCopying(
    record: Situation['record'],
    known: Replications,
    cutOff = (node: NodeAddress) => this.#hands.setAside(node),
  ): Promise<void> {
    const primary = known.get(record.primary);
    if (primary === undefined || !isReturned({ record, known })) return;
    if (this.#realm.options.rejoin === 'always') return;
    const lineage = recordedLineage(record);
    for (const [node, each] of known) {
      if (node === record.primary || each.isAside || each.loading) continue;
      if (includes(primary, lineage, each)) continue;
      try {
        await cutOff(node);
        // If the node were started again, it would copy the primary that its file names.
        await this.#hands.keepConfig(node);
      } catch (error) {
        // The other nodes must be cut off all the same.
        this.#term.signal.throwIfAborted();
        this.#errors = new Map([...this.#errors, [node, error as Error]]);
      }
    }
  }

  /**
   * Sets other primaries aside that have no data of the last term, while the set has no working
   * primary. Replicas that were once told to follow them would copy them.
   */
  async #setStraysAside(record: PrimaryRecord): Promise<void> {
    // If the record names no stream, such primaries cannot be told from others.
    if (this.#realm.options.rejoin === 'always' || record.replicationId === null) return;
    // A move looks at the former primary itself.
    const reigning = record.primary ?? record.former;
    for (const [node, each] of this.#known) {
      const act = node === reigning || !this.#isOwn(node) ? 'leave' : strayAct(each, record);
      if (act === 'leave') continue;
      try {
        if (act === 'hold') {
          await this.#hands.hold(node);
          continue;
        }
        await this.#hands.setAside(node);
        await this.#hands.keepConfig(node);
      } catch (error) {
        // The other nodes need a primary all the same.
        this.#term.signal.throwIfAborted();
        this.#errors = new Map([...this.#errors, [node, error as Error]]);
      }
    }
  }

  /** Sets the primary aside, so that no node copies what is left of its data. */
  async #setPrimaryAside(node: NodeAddress): Promise<void> {
    if (this.#known.get(node)?.role === 'primary') await this.#hands.setAside(node);
  }

  /**
   * Waits, over several looks, until no client can go by what managers of the gem have published.
   */
  async #outliveTheGem(record: PrimaryRecord): Promise<void> {
    const { nowMs } = this.#world;
    if (this.#world.othersLapseAtMs === Number.NEGATIVE_INFINITY) {
      this.#world.othersLapseAtMs = nowMs() + rubyViewMs;
    }
    if (nowMs() < this.#world.othersLapseAtMs) return;
    await this.#keeper.write({ record: { ...record, gemViews: false } });
  }

  /** A manager of the gem that came before this one in the lock leads, and not this one. */
  async #expectNoRubyManagers(): Promise<void> {
    const { zk, paths } = this.#realm;
    await takeGemPlace(zk, paths);
    const managers = await gemManagers(zk, paths);
    if (managers.length === 0) return;
    throw new TroubleError(
      'RUBY_MANAGERS',
      `managers of the Ruby gem hold its lock or wait for it (${managers.join(', ')}): stop them, ` +
        'then this one takes over',
    );
  }

  /** @returns false while this manager itself has not reported on all nodes */
  #judge(): boolean {
    const { options, board, tell, show } = this.#realm;
    const { nowMs } = this.#world;
    const reports = board.current();
    const own = reports.get(options.id);
    const isReported = (node: NodeAddress) =>
      own !== undefined && (Object.hasOwn(own.available, node) || own.unavailable.includes(node));
    if (!options.nodes.every(isReported)) {
      this.#silentSinceMs ??= nowMs();
      if (nowMs() - this.#silentSinceMs < mostSilenceMs) return false;
      throw new TroubleError(
        'FAILED',
        `the report of this manager (${options.id}) is not in place`,
      );
    }
    this.#silentSinceMs = undefined;
    const missing = options.nodes.filter(
      (node) => !hasEnoughReports(options.requiredNodeManagers, node, reports),
    );
    if (missing.length > 0) {
      throw new TroubleError(
        'TOO_FEW_MANAGERS',
        `managers that are required to report on each node: ${options.requiredNodeManagers}; that ` +
          `report at all: ${reports.size}; nodes with fewer reports: ${missing.join(', ')}`,
      );
    }
    const verdicts = new Map(
      options.nodes.map((node) => [node, judge(options.nodeStrategy, node, reports)]),
    );
    for (const [node, { state, availableTo, unavailableTo }] of verdicts) {
      if (this.#verdicts.get(node)?.state === state) continue;
      tell({
        ...{ type: 'judged', node, state },
        ...{ availableTo: availableTo.length, unavailableTo: unavailableTo.length },
      });
    }
    this.#verdicts = verdicts;
    show({ verdicts });
    return true;
  }

  #asideNodes(): readonly NodeAddress[] {
    return [...this.#known].flatMap(([node, { isAside }]) => (isAside ? [node] : []));
  }

  #isUp(node: NodeAddress): boolean {
    const { options, board } = this.#realm;
    const verdict = this.#verdicts.get(node) ?? judge(options.nodeStrategy, node, board.current());
    return verdict.state === 'available';
  }

  #isOwn(node: NodeAddress): boolean {
    return this.#realm.options.nodes.includes(node);
  }

  /** The primary on record is not on this manager's list. */
  get #isStranger(): boolean {
    return this.#primary !== undefined && !this.#isOwn(this.#primary);
  }

  #isLedByOthers(): boolean {
    const { options, board } = this.#realm;
    const foreign = foreignNodes(options.nodes, board.current());
    return this.#isStranger && foreign.includes(this.#primary ?? '');
  }

  /** Nodes that only other managers list. They are asked, but neither promoted nor told to copy. */
  #others(): readonly NodeAddress[] {
    const { options, board } = this.#realm;
    const foreign = foreignNodes(options.nodes, board.current());
    return foreign.filter((node) => !this.#aliases.has(node));
  }

  /**
   * @param record if its primary is there in another process, the others are waited for only
   *   briefly: they could copy it before it is judged
   */
  async #askAll(record?: Situation['record']): Promise<void> {
    const answers = new Map<NodeAddress, Replication>();
    const errors = new Map<NodeAddress, Error>();
    const { options, board, sightOf } = this.#realm;
    const foreign = foreignNodes(options.nodes, board.current());
    const nodes = [...options.nodes, ...foreign];
    const asking = nodes.map(async (node) => {
      const { state, error } = sightOf(node);
      // The manager's own checks do not reach the node, so asking would only wait for the timeout.
      if (state === 'unavailable' || (foreign.includes(node) && !this.#isUp(node))) {
        errors.set(node, error ?? new Error(`${node} is down`));
        return;
      }
      try {
        const isOwn = this.#isOwn(node);
        answers.set(node, await (isOwn ? this.#hands.replication(node) : this.#hands.look(node)));
      } catch (reason) {
        errors.set(node, reason as Error);
      }
    });
    const all = Promise.all(asking);
    const primary = record?.primary;
    if (record === undefined || primary === undefined || !nodes.includes(primary)) await all;
    else {
      await asking[nodes.indexOf(primary)];
      const isUrgent = this.#isUrgent(record, answers);
      await (isUrgent ? Promise.race([all, this.#world.sleep(lastCallMs)]) : all);
    }
    this.#term.signal.throwIfAborted();
    for (const node of nodes) {
      if (answers.has(node) || errors.has(node)) continue;
      errors.set(node, new Error(`${node} has not answered within ${lastCallMs} ms`));
    }
    // In the order of the lists, and not of the answers, so that messages stay the same.
    const known = new Map(
      [...options.nodes, ...foreign].flatMap((node) => {
        const answer = answers.get(node);
        return answer === undefined ? [] : [[node, answer] as const];
      }),
    );
    this.#known = oncePerProcess(known, options.nodes);
    this.#errors = errors;
    for (const node of foreign) {
      if (this.#known.has(node)) this.#aliases.delete(node);
      else if (known.has(node)) this.#aliases.add(node);
    }
    const processes = options.nodes.flatMap((node) => {
      const answer = known.get(node);
      return answer === undefined ? [] : [{ node, runId: answer.runId }];
    });
    for (const [index, { node, runId }] of processes.entries()) {
      const other = processes.slice(0, index).find((each) => each.runId === runId);
      if (other === undefined) continue;
      throw new TroubleError(
        'LAYOUT',
        `${other.node} and ${node} are one and the same Redis: name it once among the nodes`,
      );
    }
  }

  /**
   * Whether the nodes have to be cut off from the primary quickly. If a primary comes back with
   * less data, each of its replicas copies it as soon as that can, even one that is frozen now.
   * Once the primary is set aside there is time.
   */
  #isUrgent(record: Situation['record'], known: Replications): boolean {
    const primary = known.get(record.primary);
    // It may be back at the next look.
    if (primary === undefined) return this.#isUp(record.primary);
    return primary.role === 'primary' && isReturned({ record, known });
  }

  /**
   * Writes the first record: no manager of this library has led in this set, or managers of the gem
   * led since.
   * @param before the record from before managers of the gem led
   */
  async #begin(nodes: Nodes | undefined, before: PrimaryRecord | undefined): Promise<void> {
    const { options, zk, paths } = this.#realm;
    // A client that hears nothing may still write in the term that the gem's move has ended.
    if (before !== undefined) await waitForViewsSince(this.#world.nowMs(), before, this.#world);
    await this.#askAll();
    this.#expectNoRefusal();
    const available = options.nodes.filter((node) => this.#isUp(node));
    const found = discoverPrimary({
      ...{ nodes, all: options.nodes, available },
      ...{ known: this.#known, errors: this.#errors },
    });
    const says = this.#known.get(found.primary);
    // An empty replica tells nothing about the data of its term.
    const replication = found.isUp || says?.isEmpty === false ? says : undefined;
    const manualSeen = await manualSeenNow(zk, paths, this.#term.signal);
    const gemViews = nodes !== undefined;
    const more = { viewMs: options.clientViewMs, gemViews, ...this.#world.author, manualSeen };
    const first = firstRecord(found.primary, replication, more);
    const record = before === undefined ? first : goesOnAfterGem(before, first, replication);
    this.#world.othersLapseAtMs = Number.NEGATIVE_INFINITY;
    await this.#keeper.write(
      found.isUp ? { record, nodes: this.#nodesAround(found.primary) } : { record },
    );
    this.#firstSeen = new Set([...this.#known.values()].map(({ runId }) => runId));
    this.#realm.wake.call();
  }

  async #move(
    reason: MoveReason,
    more: Pick<MovePlan, 'target' | 'withPublication'>,
  ): Promise<void> {
    const { board } = this.#realm;
    const reports = [...board.current().values()];
    const latencyMs = (node: NodeAddress) => {
      const seen = reports.flatMap(({ available }) => available[node] ?? []);
      const sum = seen.reduce((total, each) => total + each, 0);
      return seen.length === 0 ? Number.POSITIVE_INFINITY : (1_000 * sum) / seen.length;
    };
    const plan: MovePlan = {
      reason,
      available: everyNode(this.#world).filter((node) => this.#isUp(node)),
      latencyMs,
      unavailableTo: (node) => this.#verdicts.get(node)?.unavailableTo.length ?? 0,
      ...more,
    };
    const hasWaited = this.#waitsForNode;
    this.#waitsForNode = false;
    try {
      await movePrimary(plan, this.#world);
      this.#failedAttempts = 0;
    } catch (error) {
      this.#waitsForNode = error instanceof PatienceError;
      if (!this.#term.signal.aborted && !(error instanceof MoveRefusedError)) {
        if (!this.#waitsForNode) this.#failedAttempts += 1;
        // While the move waits for a node, it is tried five times a second. The log has that once.
        const isTold = hasWaited && this.#waitsForNode;
        if (!isTold) this.#realm.tell({ type: 'move-failed', reason, error: error as Error });
      }
      throw error;
    } finally {
      const { record } = await this.#keeper.read().catch(() => ({ record: undefined }));
      if (record !== undefined) this.#realm.show({ record });
    }
    this.#realm.wake.call();
  }

  nextLookMs(): number {
    if (this.#isPrimaryShaky()) return watchEveryMs;
    const isWaiting = this.#waiting.size > 0 || this.#waitsForNode || this.#isStranger;
    return isWaiting ? waitingEveryMs : lookEveryMs;
  }

  /** The last check of the primary was bad, and it does not count as down yet. */
  #isPrimaryShaky(): boolean {
    const node = this.#primary;
    if (node === undefined) return false;
    const { state, failures } = this.#realm.sightOf(node);
    return state === 'available' && failures > 0;
  }

  /**
   * Serves an operator's decision about a node that is set aside. @returns whether something was
   * done
   */
  async #serveDecision(record: PrimaryRecord): Promise<boolean> {
    const { zk, paths, tell, wake } = this.#realm;
    const wishes = await openRequests(zk, paths, this.#term.signal);
    const wish = wishes.find(({ action }) => action !== undefined);
    if (wish === undefined) return false;
    this.#hasServed = true;
    const { node, publication, action } = wish;
    try {
      this.#requireManaged(node);
      if (action === 'keep') {
        await this.#expectAside(node, record);
        await this.#move('keep', { target: node, withPublication: publication });
      } else {
        const primary = await discard(node, record, this.#world);
        this.#world.quarantined.delete(node);
        tell({ type: 'reconciled', node, primary });
        await wish.fulfil?.({ primary, term: record.term });
        await this.#hands.keepConfig(node);
      }
    } catch (error) {
      this.#term.signal.throwIfAborted();
      if (error instanceof MoveWithdrawnError) return true;
      const { record: after } = await this.#keeper.read();
      const words = action === 'keep' ? refusalOf(error as Error, record, after) : undefined;
      await wish.refuse?.(words ?? (error as Error).message);
      throw error;
    }
    wake.call();
    return true;
  }

  /**
   * Refuses to `keep` the data of a node that is not set aside while the primary works. A `keep`
   * waits for nothing, and a replica may lack the last writes. A planned failover waits for them.
   */
  async #expectAside(node: NodeAddress, record: PrimaryRecord): Promise<void> {
    const { primary } = record;
    if (primary === null || !this.#isUp(primary)) return;
    const [own, says] = await Promise.all(
      [primary, node].map((each) => this.#hands.replication(each).catch(() => undefined)),
    );
    this.#term.signal.throwIfAborted();
    if (own?.role !== 'primary' || own.loading || !isSameProcess(record, own)) return;
    if (node === primary) throw new MoveRefusedError(`${node} is the primary already`);
    // If the node does not answer, the move reports that.
    if (says === undefined || says.isAside) return;
    throw new MoveRefusedError(
      `${node} is not set aside, and ${primary} is the primary: use incumbent-redis failover ${node}`,
    );
  }

  /** Notes in the record the present stream of the primary, and its process. */
  async #noteLineage(primary: Replication): Promise<void> {
    const { record } = await this.#keeper.read();
    const { replicationId, runId, loading } = primary;
    if (record === undefined || loading) return;
    const isNoted = record.lineage !== undefined || record.replicationId === null;
    if (record.replicationId === replicationId && record.runId === runId && isNoted) return;
    const before = recordedLineage(record);
    // Another process may have lost data. So it counts only with what it says itself.
    const now = isSameProcess(record, primary)
      ? goesOn(before, primary)
      : lineageOf(primary, before);
    const lineage = writtenLineage(now);
    const { discarded, ...going } = record;
    // An operator's `discard` was about the process that is gone.
    const more = record.runId === runId && discarded !== undefined ? { discarded } : {};
    await this.#keeper.write({ record: { ...going, ...more, replicationId, runId, lineage } });
  }

  async #notePosition({ replicationId: stream, offset, loading }: Replication): Promise<void> {
    const now = this.#world.nowMs();
    if (loading || now - this.#positionAtMs < positionEveryMs) return;
    await this.#keeper.writePosition({ stream, offset });
    this.#positionAtMs = now;
  }

  /** @returns whether something was done, so that everything has to be looked at again */
  async #serve(primary: NodeAddress): Promise<boolean> {
    const { zk, paths } = this.#realm;
    const { signal } = this.#term;
    const { record } = await this.#keeper.read();
    if (record === undefined) return false;
    const manual = await manualWish(zk, paths, record.manualSeen, signal);
    const wishes = (await openRequests(zk, paths, signal)).filter(
      ({ action }) => action === undefined,
    );
    const all = manual === undefined ? wishes : [manual, ...wishes];
    this.#hasServed = true;
    const keys = new Set(all.map(({ key }) => key));
    for (const key of this.#waiting.keys()) if (!keys.has(key)) this.#waiting.delete(key);
    for (const wish of all) {
      // A request that waits for one node must not hold up a request for another.
      if (!(await this.#fulfil(wish, record, primary))) continue;
      this.#waiting.delete(wish.key);
      this.#realm.wake.call();
      return true;
    }
    return false;
  }

  #requireManaged(node: NodeAddress | null): asserts node is NodeAddress {
    const { nodes } = this.#realm.options;
    if (node !== null && nodes.includes(node)) return;
    throw new MoveRefusedError(
      `${node} is not one of the nodes that are managed: ${nodes.join(', ')}`,
    );
  }

  /** @returns false if the request waits for a node that is not ready yet */
  async #fulfil(wish: Wish, record: PrimaryRecord, primary: NodeAddress): Promise<boolean> {
    const { node, publication } = wish;
    if (node === primary) {
      await wish.fulfil?.({ primary, term: record.term });
      await this.#noteSeen(wish, record);
      return true;
    }
    try {
      if (node !== null) this.#requireManaged(node);
      await this.#move('request', { target: node ?? undefined, withPublication: publication });
      return true;
    } catch (error) {
      this.#term.signal.throwIfAborted();
      if (error instanceof MoveWithdrawnError) return true;
      if (error instanceof MoveTooEarlyError && (await this.#waits(wish, error))) return false;
      // Refused even if the move was begun. The next attempt may make the former primary the
      // primary again, and trying again and again would keep clients from writing.
      const { record: after } = await this.#keeper.read();
      await wish.refuse?.(refusalOf(error as Error, record, after));
      if (after !== undefined) await this.#noteSeen(wish, after);
      throw error;
    }
  }

  async #waits(wish: Wish, { message, isCopying }: MoveTooEarlyError): Promise<boolean> {
    const now = this.#world.nowMs();
    const waiting = this.#waiting.get(wish.key) ?? { sinceMs: now, toldAtMs: -Infinity };
    this.#waiting.set(wish.key, waiting);
    const mostMs = isCopying ? wish.waitMs : Math.min(wish.waitMs, connectsWithinMs);
    if (now - waiting.sinceMs >= mostMs) return false;
    if (now - waiting.toldAtMs < tellEveryMs) return true;
    waiting.toldAtMs = now;
    await wish.tell?.(message);
    return true;
  }

  async #noteSeen({ publication }: Wish, record: PrimaryRecord): Promise<void> {
    const { manualSeen } = publication;
    if (manualSeen !== undefined) await this.#keeper.write({ record: { ...record, manualSeen } });
  }

  /**
   * Makes replicas of the nodes that do not follow the primary, and writes the roles of all into
   * `nodes`.
   */
  async #reconcile(primary: NodeAddress): Promise<void> {
    // Asked again, because other nodes are about to copy it.
    const own = this.#known.has(primary) ? await this.#hands.replication(primary) : undefined;
    if (own !== undefined) {
      const { record } = await this.#keeper.read();
      // It may have loaded its data meanwhile, and no manager has judged what it came back with.
      const isAnother = own.runId !== this.#known.get(primary)?.runId;
      // Its replicas copy that, so the next look follows at once.
      if (isAnother && !own.loading) this.#realm.wake.call();
      if (record === undefined || !isSameProcess(record, own)) return;
      if (isAnother || own.role !== 'primary' || own.loading) return;
      const lineage = recordedLineage(record);
      const isProven = this.#realm.options.rejoin === 'proven';
      const strays = [...this.#known].filter(
        ([node, each]) =>
          node !== primary &&
          !isDiscarded(record, node, each) &&
          // A node that only others list is kept from losing data. All else is left to managers
          // that list it.
          ((this.#isOwn(node) && each.primary !== primary) ||
            (isProven && wouldLose(each, own, lineage, this.#firstSeen.has(each.runId)))),
      );
      const streams = new StreamNotes(recordedLineage(record), async (lineage) => {
        const { record: now } = await this.#keeper.read();
        if (now === undefined) return;
        await this.#keeper.write({ record: { ...now, lineage: writtenLineage(lineage) } });
      });
      for (const [node] of strays) {
        try {
          const joined = await join({ node, primary, streams }, this.#world);
          if (joined === 'loading') continue;
          // A pause that a move has left there would hold up the data that the node is to copy.
          await this.#hands.resumeWrites(node);
          if (joined === 'joined') this.#realm.tell({ type: 'reconciled', node, primary });
        } catch (error) {
          this.#term.signal.throwIfAborted();
          this.#errors = new Map([...this.#errors, [node, error as Error]]);
        }
      }
      if (strays.length > 0) await this.#askAll();
      await this.#keepConfigs(primary);
    }
    const wanted = this.#nodesAround(primary);
    const { nodes } = await this.#keeper.read();
    if (nodes === undefined || !isEqual(nodes, wanted)) await this.#keeper.write({ nodes: wanted });
    this.#expectNoRefusal();
  }

  /**
   * Has the nodes write their configuration files, once for each state. The manager that gave a
   * node its role may have ended before it could.
   */
  async #keepConfigs(primary: NodeAddress): Promise<void> {
    await Promise.all(
      [...this.#known].map(async ([node, { runId, primary: followed, isAside }]) => {
        const isRight = node === primary || followed === primary || isAside;
        const state = `${runId} ${followed}`;
        if (!isRight || !this.#isOwn(node) || this.#kept.get(node) === state) return;
        await this.#hands.keepConfig(node);
        this.#kept.set(node, state);
      }),
    );
  }

  /** Reports a node that answers and refuses our credentials: no waiting cures that. */
  #expectNoRefusal(): void {
    const refused = [...this.#errors].find(
      ([node, error]) =>
        this.#isOwn(node) && (error as { readonly code?: unknown }).code === 'NODE_REFUSED',
    );
    if (refused !== undefined) throw refused[1];
  }

  /** The roles for `nodes`: the replicas from which clients can read, and the rest. */
  #nodesAround(primary: NodeAddress): Nodes {
    const others = this.#realm.options.nodes.filter((node) => node !== primary);
    const serves = (node: NodeAddress) => {
      if (!this.#isUp(node)) return false;
      const replication = this.#known.get(node);
      // Other managers see the node, and this one does not, so its state is unknown.
      if (replication === undefined) return true;
      const { role, linkUp, syncing, loading, isAside, servesStaleReads } = replication;
      return (
        role === 'replica' && !loading && !isAside && (servesStaleReads || (linkUp && !syncing))
      );
    };
    return {
      master: primary,
      slaves: others.filter(serves),
      unavailable: others.filter((node) => !serves(node)),
    };
  }
}

function returnedTrouble(
  node: NodeAddress,
  { do: what, missing }: Extract<Decision, { readonly missing: unknown }>,
): TroubleError {
  const [state, wayOut] =
    what === 'wait'
      ? ['', `it is waited for; incumbent-redis keep ${node} ends that`]
      : [
          ', and nothing says that it has data of its last term',
          'bring a node back that has them, or say whose data count: incumbent-redis keep NODE',
        ];
  return new TroubleError(
    'NO_PRIMARY',
    `${node} was started anew${state}, and ${missing.join(', ')} may have more: ${wayOut}`,
  );
}

function isEqual(a: Nodes, b: Nodes): boolean {
  const same = (one: readonly string[], other: readonly string[]) =>
    one.length === other.length && one.every((each) => other.includes(each));
  return a.master === b.master && same(a.slaves, b.slaves) && same(a.unavailable, b.unavailable);
}
