import { setTimeout as sleep } from 'node:timers/promises';
import type { ZooKeeper } from '@incumbent/zookeeper';
import type { Term } from 'incumbent';
import type { ZooKeeperGuard } from 'incumbent/zookeeper';
import type { Nodes, Paths, PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';
import { discoverPrimary, firstRecord, primariesOf, strangePrimary } from './discover.ts';
import type { ManagerEvent, MoveReason, Trouble } from './events.ts';
import { gemManagers } from './gem-lock.ts';
import { Hands } from './hands.ts';
import type { ManagerHooks } from './hooks.ts';
import { Keeper } from './keeper.ts';
import { hasAllOf, hasLess, isOfLineage } from './lineage.ts';
import { movePrimary } from './move.ts';
import type { MoveMemory, MovePlan, MoveWorld } from './move-world.ts';
import { MoveRefusedError } from './move-world.ts';
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
  readonly zk: ZooKeeper;
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
  }) => void;
  readonly nowMs: () => number;
  readonly memory: MoveMemory;
}

/** After so many attempts to move the primary another manager shall try. */
const mostAttempts = 3;

/** Our clients believe what managers of the gem have published for 9 s: they know no term there. */
const rubyViewMs = 1.1 * 9_000;

/** A manager that is in trouble for so long lets another one try. */
const mostTroubleMs = 15_000;

