import type { PrimaryRecord } from '../../../packages/redis-failover/dist/layout.js';
import type { Dataset } from '../redis/dataset.ts';
import type { RedisNode } from '../redis/index.ts';
import type { RedisFailoverSimulation } from './simulation.ts';

export const guarantees: Readonly<Record<string, string>> = {
  kept: 'no node is emptied of an acknowledged write that nobody else has, and nobody is promoted who lacks what another member has',
  one: 'no two nodes acknowledge writes to our clients at once',
  live: 'every client can write a bounded time after faults stop, unless a manager says what an operator has to decide',
  stable: 'without a fault the primary is not moved',
  errors: 'managers and clients throw nothing but what they document',
  rejections: 'no promise is rejected without anybody who listens',
  timers: 'timers are set for times that Node keeps',
  replay: 'the same seed takes the same course',
};

interface Acknowledged {
  readonly key: string;
  readonly to: string;
  /** undefined: by what a manager of the gem has published. */
  readonly term: number | undefined;
  readonly startedMs: number;
}

/** The writes that clients of one term were told of. */
interface TermOfWrites {
  readonly node: string;
  firstMs: number;
  lastMs: number;
}

/** A copy that a node loads. */
interface Load {
  readonly upstream: object;
  /** Of those of this connection. */
  readonly number: number;
  /** Whether nobody could see the primary when it began. */
  readonly isUnseen: boolean;
}

/** Replicas may copy a primary that was started anew for so long before a manager can know. */
const unseenMs = 1_000;

/** The checks, by the data of the modelled servers. */
export class Guarantees {
  readonly #sim: RedisFailoverSimulation;
  /** Where each write was executed, and when. */
  readonly #executed = new Map<string, { readonly node: string; readonly atMs: number }>();
  readonly #acknowledged = new Set<string>();
  /** Nobody has them any more, by a fault or because an operator wanted it. */
  readonly #gone = new Set<string>();
  /** Written to a primary that had been started anew, by clients that do not ask about that. */
  readonly #beside = new Set<string>();
  /** Nobody has them any more, and they were not acknowledged yet. */
  readonly #lost = new Map<string, string>();
  readonly #terms = new Map<number, TermOfWrites>();
  /** The processes that have followed the primary on record, or were it. */
  readonly #members = new Map<string, string>();
  /** The processes that had nothing as a primary. */
  readonly #beganEmpty = new Map<string, string>();
  /** Since when a member can be reached without a fault. */
  readonly #reachableSinceMs = new Map<string, number>();
  /** Since when a manager that runs lists it. */
  readonly #listedSinceMs = new Map<string, number>();
  #nextLookMs = 0;
  record: PrimaryRecord | undefined;
  recordSinceMs = 0;
  /** Whether nobody could see the primary when a node began to load the copy of it. */
  readonly #loadsUnseen = new Map<string, Load>();
  /** All that were ever on record. */
  readonly #streams = new Set<string>();
  /** When no manager led last that reached all nodes. */
  #unmanagedAtMs = 0;
  /** When the record said last that it is being moved. */
  #revokedAtMs = 0;
  /** When a view of what the gem has published counts no more. */
  #gemOverAtMs = Number.POSITIVE_INFINITY;
  /** Since when nothing should move. */
  stableSinceMs: number = Number.POSITIVE_INFINITY;
  lastAcknowledged: Acknowledged | undefined;
  /** When each client began the latest write that was acknowledged. */
  readonly lastStartedMs: Map<string, number> = new Map();

  constructor(sim: RedisFailoverSimulation) {
    this.#sim = sim;
  }

  // --- what happens ---

  wrote(node: string, key: string): void {
    const { nodes, scenario, world } = this.#sim;
    this.#executed.set(key, { node, atMs: world.nowMs });
    const { server } = nodes.find(({ name }) => name === node) ?? {};
    // A client that does not ask whether it is the process on record writes beside the data of the
    // others.
    if (!scenario.verifiesRole && server?.runId !== this.record?.runId) this.#beside.add(key);
  }

