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

/** What the elected manager works with. */
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
  /** For the status of the manager. */
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

/** After so many attempts to move the primary another manager shall try. */
const mostAttempts = 3;

/** Our clients believe what managers of the gem have published for 9 s: they know no term there. */
const rubyViewMs = 1.1 * 9_000;

/** A manager that is in trouble for so long lets another one try. */
const mostTroubleMs = 15_000;

/** The same where only the lists of others name the primary. */
const mostListMs = 1_000;

/** For how long a manager waits for its own report without a word. */
const mostSilenceMs = 10_000;

/** How often everything is looked at while the primary does not answer: it may come back empty. */
const watchEveryMs = 50;

/** For how long a requested node without a connection is waited for: a primary may delay its copies by 5 s. */
const connectsWithinMs = 10_000;

/** Each time is a write. */
const tellEveryMs = 1_000;

/** How often at most the position of the primary is written. */
const positionEveryMs = 900;

/** How often everything is looked at while a request waits for a node. */
const waitingEveryMs = 200;

/** How often everything is looked at when nothing is told. */
const lookEveryMs = 1_000;

/** One term of the elected manager. Resolves when it is over, or when others shall try. */
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
    // Nobody waits for that: with the session it goes by itself.
    leaveGemPlace(realm.zk, realm.paths).catch(() => {});
  }
}

/** With some of the reports only, a few would be the majority. */
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

class Ruler {
  readonly #realm: Realm;
  readonly #term: Term<ZooKeeperGuard>;
  readonly #hands: Hands;
  readonly #keeper: Keeper;
  readonly #world: MoveWorld;
  #failedAttempts = 0;
  /** In this look: what goes wrong then keeps no request waiting. */
  #hasServed = false;
  #toldRequestsAtMs = Number.NEGATIVE_INFINITY;
  #troubledSinceMs: number | undefined;
  #silentSinceMs: number | undefined;
  /** When the primary on record was first seen in another process. */
  #returnedAtMs: number | undefined;
  #primary: NodeAddress | undefined;
  #positionAtMs = Number.NEGATIVE_INFINITY;
  /** The last move was put off for a node that may have more. */
  #waitsForNode = false;
  /** When each request was first seen that waits for a node, and what was told of that last. */
  #waiting = new Map<string, { readonly sinceMs: number; toldAtMs: number }>();
  #verdicts: ReadonlyMap<NodeAddress, Verdict> = new Map();
  #known: ReadonlyMap<NodeAddress, Replication> = new Map();
  /** The processes that stood around a primary that nobody of ours had judged before. */
  #firstSeen: ReadonlySet<string> = new Set();
  #errors: ReadonlyMap<NodeAddress, Error> = new Map();
  /** In which process, and following whom, each node has kept its configuration. */
  readonly #kept = new Map<NodeAddress, string>();
  /** Names that others have for nodes of the own list. */
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
      // Whoever sleeps looks at the signal.
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