/** For how long a manager waits for its own report without a word. */
const mostSilenceMs = 10_000;

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
    },
    term,
  );
  const ruler = new Ruler(realm, term, hands);
  await untilRead(realm.board, term.signal);
  while (!term.signal.aborted) {
    const goesOn = await ruler.look();
    if (!goesOn) return;
    await realm.wake.wait(lookEveryMs, term.signal);
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
  #troubledSinceMs: number | undefined;
  #silentSinceMs: number | undefined;
  #verdicts: ReadonlyMap<NodeAddress, Verdict> = new Map();
  #known: ReadonlyMap<NodeAddress, Replication> = new Map();
  #errors: ReadonlyMap<NodeAddress, Error> = new Map();

  constructor(realm: Realm, term: Term<ZooKeeperGuard>, hands: Hands) {
    const { options, hooks, zk, paths, tell, nowMs } = realm;
    this.#realm = realm;
    this.#term = term;
    this.#hands = hands;
    this.#keeper = new Keeper(zk, paths, term, hooks);
    this.#world = {
      ...{ keeper: this.#keeper, hands, hooks, tell, nowMs },
      nodes: options.nodes,
      signal: term.signal,
      sleep: async (forMs) => {
        // Whoever sleeps looks at the signal.
        await sleep(forMs, undefined, { signal: term.signal }).catch(() => {});
      },
      clientViewMs: options.clientViewMs,
      author: { manager: options.id, token: `${term.token}` },
      revokedAtMs: undefined,
      earlierRevokedAtMs: nowMs(),
      refused: new Set(),
      errors: new Map(),
      memory: realm.memory,
      managers: () => realm.board.current().size,
      othersLapseAtMs: Number.NEGATIVE_INFINITY,
    };
  }

  /** Looks at everything once, and does what is to be done. @returns false: others shall try */
  async look(): Promise<boolean> {
    const { board, nowMs, show } = this.#realm;
    try {
      await this.#expectNoRubyManagers();
      if (!this.#judge()) return true;
      await this.#look();
      this.#failedAttempts = 0;
      this.#troubledSinceMs = undefined;
      show({ trouble: undefined });
    } catch (error) {
      if (this.#term.signal.aborted) return false;
      show({ trouble: troubleOf(error) });
      this.#troubledSinceMs ??= nowMs();
      if (this.#failedAttempts >= mostAttempts) return false;
      // It may be this one's fault: another one may see more, or be told the right nodes.
      const isLong = nowMs() - this.#troubledSinceMs >= mostTroubleMs;
      if (isLong && board.current().size > 1) return false;
    }
    return true;
  }

  async #look(): Promise<void> {
    // Anybody may have changed it, also by mistake.
    this.#keeper.forget();
    const { record, nodes } = await this.#keeper.read();
    this.#realm.show({ record });
    if (record === undefined) return this.#begin(nodes);
    if (record.gemViews) await this.#outliveTheGem(record);
    if (record.primary === null) return this.#move('unfinished', {});
    if (!this.#realm.options.nodes.includes(record.primary)) {
      throw strangePrimary(record.primary, this.#realm.options.nodes);
    }
    if (!this.#isUp(record.primary)) return this.#move('down', {});
    await this.#askAll();
    const primary = this.#known.get(record.primary);
    if (primary?.role === 'replica') return this.#followOthers(record);
    if (primary !== undefined && this.#hasLostItsData(record, primary)) {
      return this.#move('lost-data', {});
    }
    if (primary !== undefined) await this.#noteLineage(primary);
    if (await this.#serve(record.primary)) return;
    await this.#reconcile(record.primary);
  }

  /** Until nobody can believe any more what managers of the gem have published. */
  async #outliveTheGem(record: PrimaryRecord): Promise<void> {
    const { nowMs } = this.#realm;
    if (this.#world.othersLapseAtMs === Number.NEGATIVE_INFINITY) {
      this.#world.othersLapseAtMs = nowMs() + rubyViewMs;
    }
    if (nowMs() < this.#world.othersLapseAtMs) return;
    await this.#keeper.write({ record: { ...record, gemViews: false } });
  }

  /** Reads what the gem's managers show; ours and theirs do not exclude each other. */
  async #expectNoRubyManagers(): Promise<void> {
    const { zk, paths } = this.#realm;
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
    const { options, board, nowMs, tell, show } = this.#realm;
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

  #isUp(node: NodeAddress): boolean {
    return this.#verdicts.get(node)?.state === 'available';
  }

  async #askAll(): Promise<void> {
    const answers = new Map<NodeAddress, Replication>();
    const errors = new Map<NodeAddress, Error>();
    const { options, sightOf } = this.#realm;
    await Promise.all(
      options.nodes.map(async (node) => {
        const { state, error } = sightOf(node);
        // Each attempt would wait for as long as a node may take.
        if (state === 'unavailable') {
          errors.set(node, error ?? new Error(`${node} is down`));
          return;
        }
        try {
          answers.set(node, await this.#hands.replication(node));
        } catch (reason) {
          this.#term.signal.throwIfAborted();
          errors.set(node, reason as Error);
        }
      }),
    );
    // In the order of the nodes, whoever answered first: what is told of them stays the same.
    const known = new Map(
      options.nodes.flatMap((node) => {
        const answer = answers.get(node);
        return answer === undefined ? [] : [[node, answer] as const];
      }),
    );
    this.#known = known;
    this.#errors = errors;
    const processes = [...known].map(([node, { runId }]) => ({ node, runId }));
    for (const [index, { node, runId }] of processes.entries()) {
      const other = processes.slice(0, index).find((each) => each.runId === runId);
      if (other === undefined) continue;
      throw new TroubleError(
        'LAYOUT',
        `${other.node} and ${node} are one and the same Redis: name it once among the nodes`,
      );
    }
  }

  /** The first manager of this library in this set. */
  async #begin(nodes: Nodes | undefined): Promise<void> {
    const { options, zk, paths } = this.#realm;
    await this.#askAll();
    this.#expectNoRefusal();
    const available = options.nodes.filter((node) => this.#isUp(node));
    const found = discoverPrimary({
      ...{ nodes, all: options.nodes, available },
      ...{ known: this.#known, errors: this.#errors },
    });
    const replication = this.#known.get(found.primary);
    const manualSeen = await manualSeenNow(zk, paths, this.#term.signal);
    const gemViews = nodes !== undefined;
    const more = { viewMs: options.clientViewMs, gemViews, ...this.#world.author, manualSeen };
    const record = firstRecord(found.primary, replication, more);
    await this.#keeper.write(
      found.isUp ? { record, nodes: this.#nodesAround(found.primary) } : { record },
    );
    this.#realm.wake.call();
  }

  async #move(
    reason: MoveReason,
    more: Pick<MovePlan, 'target' | 'withPublication'>,
  ): Promise<void> {
    const { options, board } = this.#realm;
    const reports = [...board.current().values()];
    const latencyMs = (node: NodeAddress) => {
      const seen = reports.flatMap(({ available }) => available[node] ?? []);
      const sum = seen.reduce((total, each) => total + each, 0);
      return seen.length === 0 ? Number.POSITIVE_INFINITY : (1_000 * sum) / seen.length;
    };
    const plan: MovePlan = {
      reason,
      available: options.nodes.filter((node) => this.#isUp(node)),
      latencyMs,
      unavailableTo: (node) => this.#verdicts.get(node)?.unavailableTo.length ?? 0,
      ...more,
    };
    try {
      await movePrimary(plan, this.#world);
      this.#failedAttempts = 0;
    } catch (error) {
      if (!this.#term.signal.aborted && !(error instanceof MoveRefusedError)) {
        this.#failedAttempts += 1;
        this.#realm.tell({ type: 'move-failed', reason, error: error as Error });
      }
      throw error;
    } finally {
      const { record } = await this.#keeper.read().catch(() => ({ record: undefined }));
      if (record !== undefined) this.#realm.show({ record });
    }
    this.#realm.wake.call();
  }

  /**
   * The primary on record is a replica: somebody else has moved it, or has broken it, or it was started
   * anew and its configuration says so. Whoever is a primary now is taken for it only if nothing is
   * lost by that, or is lost already.
   */
  async #followOthers({ primary, replicationId }: PrimaryRecord): Promise<void> {
    const primaries = primariesOf(this.#known);
    const [target] = primaries;
    const found = target === undefined ? undefined : this.#known.get(target);
    if (target === undefined || found === undefined || primaries.length > 1) {
      return this.#move('lost-role', {});
    }
    const others = [...this.#known].filter(([node]) => node !== target);
    const isFollowed =
      this.#known.size === this.#realm.options.nodes.length &&
      others.every(([, each]) => this.#hands.follows(each, target) && each.linkUp);
    const isOurs =
      replicationId !== null &&
      isOfLineage(found, replicationId) &&
      this.#known.has(primary ?? '') &&
      others.every(([, each]) => !isOfLineage(each, replicationId) || hasAllOf(found, each));
    if (isFollowed || isOurs) return this.#move('found', { target });
    await this.#move('lost-role', {});
  }

  #hasLostItsData(record: PrimaryRecord, primary: Replication): boolean {
    const { primary: node, replicationId, runId } = record;
    // The same process has what it had, whatever it calls it: without replicas the name changes.
    if (replicationId === null || runId === primary.runId) return false;
    return [...this.#known].some(
      ([other, each]) => other !== node && hasLess(primary, each, replicationId),
    );
  }

  async #noteLineage({ replicationId, runId, loading }: Replication): Promise<void> {
    const { record } = await this.#keeper.read();
    if (record === undefined || loading) return;
    if (record.replicationId === replicationId && record.runId === runId) return;
    await this.#keeper.write({ record: { ...record, replicationId, runId } });
  }

  /** @returns whether something was done, so that everything is to be looked at again */
  async #serve(primary: NodeAddress): Promise<boolean> {
    const { zk, paths } = this.#realm;
    const { signal } = this.#term;
    const { record } = await this.#keeper.read();
    if (record === undefined) return false;
    const manual = await manualWish(zk, paths, record.manualSeen, signal);
    const wishes = await openRequests(zk, paths, signal);
    const [wish] = manual === undefined ? wishes : [manual];
    if (wish === undefined) return false;
    await this.#fulfil(wish, record, primary);
    this.#realm.wake.call();
    return true;
  }

  async #fulfil(wish: Wish, record: PrimaryRecord, primary: NodeAddress): Promise<void> {
    const { nodes } = this.#realm.options;
    const { node, publication } = wish;
    if (node === primary) {
      await wish.fulfil?.({ primary, term: record.term });
      return this.#noteSeen(wish, record);
    }
    try {
      if (node !== null && !nodes.includes(node)) {
        throw new MoveRefusedError(
          `${node} is not one of the nodes that are managed: ${nodes.join(', ')}`,
        );
      }
      await this.#move('request', { target: node ?? undefined, withPublication: publication });
    } catch (error) {
      this.#term.signal.throwIfAborted();
      // Also when it was begun: whoever finishes it may give the primary of before back, and to try it
      // again and again would keep everybody from writing.
      const { record: after } = await this.#keeper.read();
      const isBegun = after?.primary !== primary;
      const { message } = error as Error;
      await wish.refuse?.(
        isBegun ? `${message} (it was begun, and may still be carried out)` : message,
      );
      if (after !== undefined) await this.#noteSeen(wish, after);
      throw error;
    }
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
      const isSame = own.runId === this.#known.get(primary)?.runId && own.role === 'primary';
      if (!isSame || own.loading) return;
      const strays = [...this.#known].filter(
        ([node, each]) => node !== primary && !this.#hands.follows(each, primary),
      );
      for (const [node] of strays) {
        try {
          await this.#hands.makeReplica(node, primary);
          // A pause that a move has left there would hold up what it is to copy.
          await this.#hands.resumeWrites(node);
          this.#realm.tell({ type: 'reconciled', node, primary });
        } catch (error) {
          this.#term.signal.throwIfAborted();
          this.#errors = new Map([...this.#errors, [node, error as Error]]);
        }
      }
      if (strays.length > 0) await this.#askAll();
    }
    const wanted = this.#nodesAround(primary);
    const { nodes } = await this.#keeper.read();
    if (nodes === undefined || !isEqual(nodes, wanted)) await this.#keeper.write({ nodes: wanted });
    this.#expectNoRefusal();
  }

  /** Of a node that answers and will not have us: no waiting cures that. */
  #expectNoRefusal(): void {
    const refused = [...this.#errors.values()].find(
      (error) => (error as { readonly code?: unknown }).code === 'NODE_REFUSED',
    );
    if (refused !== undefined) throw refused;
  }

  /** Which of the others can be read from. */
  #nodesAround(primary: NodeAddress): Nodes {
    const others = this.#realm.options.nodes.filter((node) => node !== primary);
    const serves = (node: NodeAddress) => {
      if (!this.#isUp(node)) return false;
      const replication = this.#known.get(node);
      // Others see it, and this manager does not: what it says is not known.
      if (replication === undefined) return true;
      const { role, linkUp, syncing, loading, servesStaleReads } = replication;
      return role === 'replica' && !loading && (servesStaleReads || (linkUp && !syncing));
    };
    return {
      master: primary,
      slaves: others.filter(serves),
      unavailable: others.filter((node) => !serves(node)),
    };
  }
}

function isEqual(a: Nodes, b: Nodes): boolean {
  const same = (one: readonly string[], other: readonly string[]) =>
    one.length === other.length && one.every((each) => other.includes(each));
  return a.master === b.master && same(a.slaves, b.slaves) && same(a.unavailable, b.unavailable);
}