  acknowledged(write: Acknowledged): void {
    const { world } = this.#sim;
    const { key, to, term } = write;
    this.lastAcknowledged = write;
    this.lastStartedMs.set(key.slice(0, key.indexOf(':')), write.startedMs);
    this.#acknowledged.add(key);
    const executed = this.#executed.get(key);
    if (executed === undefined) {
      world.fail('one', `${key} was acknowledged in term ${term}, and no node has executed it`);
      return;
    }
    const { node, atMs } = executed;
    const lost = this.#lost.get(key);
    if (lost !== undefined) world.fail('kept', `${key} was acknowledged by ${to}: ${lost}`);
    if (term === undefined) {
      this.#checkWithoutTerm(key, atMs);
      return;
    }
    const own = this.#terms.get(term) ?? { node, firstMs: atMs, lastMs: atMs };
    if (own.node !== node) {
      world.fail('one', `${own.node} and ${node} acknowledge writes of term ${term}`);
    }
    own.firstMs = Math.min(own.firstMs, atMs);
    own.lastMs = Math.max(own.lastMs, atMs);
    this.#terms.set(term, own);
    for (const [other, its] of this.#terms) {
      const [older, newer] = other < term ? [its, own] : [own, its];
      if (other === term || older.lastMs <= newer.firstMs) continue;
      world.fail(
        'one',
        `${older.node} acknowledged a write at ${older.lastMs.toFixed(0)} ms, and ${newer.node} in a ` +
          `newer term (${other} and ${term}) one at ${newer.firstMs.toFixed(0)} ms`,
      );
    }
  }

  /** Clients believe the gem's record for a while, and our managers wait for that. */
  #checkWithoutTerm(key: string, executedMs: number): void {
    const { world } = this.#sim;
    if (executedMs <= this.#gemOverAtMs) return;
    world.fail('one', `${key} was acknowledged without a term, and no manager of the gem is there`);
  }

  /** A write by hand was answered: there is no term. */
  told(key: string): void {
    this.#acknowledged.add(key);
  }