  /** Looks at everything once, and does what is to be done. @returns false: others shall try */
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
      // It may be this one's fault: another one may see more, or be told the right nodes.
      const mostMs = this.#isLedByOthers() ? mostListMs : mostTroubleMs;
      const isLong = nowMs() - this.#troubledSinceMs >= mostMs;
      if (isLong && board.current().size > 1) return false;
    }
    return true;
  }

  /** Whoever asked would take silence for a manager that is not there. */
  async #tellRequests({ message }: Trouble): Promise<void> {
    const { zk, paths } = this.#realm;
    const now = this.#world.nowMs();
    if (now - this.#toldRequestsAtMs < tellEveryMs) return;
    this.#toldRequestsAtMs = now;
    try {
      const wishes = await openRequests(zk, paths, this.#term.signal);
      for (const wish of wishes) await wish.tell?.(message);
    } catch {
      // Perhaps ZooKeeper is the trouble.
    }
  }

  async #look(): Promise<void> {
    // Anybody may have changed it, also by mistake.
    this.#keeper.forget();
    const { record, nodes, isMovedByGem } = await this.#keeper.read();
    this.#realm.show({ record });
    this.#primary = record?.primary ?? undefined;
    if (record === undefined) return this.#begin(nodes, undefined);
    if (isMovedByGem) return this.#begin(nodes, record);
    if (record.gemViews) await this.#outliveTheGem(record);
    // An operator is heard also while there is no primary.
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
    // Who throws away in advance what one node has more waits for nobody.
    const position = options.rejoin === 'always' ? undefined : await this.#keeper.position();
    const { cameBackAtMs } = memory;
    const cameBackForMs = cameBackAtMs === undefined ? undefined : nowMs() - cameBackAtMs;
    const decision = decide({
      ...{ record, nodes, others, known, isUp },
      ...{ position, cameBackForMs, returnedForMs },
    });
    // A move that follows has waited already.
    if (decision.do === 'wait') memory.waitsSinceMs ??= this.#returnedAtMs;
    return decision;
  }

  /**
   * The primary is not in this manager's list, so it does not lead it; but nobody shall copy what it may have
   * come back with before a manager judges that.
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
      // Not set aside: whoever judges this has to find them as they are.
      const hold = (node: NodeAddress) => this.#hands.hold(node);
      await this.#keepFromCopying(record, new Map([...known, [record.primary, says]]), hold);
    }
    throw strangePrimary(record.primary, this.#realm.options.nodes);
  }

  /** Replicas copy by themselves whom they follow: those that may have more are set aside first. */
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
        // Started again it would copy whom its file names.
        await this.#hands.keepConfig(node);
      } catch (error) {
        // The others are to be kept from it all the same.
        this.#term.signal.throwIfAborted();
        this.#errors = new Map([...this.#errors, [node, error as Error]]);
      }
    }
  }

  /**
   * Primaries that have nothing of the term on record, while nobody else is the primary: replicas that were
   * told so before would copy them.
   */
  async #setStraysAside(record: PrimaryRecord): Promise<void> {
    // Where no stream is on record nobody can be told from the others.
    if (this.#realm.options.rejoin === 'always' || record.replicationId === null) return;
    // A move looks at the node of before by itself.
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
        // The others have to get a primary all the same.
        this.#term.signal.throwIfAborted();
        this.#errors = new Map([...this.#errors, [node, error as Error]]);
      }
    }
  }

  /** Nobody shall copy what it has lost. */
  async #setPrimaryAside(node: NodeAddress): Promise<void> {
    if (this.#known.get(node)?.role === 'primary') await this.#hands.setAside(node);
  }

  /** Until nobody can believe any more what managers of the gem have published. */
  async #outliveTheGem(record: PrimaryRecord): Promise<void> {
    const { nowMs } = this.#world;
    if (this.#world.othersLapseAtMs === Number.NEGATIVE_INFINITY) {
      this.#world.othersLapseAtMs = nowMs() + rubyViewMs;
    }
    if (nowMs() < this.#world.othersLapseAtMs) return;
    await this.#keeper.write({ record: { ...record, gemViews: false } });
  }

  /** Whoever of the gem came before this one decides. */
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

  /** The primary on record is not in this manager's list. */
  get #isStranger(): boolean {
    return this.#primary !== undefined && !this.#isOwn(this.#primary);
  }

  #isLedByOthers(): boolean {
    const { options, board } = this.#realm;
    const foreign = foreignNodes(options.nodes, board.current());
    return this.#isStranger && foreign.includes(this.#primary ?? '');
  }

  /** Nodes that only other managers list: they are asked, and neither promoted nor told to copy. */
  #others(): readonly NodeAddress[] {
    const { options, board } = this.#realm;
    const foreign = foreignNodes(options.nodes, board.current());
    return foreign.filter((node) => !this.#aliases.has(node));
  }

  /** @param record nobody is waited for who could copy its primary before that is judged */
  async #askAll(record?: Situation['record']): Promise<void> {
    const answers = new Map<NodeAddress, Replication>();
    const errors = new Map<NodeAddress, Error>();
    const { options, board, sightOf } = this.#realm;
    const foreign = foreignNodes(options.nodes, board.current());
    const nodes = [...options.nodes, ...foreign];
    const asking = nodes.map(async (node) => {
      const { state, error } = sightOf(node);
      // Each attempt would wait for as long as a node may take.
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
    // In the order of the nodes, whoever answered first: what is told of them stays the same.
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
   * A primary that comes back with less is copied by whoever was told to follow it, as soon as that one can:
   * also by one that stands still now. Once it is set aside there is time.
   */
  #isUrgent(record: Situation['record'], known: Replications): boolean {
    const primary = known.get(record.primary);
    // It may be back at the next look.
    if (primary === undefined) return this.#isUp(record.primary);
    return primary.role === 'primary' && isReturned({ record, known });
  }

  /**
   * The first manager of this library in this set, or the first one after managers of the gem.
   * @param before what stood in the record before those
   */
  async #begin(nodes: Nodes | undefined, before: PrimaryRecord | undefined): Promise<void> {
    const { options, zk, paths } = this.#realm;
    // A client that hears nothing may still write in the term that the gem has ended.
    if (before !== undefined) await waitForViewsSince(this.#world.nowMs(), before, this.#world);
    await this.#askAll();
    this.#expectNoRefusal();
    const available = options.nodes.filter((node) => this.#isUp(node));
    const found = discoverPrimary({
      ...{ nodes, all: options.nodes, available },
      ...{ known: this.#known, errors: this.#errors },
    });
    const says = this.#known.get(found.primary);
    // A replica that has nothing tells nothing of what its term had.
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
        // It is tried five times a second then.
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

  /** Its last check was bad, and it does not count as down yet. */
  #isPrimaryShaky(): boolean {
    const node = this.#primary;
    if (node === undefined) return false;
    const { state, failures } = this.#realm.sightOf(node);
    return state === 'available' && failures > 0;
  }

  /** What an operator says of a node that is set aside. @returns whether something was done */
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
   * To keep a node's data is a move that waits for nothing. A replica of a primary that goes on has nothing
   * but what it got from there, and may lack the last writes.
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
    // Of one that does not answer the move says so.
    if (says === undefined || says.isAside) return;
    throw new MoveRefusedError(
      `${node} is not set aside, and ${primary} is the primary: use incumbent-redis failover ${node}`,
    );
  }

  /** How the primary calls its stream now, and which process it is. */
  async #noteLineage(primary: Replication): Promise<void> {
    const { record } = await this.#keeper.read();
    const { replicationId, runId, loading } = primary;
    if (record === undefined || loading) return;
    const isNoted = record.lineage !== undefined || record.replicationId === null;
    if (record.replicationId === replicationId && record.runId === runId && isNoted) return;
    const before = recordedLineage(record);
    // Another process may have lost something: it has what it says itself.
    const now = isSameProcess(record, primary)
      ? goesOn(before, primary)
      : lineageOf(primary, before);
    const lineage = writtenLineage(now);
    const { discarded, ...going } = record;
    // An operator has spoken of the process that is gone.
    const more = record.runId === runId && discarded !== undefined ? { discarded } : {};
    await this.#keeper.write({ record: { ...going, ...more, replicationId, runId, lineage } });
  }

  async #notePosition({ replicationId: stream, offset, loading }: Replication): Promise<void> {
    const now = this.#world.nowMs();
    if (loading || now - this.#positionAtMs < positionEveryMs) return;
    await this.#keeper.writePosition({ stream, offset });
    this.#positionAtMs = now;
  }

  /** @returns whether something was done, so that everything is to be looked at again */
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
      // Who waits for a node holds up nobody who wants another one.
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

  /** @returns false: it waits for a node that is still copying */
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
      // Also when it was begun: whoever finishes it may give the primary of before back, and to try it
      // again and again would keep everybody from writing.
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

  /** Makes replicas of the primary of those that are not, and says in `nodes` who is there. */
  async #reconcile(primary: NodeAddress): Promise<void> {
    // Others are told to copy it: what it was a moment ago is not enough.
    const own = this.#known.has(primary) ? await this.#hands.replication(primary) : undefined;
    if (own !== undefined) {
      const { record } = await this.#keeper.read();
      // It may have been loading when all were asked, and nobody has judged what it has come back with.
      const isAnother = own.runId !== this.#known.get(primary)?.runId;
      // Whoever follows it copies that: it is looked again at once.
      if (isAnother && !own.loading) this.#realm.wake.call();
      if (record === undefined || !isSameProcess(record, own)) return;
      if (isAnother || own.role !== 'primary' || own.loading) return;
      const lineage = recordedLineage(record);
      const isProven = this.#realm.options.rejoin === 'proven';
      const strays = [...this.#known].filter(
        ([node, each]) =>
          node !== primary &&
          !isDiscarded(record, node, each) &&
          // What only others list is kept from losing data, and else left to them.
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
          // A pause that a move has left there would hold up what it is to copy.
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

  /** Once for each state: who was told so by a manager that has ended since may not have kept it. */
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

  /** Of a node that answers and will not have us: no waiting cures that. */
  #expectNoRefusal(): void {
    const refused = [...this.#errors].find(
      ([node, error]) =>
        this.#isOwn(node) && (error as { readonly code?: unknown }).code === 'NODE_REFUSED',
    );
    if (refused !== undefined) throw refused[1];
  }

  /** Which of the others can be read from. */
  #nodesAround(primary: NodeAddress): Nodes {
    const others = this.#realm.options.nodes.filter((node) => node !== primary);
    const serves = (node: NodeAddress) => {
      if (!this.#isUp(node)) return false;
      const replication = this.#known.get(node);
      // Others see it, and this manager does not: what it says is not known.
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