  /** A copy from `primary` takes the place of what the node has. */
  empties(node: RedisNode, data: Dataset, primary: string): void {
    const { world, coverage, scenario } = this.#sim;
    coverage.count('nodes emptied for a copy');
    // Its data after the copy may be of a stream that the record does not name.
    this.#members.delete(node.name);
    const lost = this.#onlyIn(data, node);
    if (lost.length === 0) return;
    const said = `${lost.length} writes (${lost[0]}…) that only ${node.name} had`;
    const load = this.#loadsUnseen.get(node.name);
    const { upstream } = node.server ?? {};
    // One that is over a moment after it began was not looked at.
    const isOfLoad = load?.upstream === upstream && load?.number === upstream?.loads;
    const wasUnseen =
      isOfLoad && load !== undefined ? load.isUnseen : this.#mayCopyUnseen(node, primary);
    const isWanted = scenario.rejoin === 'always' || this.#sim.toldByHand.has(node.name);
    const mayGo = isWanted || wasUnseen || this.#isOrderOfGem(node, primary);
    for (const key of lost) {
      if (mayGo) this.#gone.add(key);
      else this.#lost.set(key, `${node.name} was emptied of it for a copy of ${primary}`);
    }
    if (mayGo) {
      coverage.count('writes that a copy has overwritten, as promised', lost.length);
      return;
    }
    const acknowledged = lost.filter((key) => this.#acknowledged.has(key));
    if (acknowledged.length === 0) return;
    world.fail('kept', `${said} went for a copy of ${primary}`);
  }

  /** A process has ended, or a data directory is lost. @param before what the node had */
  fault(node: RedisNode, before: readonly string[]): void {
    for (const key of before) {
      if (this.#sim.nodes.some((each) => has(each, key))) continue;
      this.#gone.add(key);
      this.#sim.coverage.count('writes that only a fault has lost');
    }
    void node;
  }

  moved({ from, to, reason }: { from: string | null; to: string; reason: string }): void {
    const { world } = this.#sim;
    // It is told after the record says so.
    if (this.recordSinceMs <= this.stableSinceMs) return;
    world.fail('stable', `the primary was moved from ${from} to ${to} (${reason}) without a fault`);
  }

  recorded(record: PrimaryRecord): void {
    const { world } = this.#sim;
    const before = this.record;
    this.record = record;
    const streams = { ...record.lineage, ...record.promoting };
    for (const stream of Object.keys(streams)) this.#streams.add(stream);
    // Nobody believes any more in what the gem has published. Without a record nobody of ours has led.
    this.#gemOverAtMs = record.gemViews ? Number.POSITIVE_INFINITY : world.nowMs;
    if (before?.term === record.term && before.primary === record.primary) return;
    this.recordSinceMs = world.nowMs;
    if (record.primary === null) {
      this.#revokedAtMs = world.nowMs;
      return;
    }
    if (before === undefined) return;
    if (this.#isChoiceOfGem(before, record)) {
      this.#sim.coverage.count('our managers go on with the primary that the gem has made');
      // From now on the data of that primary count.
      this.#members.clear();
    } else this.#checkPromotion(record.primary);
  }

  /** `nodes` is written: where the gem has written it, clients may go by what it says. */
  published(primary: string | undefined, isOfGem: boolean): void {
    if (primary !== undefined && (isOfGem || primary !== this.record?.primary)) {
      this.#gemOverAtMs = Number.POSITIVE_INFINITY;
    }
  }

  /** Called before and after every event, and looks now and then. */
  look(): void {
    const { nodes, world } = this.#sim;
    if (world.nowMs < this.#nextLookMs) return;
    this.#nextLookMs = world.nowMs + 20;
    if (!this.#sim.isManaged()) this.#unmanagedAtMs = world.nowMs;
    for (const node of nodes) {
      const { server, name } = node;
      if (!this.#sim.isListedAtAll(node)) this.#listedSinceMs.delete(name);
      else if (!this.#listedSinceMs.has(name)) this.#listedSinceMs.set(name, world.nowMs);
      if (server === undefined) {
        this.#members.delete(name);
        this.#reachableSinceMs.delete(name);
        continue;
      }
      this.#lookAtLoading(node);
      const isEmpty = server.loading === undefined && server.data.keys.length === 0;
      if (server.upstream !== undefined) this.#beganEmpty.delete(name);
      else if (isEmpty) this.#beganEmpty.set(name, server.runId);
      if (this.#isMember(node)) this.#members.set(name, server.runId);
      else if (this.#isToGiveUp(node) || this.#isLeftBeside(node)) this.#members.delete(name);
      const isReachable =
        !node.isPaused && server.loading === undefined && !this.#sim.isCutOff(name);
      if (!isReachable) this.#reachableSinceMs.delete(name);
      else if (!this.#reachableSinceMs.has(name)) this.#reachableSinceMs.set(name, world.nowMs);
    }
  }

  /** The copy that it loads had come when it began to load: nobody can stop that. */
  #lookAtLoading(node: RedisNode): void {
    const { name, server } = node;
    const { upstream, loading } = server ?? {};
    // Before it may have loaded its files.
    if (loading === undefined || upstream?.state !== 'transfer') this.#loadsUnseen.delete(name);
    else {
      const last = this.#loadsUnseen.get(name);
      if (last?.upstream === upstream && last.number === upstream.loads) return;
      const isUnseen = this.#mayCopyUnseen(node, `${upstream.host}:${upstream.port}`);
      this.#loadsUnseen.set(name, { upstream, number: upstream.loads, isUnseen });
    }
  }

  // --- what is judged ---

  /** Once faults are over, and somebody leads. */
  checkEnd(primary: RedisNode): void {
    const { nodes, world, coverage } = this.#sim;
    for (const key of this.#acknowledged) {
      if (this.#gone.has(key) || primary.server?.data.get(key) !== undefined) continue;
      const holders = nodes.filter((node) => has(node, key));
      if (holders.some((node) => isAside(node))) {
        coverage.count('writes in quarantine');
        continue;
      }
      // It waits for a copy that its primary broke off, and answers nobody before it gives up. Or
      // it was away when an operator decided, and is so still.
      if (holders.some(({ server }) => server === undefined || server.loading !== undefined)) {
        coverage.count('writes on a node that has not come back');
        continue;
      }
      // It is set aside when a manager is elected that lists it.
      if (holders.some((node) => !this.#sim.isListed(node))) {
        coverage.count('writes on a node that the elected manager does not list');
        continue;
      }
      if (holders.some((node) => this.#isToGiveUp(node))) {
        coverage.count('writes that a copy will overwrite, as promised');
        continue;
      }
      const where = holders.map(({ name }) => name).join(', ') || 'nobody';
      world.fail('kept', `${key} was acknowledged, and ${primary.name} lacks it: ${where} has it`);
      return;
    }
  }

  #checkPromotion(address: string): void {
    const { nodes, world } = this.#sim;
    const primary = nodes.find(({ addresses }) => addresses.includes(address));
    // It was killed in this moment: what it had is not to be seen any more.
    if (primary?.server === undefined) return;
    // An operator has said whose data count. The others are set aside, which `empties` and the end judge.
    if (this.#sim.keptByHand === primary) return;
    const sinceMs = Math.min(this.#revokedAtMs, world.nowMs) - 1_000;
    for (const node of nodes) {
      const { server } = node;
      const isKnown =
        server !== undefined &&
        node !== primary &&
        this.#members.get(node.name) === server.runId &&
        (this.#reachableSinceMs.get(node.name) ?? Number.POSITIVE_INFINITY) <= sinceMs &&
        server.backlog !== undefined;
      // Nobody knows of one that only managers list which are away, or have just come.
      const listedSinceMs = this.#listedSinceMs.get(node.name) ?? Number.POSITIVE_INFINITY;
      const isListed = this.#sim.isListed(node) || listedSinceMs <= sinceMs;
      if (!isKnown || !isListed || this.#isUnplaced(node)) continue;
      for (const key of server.data.keys) {
        if (!this.#acknowledged.has(key) || this.#gone.has(key)) continue;
        if (primary.server.data.get(key) !== undefined) continue;
        // Written by hand on a node that somebody has promoted: streams have forked. It is set aside a
        // moment later, which the end judges, and `empties` in between.
        if (key.startsWith('op:') || this.#beside.has(key)) continue;
        world.fail(
          'kept',
          `${primary.name} was made the primary without ${key}, which ${node.name} has, and that ` +
            'could be reached all the time',
        );
        return;
      }
    }
  }

  /** `nodes` named it when the record did not: our managers take it as it is. */
  #isChoiceOfGem(before: PrimaryRecord, { primary }: PrimaryRecord): boolean {
    const { gem, publishedPrimary } = this.#sim;
    // Called for a new term, or another primary: ours give the same one a new term after they revoked it.
    const isNew = before.primary !== primary || before.primary !== null;
    return gem !== undefined && isNew && publishedPrimary === primary;
  }

  /**
   * The gem makes a replica of what comes back, whatever it has. Data that are lost by another way
   * than that order are lost while the gem leads, or in the moment in which ours take over. Later
   * they would be lost by the will of ours.
   */
  #isOrderOfGem(node: RedisNode, primary: string): boolean {
    const { gem, toldByGem, gemToldAtMs, world } = this.#sim;
    if (gem === undefined) return false;
    // It goes by its file, and nobody can place what it wrote under the gem.
    const { promotedByGem } = this.#sim;
    if (promotedByGem.has(node.name) && !this.#isOnRecord(node)) return true;
    const copied = [node, ...this.#sourcesOf(primary)];
    if (!copied.some(({ name }) => toldByGem.has(name))) return false;
    // Its order stands, like one that is given by hand: the same process is copied as was meant.
    const order = toldByGem.get(node.name);
    const [source] = copied.slice(1);
    const isMeant = order?.primary === primary && order.runId !== undefined;
    if (isMeant && order.runId === source?.server?.runId) return true;
    const reachableMs = copied.map(({ name }) => this.#reachableSinceMs.get(name) ?? world.nowMs);
    const seenSinceMs = Math.max(gemToldAtMs, this.#unmanagedAtMs, ...reachableMs);
    return world.nowMs - seenSinceMs < unseenMs;
  }

  /** The node of that address, whom it copies itself, and so on. */
  #sourcesOf(primary: string): ReadonlySet<RedisNode> {
    const sources = new Set<RedisNode>();
    let next = this.#sim.nodeAt(primary);
    while (next !== undefined && !sources.has(next)) {
      sources.add(next);
      next = this.#followed(next);
    }
    return sources;
  }

  #isMember(node: RedisNode): boolean {
    const { record } = this;
    const { server } = node;
    if (record === undefined || record.primary === null || server === undefined) return false;
    if (node.addresses.includes(record.primary)) {
      return server.upstream === undefined && server.runId === record.runId;
    }
    const primary = this.#sim.nodeAt(record.primary);
    if (primary?.server?.runId !== record.runId) return false;
    // Also one that follows it by way of others.
    const seen = new Set<RedisNode>();
    for (let each: RedisNode = node; each !== primary; ) {
      const { upstream } = each.server ?? {};
      const next = this.#followed(each);
      if (upstream?.state !== 'connected' || next === undefined || seen.has(each)) return false;
      seen.add(each);
      each = next;
    }
    return true;
  }

  #followed({ server }: RedisNode): RedisNode | undefined {
    const { upstream } = server ?? {};
    return upstream && this.#sim.nodeAt(`${upstream.host}:${upstream.port}`);
  }

  /** Promoted by hand after another one was: no stream of its is one that was ever on record. */
  #isUnplaced({ name, server }: RedisNode): boolean {
    return this.#sim.promotedByHand.has(name) && !this.#isOnRecord({ server });
  }

  /** It is in a stream that was ever on record; so is one that does not run. */
  #isOnRecord({ server }: Pick<RedisNode, 'server'>): boolean {
    if (server === undefined) return true;
    const { replId, replId2 } = server.history;
    return this.#streams.has(replId) || this.#streams.has(replId2);
  }

  /** It was set aside beside the primary on record, and was judged when that one was promoted. */
  #isLeftBeside(node: RedisNode): boolean {
    const { primary } = this.record ?? {};
    return typeof primary === 'string' && !node.addresses.includes(primary) && isAside(node);
  }

  /** With `rejoin: 'always'`, told to copy the primary on record in place of what nobody else may have. */
  #isToGiveUp(node: RedisNode): boolean {
    const { server } = node;
    const { primary, runId } = this.record ?? {};
    if (this.#sim.scenario.rejoin !== 'always' || server === undefined) return false;
    const followed = this.#followed(node);
    if (followed === undefined || followed !== this.#sim.nodeAt(primary)) return false;
    const source = followed.server;
    if (source === undefined || source.runId !== runId) return false;
    return server.data.keys.some((key) => source.data.get(key) === undefined);
  }

  /** A replica copies by itself when it, or its primary, has just been started: no manager has told it to. */
  #mayCopyUnseen(node: RedisNode, primary: string): boolean {
    const { startedAtMs, orderedAtMs, world } = this.#sim;
    const orderedMs = orderedAtMs.get(node.name) ?? 0;
    const source = this.#sim.nodeAt(primary);
    // Nobody shall follow it while another node is away: there it does not matter when this one came.
    const isEmptySource =
      this.#sim.isListed(node) &&
      source !== undefined &&
      this.#beganEmpty.get(source.name) === source.server?.runId;
    // One that starts goes by its file, and by no order of before.
    let startedMs = isEmptySource ? 0 : (startedAtMs.get(node.name) ?? 0);
    let seenSinceMs = this.#unmanagedAtMs;
    // While it loads, nobody knows what it has.
    if (!isEmptySource) {
      const sinceMs = this.#reachableSinceMs.get(node.name) ?? world.nowMs;
      seenSinceMs = Math.max(seenSinceMs, sinceMs);
    }
    // It may copy another one that was started anew.
    for (const { name } of this.#sourcesOf(primary)) {
      startedMs = Math.max(startedMs, startedAtMs.get(name) ?? 0);
      seenSinceMs = Math.max(seenSinceMs, this.#reachableSinceMs.get(name) ?? world.nowMs);
    }
    if (orderedMs >= startedMs) return false;
    return world.nowMs - Math.max(startedMs, seenSinceMs) < unseenMs;
  }

  #onlyIn(data: Dataset, node: RedisNode): readonly string[] {
    const others = this.#sim.nodes.filter((each) => each !== node);
    return data.keys.filter(
      (key) =>
        !this.#gone.has(key) &&
        !loadsCopyWith(node, key) &&
        !others.some((other) => has(other, key)),
    );
  }
}

/** In memory, or where no process runs: what a start would read. */
export function has(node: RedisNode, key: string): boolean {
  const { server } = node;
  if (server?.data.get(key) !== undefined || loadsCopyWith(node, key)) return true;
  // The copy that it loads takes the place of its files.
  if (server !== undefined && (server.loading === undefined || isLoadingCopy(server))) return false;
  return onDisk(node)?.get(key) !== undefined;
}

/** It has all of a copy, and loads it. */
function loadsCopyWith({ server }: RedisNode, key: string): boolean {
  return server?.upstream?.copy?.get(key) !== undefined;
}

function isLoadingCopy({ upstream }: NonNullable<RedisNode['server']>): boolean {
  return upstream?.state === 'transfer';
}

function onDisk({ disk, configuration }: RedisNode): Dataset | undefined {
  return configuration.appendonly === 'yes' ? disk.aof : disk.rdb?.data;
}

export function isAside(node: RedisNode): boolean {
  const upstream = node.server?.upstream;
  return upstream !== undefined && upstream.host === '127.0.0.1' && upstream.port === 1;
}
