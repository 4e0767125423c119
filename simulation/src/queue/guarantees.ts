/**
 * The checks of one election, by name. Everything is judged from outside, by the world's time and
 * by the transactions of the quorum. Nothing is taken from the library's own account of itself.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Instant, Term, TermOutcome } from 'incumbent';
import type { Command, OperatorState } from '../harness/command.ts';
import { describeCommand, dropsOf, isGranted, takesBack } from '../harness/command.ts';
import type { QueueRecord } from '../harness/library.ts';
import { Readiness } from '../harness/readiness.ts';
import type { Request } from '../harness/zookeeper/ensemble.ts';
import type { Node, Operation, Transaction } from '../harness/zookeeper/tree.ts';
import { nameOf, parentOf } from '../harness/zookeeper/tree.ts';
import type { QueueRequest } from './bystanders.ts';
import type { Candidacy } from './candidacy.ts';
import { addressOf } from './candidacy.ts';
import type { QueueProcess } from './process.ts';
import type { Contested, QueueSimulation } from './simulation.ts';
import type { SeenDeath } from './witness.ts';

export const queueGuarantees = {
  belief: 'no two terms evaluate isLeading() to true at the same instant (S1)',
  expired: 'a term ends when its session is known to be over',
  waiting: 'nobody is announced while an earlier leader still believes (S1)',
  proof: 'belief counts from the sending of a request that was committed with a check of the place',
  revival: 'a term that has stopped leading never leads again',
  tokens: 'tokens rise from term to term in the order of the commits, and never fall',
  margin:
    'an effect sent after assertLeading(m) and delivered within m never arrives after one of a newer term',
  overlap: 'work of two terms never runs at the same time in one process',
  start: 'work never starts while isLeading() is false',
  announced: 'nobody leads before the record says so',
  place: 'whoever is announced has a place in the queue, and it is the first',
  fencing: 'nobody with hooks leads before they have run for every unclean predecessor',
  clean:
    'no hook runs for a leader whose end is recorded as clean, or that was named and never led',
  release: 'an end is recorded as clean only by the leader, and only when its work has settled',
  predecessor: 'a term is told the truth about its predecessor',
  witness: 'a witness gives back nothing but the seat of the process that it saw die',
  operator: 'an operator never takes the record from its leader',
  meant: 'a request hits the term that it was meant for, and no later one',
  granted: 'what an operator was told to be recorded has stood in the record',
  kept: 'what an operator has written stays until it is over, or an operator takes it back',
  heard: 'a leader that writes the record with a request in it stops',
  revoked: 'no term outlives a forced vacate by more than the belief that it had',
  stranger: 'places that are not ours are left alone unless an operator forces it',
  drain: 'a drained candidate is not announced',
  ended: 'nobody is announced in an ended election',
  promoted: 'nobody is promoted by the way in which an election is ended',
  unsettled: 'a candidate with unsettled work is not in the queue',
  stop: 'work is told to stop when belief minus the stop margin has come',
  operations: 'requests to the store per unit of time are bounded',
  herd: 'the end of a place wakes the one behind it and nobody else',
  truth: 'a term ends as superseded, expired, gone or revoked only if it was',
  zombie: 'whoever has left the queue has no place in it',
  proclaimed: 'what proclaim has resolved for stands in the record',
  ready: 'no record and no observer says that a leader is ready before its work has said so',
  observer: 'an observer sees no view twice in a row, and no token fall',
  leader: 'somebody leads within the bound once faults have stopped (L)',
  keeping: 'an undisturbed leader keeps its term',
  settling: 'promises of the library settle within their bounds',
  closed: 'a closed handle writes nothing more but to give up what it has',
  rejections: 'no rejection goes unhandled',
  timers: 'nothing is thrown from a timer, and no timer is longer than Node keeps',
  errors: 'the library rejects with nothing but what it documents',
} as const;

/** A term as the application has it. */
export interface TermEntry {
  readonly candidacy: Candidacy;
  readonly term: Term<unknown>;
  readonly token: bigint;
  readonly sinceMs: number;
  led: boolean;
  stoppedAtMs: number | undefined;
  /** Its seat is kept for so long after its work is done. */
  readonly holdMs: number;
  settledAtMs: number | undefined;
  outcome: TermOutcome | undefined;
}

interface Announcement {
  readonly token: bigint;
  readonly place: string;
  /** The session that its place lives with. */
  readonly session: bigint;
  readonly by: Candidacy | undefined;
  /** The record before it. */
  readonly before: QueueRecord | undefined;
  /** The transaction that it was made with. */
  readonly zxid: bigint;
  /** Its place had gone: it must not lead. */
  readonly isVoid: boolean;
  /** The leader before it has written it. */
  readonly isNaming: boolean;
  readonly atMs: number;
}

/** Room for rounding in comparisons of times. */
const epsilonMs = 1e-3;

const text = new TextDecoder();

export class QueueGuarantees {
  /** Terms that may lead, or whose end is awaited. */
  readonly terms: Set<TermEntry> = new Set();
  /** Those that were killed while a child of theirs acts on. */
  readonly orphans: Set<Candidacy> = new Set();
  readonly announcements: Map<bigint, Announcement> = new Map();
  /** Why places have vanished, by name. */
  readonly vanished: Map<string, 'expired' | 'by hand' | 'operator' | 'own'> = new Map();
  readonly records: QueueRecord[] = [];
  protected readonly sim: QueueSimulation;
  protected readonly contest: Contested;
  readonly #unfenced: Set<bigint> = new Set();
  /** When each made the last request that was committed with its place there, by its monotonic clock. */
  readonly #proved: Map<QueueProcess, number> = new Map();
  /** The terms whose work has begun. */
  readonly #begun: Set<bigint> = new Set();
  /** The last transaction with which each has proved that its place was there. */
  readonly #provedBy: Map<QueueProcess, bigint> = new Map();
  /** When an operator has forced the leader out, by the token of its term. */
  readonly #revokedAtMs: Map<bigint, number> = new Map();
  readonly readiness: Readiness;
  #record: QueueRecord | undefined;
  #highestToken = 0n;
  #commits: number[] = [];

  constructor(sim: QueueSimulation, contest: Contested) {
    this.sim = sim;
    this.contest = contest;
    this.readiness = new Readiness(sim.world);
  }

  get record(): QueueRecord | undefined {
    return this.#record;
  }

  // --- before and after every event ---

  check(): void {
    const { world, scenario } = this.sim;
    let leader: { readonly token: bigint; readonly who: string } | undefined;
    const lead = (token: bigint, who: string) => {
      if (leader !== undefined && leader.token !== token && scenario.waits) {
        world.fail('belief', `election ${this.contest.name}: ${leader.who} and ${who} both lead`);
      }
      leader = { token, who };
    };
    for (const candidacy of this.orphans) {
      if (candidacy.isOrphaned) lead(-1n, `a child of ${candidacy.name}`);
      else this.orphans.delete(candidacy);
    }
    const looks = scenario.looksAlways || this.terms.size + this.orphans.size > 1;
    for (const entry of this.terms) {
      const { candidacy, term, token } = entry;
      if (!candidacy.process.alive) {
        this.terms.delete(entry);
        continue;
      }
      if (!looks || !term.isLeading()) {
        if (looks && entry.led) entry.stoppedAtMs ??= world.nowMs;
        if (entry.outcome !== undefined) this.terms.delete(entry);
        else this.#checkEnding(entry);
        continue;
      }
      lead(token, `term ${token} of ${candidacy.name} (${left(entry)} ms left)`);
      this.#checkLeading(entry);
    }
  }

  #checkLeading(entry: TermEntry): void {
    const { world } = this.sim;
    const { candidacy, term } = entry;
    const { timing } = candidacy;
    const { host } = candidacy.process;
    entry.led = true;
    const place = this.announcements.get(entry.token)?.session;
    const isOver = place !== undefined && candidacy.process.client.sessionId !== place;
    // Told to stop already, it may go on believing until its belief ends.
    if (isOver && !term.signal.aborted && !host.isAhead) {
      world.fail(
        'expired',
        `term ${entry.token} of ${candidacy.name} leads on without its session`,
      );
    }
    const revokedAtMs = this.#revokedAtMs.get(entry.token) ?? world.nowMs;
    const revokedMs = world.nowMs - revokedAtMs;
    if (revokedMs > timing.beliefMs / host.slowestRateSince(revokedAtMs) + epsilonMs) {
      world.fail(
        'revoked',
        `term ${entry.token} of ${candidacy.name} leads ${revokedMs.toFixed(1)} ms after it was revoked`,
      );
    }
    if (entry.stoppedAtMs !== undefined) {
      // Setting a wall clock forward and back again interrupts a belief without ending it.
      if (host.lastClockChangeMs < entry.stoppedAtMs) {
        world.fail('revival', `term ${entry.token} of ${candidacy.name} leads again`);
      }
      entry.stoppedAtMs = undefined;
    }
    if (term.signal.aborted || host.isPaused || host.isAhead) return;
    const calmMs = world.nowMs - Math.max(host.lastDisturbedMs, entry.sinceMs);
    if (calmMs < 2 * (timing.renewEveryMs + timing.operationTimeoutMs)) return;
    const lateMs = timing.stopMarginMs - term.remaining();
    if (lateMs > 5 + 3 * host.errors.timerLagMs) {
      world.fail(
        'stop',
        `term ${entry.token} of ${candidacy.name} has ${left(entry)} ms of belief left, less than ` +
          `its stop margin of ${timing.stopMarginMs.toFixed(1)} ms, and was not told to stop`,
      );
    }
  }

  /** Once the work has settled, the seat is given back within three operation timeouts. */
  #checkEnding({ candidacy, token, settledAtMs, holdMs }: TermEntry): void {
    if (settledAtMs === undefined) return;
    const { world, scenario } = this.sim;
    const { host } = candidacy.process;
    const sinceMs = world.nowMs - Math.max(settledAtMs, host.lastDisturbedMs);
    const timeoutMs = candidacy.timing.operationTimeoutMs;
    const boundMs = (holdMs + 5 * timeoutMs + 10 * host.errors.timerLagMs) / (1 - scenario.drift);
    if (sinceMs > boundMs) {
      world.fail(
        'settling',
        `term ${token} of ${candidacy.name} has not ended ${sinceMs.toFixed(1)} ms after its work`,
      );
    }
  }

  /** The quorum's commits for a candidate judge its belief. */
  checkBelief(candidacy: Candidacy, deadline: Instant | undefined): void {
    const { world, scenario } = this.sim;
    const { process, timing } = candidacy;
    if (deadline === undefined || !scenario.checksRules) return;
    const provedMs = this.#proved.get(process);
    const restsOnMs = deadline.monotonicMs - timing.beliefMs;
    if (provedMs !== undefined && restsOnMs <= provedMs + epsilonMs) return;
    world.fail(
      'proof',
      `${candidacy.name} believes by a request of ${restsOnMs.toFixed(3)} ms on its clock; the last ` +
        `that was committed for its place was made at ${provedMs?.toFixed(3)} ms`,
    );
  }

  /** Called when the work of a term begins. */
  checkBeginning({ candidacy, term, token }: TermEntry): void {
    const { world } = this.sim;
    const { host } = candidacy.process;
    this.#begun.add(token);
    // In this order: the question itself may be where the host stands still.
    if (!term.isLeading() && !host.isAhead) {
      world.fail('start', `${candidacy.name} starts work for term ${token} without leading`);
    }
    const announcement = this.announcements.get(token);
    if (announcement === undefined) {
      world.fail('announced', `${candidacy.name} leads with term ${token}, no record says so`);
      return;
    }
    if (announcement.isVoid) {
      world.fail('place', `${candidacy.name} leads with term ${token}, announced without a place`);
    }
    if (announcement.isNaming) {
      this.sim.coverage.count('terms of named successors');
      const provedBy = this.#provedBy.get(candidacy.process) ?? 0n;
      if (provedBy < announcement.zxid) {
        this.sim.coverage.count('named successors that led at once');
      }
    }
    const { before } = announcement;
    const held = before?.holding;
    const last = before?.history.at(-1);
    const { predecessor } = term;
    const expected = held === undefined ? last?.token : before?.token;
    if (predecessor?.token !== expected) {
      world.fail(
        'predecessor',
        `term ${token} of ${candidacy.name} names term ${predecessor?.token} before it, the record ` +
          `named ${expected}`,
      );
    }
    if (predecessor?.clean !== true) return;
    const ended = this.announcements.get(predecessor.token)?.by;
    const isOwn = ended === candidacy;
    if (held !== undefined && !isOwn) {
      world.fail(
        'predecessor',
        `term ${token} of ${candidacy.name} calls the end of term ${predecessor.token} clean`,
      );
    }
  }

  /** A hook is about to run: nobody before may believe any more. */
  checkHook(candidacy: Candidacy, predecessor: bigint): void {
    const { world } = this.sim;
    const end = this.#record?.history.find(({ token }) => token === predecessor);
    if (end !== undefined && end.why !== 'unclean') {
      world.fail('clean', `${candidacy.name} fences term ${predecessor}, which ended clean`);
    }
    if (this.#hasDeclined(predecessor)) {
      world.fail('clean', `${candidacy.name} fences term ${predecessor}, which never began`);
    }
    world.looking = true;
    for (const entry of this.terms) {
      if (entry.token !== predecessor || !entry.candidacy.process.alive) continue;
      if (entry.term.isLeading() && this.sim.scenario.waits) {
        world.fail(
          'fencing',
          `${candidacy.name} fences term ${predecessor} of ${entry.candidacy.name}, which leads`,
        );
      }
    }
    world.looking = false;
  }

  /**
   * Was named, and gave its place up without leading, undisturbed and on the same connection. Its mark
   * was good: it is written again as soon as the connection is back.
   */
  #hasDeclined(token: bigint): boolean {
    const { announcements, vanished, sim } = this;
    const named = announcements.get(token);
    if (named?.by === undefined || !named.isNaming || this.#begun.has(token)) return false;
    if (vanished.get(named.place) !== 'own') return false;
    const { process, timing } = named.by;
    const markedMs = (2 * timing.operationTimeoutMs) / (1 - sim.scenario.drift);
    const isConnected = process.lastStateMs < named.atMs - markedMs;
    const isCalm = process.host.lastDisturbedMs < named.atMs - sim.scenario.timeoutMs;
    return process.alive && isConnected && isCalm;
  }

  /** Why a term ended is judged by what really happened. */
  checkOutcome({ candidacy, token, outcome }: TermEntry): void {
    const { world } = this.sim;
    const reason = outcome?.reason;
    const place = this.announcements.get(token)?.place ?? '';
    const later = this.records.filter((record) => record.token >= token);
    const { process } = candidacy;
    const holds: Record<string, () => boolean> = {
      superseded: () => this.wasSuperseded(token),
      'record-gone': () => this.vanished.has(place),
      'session-expired': () => process.sessions.size > 1 || process.client.sessionId === undefined,
      'election-ended': () => later.some(({ ended }) => ended),
      'handed-over': () => later.some((record) => requestOf(record) === 'transfer'),
      vacated: () =>
        later.some(
          (record) =>
            requestOf(record) === 'vacate' ||
            record.drains.some(({ id }) => id === process.plan.id),
        ),
    };
    if (reason !== undefined && holds[reason]?.() === false) {
      world.fail('truth', `term ${token} of ${candidacy.name} ended as ${reason}; it was not`);
    }
  }

  protected wasSuperseded(token: bigint): boolean {
    return this.records.some((record) => record.token > token);
  }

  /** The leader of a term, as the newest record that names it says. */
  shownOf(token: bigint): QueueRecord['holding'] {
    return this.records.findLast((record) => record.token === token && record.holding)?.holding;
  }

  checkReady(candidacy: Candidacy, token: bigint): void {
    if (this.shownOf(token)?.ready !== false) return;
    const why = `${candidacy.name}: ready resolved, the record does not show it`;
    this.sim.world.fail('proclaimed', why);
  }

  checkProclaimed(candidacy: Candidacy, token: bigint, build: string): void {
    const shown = this.shownOf(token);
    if (shown === undefined || shown.candidate.metadata['build'] === build) return;
    this.sim.world.fail(
      'proclaimed',
      `${candidacy.name}: proclaim resolved, the record shows something else`,
    );
  }

  /** Asked by code that runs within a turn of a process and just found that it leads. */
  checkNow(candidacy: Candidacy): void {
    if (!candidacy.process.host.isAhead) this.sim.world.look();
  }

  // --- the store ---

  /**
   * Deletes a place, or takes back an announcement whose answer was lost: the seat is vacant then. Or writes
   * again what stands there, so that such an announcement cannot land any more.
   */
  #givesUp(operations: readonly Operation[]): boolean {
    const { path } = this.contest;
    const deletes = operations.some(({ type }) => type === 'delete');
    return operations.every((operation) => {
      if (operation.type === 'delete' || (operation.type === 'check' && deletes)) return true;
      if (operation.type !== 'set' || operation.path !== path) return false;
      const record = this.#recordIn(operation.data);
      const stood = this.records.some(({ nonce }) => nonce === record?.nonce);
      return record?.holding === undefined || stood;
    });
  }

  #recordIn(data: Uint8Array | null | undefined): QueueRecord | undefined {
    if (data === null || data === undefined || data.length === 0) return undefined;
    const { path } = this.contest;
    const record = this.sim.library.decodeQueueRecord(text.decode(data), path);
    return inFull(record, (recorded) => this.sim.ground.placeIn(path, recorded));
  }

  onRequest(process: QueueProcess, request: Request): void {
    const { world, scenario } = this.sim;
    const candidacies = process.candidaciesIn(this.contest);
    const [candidacy] = candidacies;
    if (candidacy === undefined) return;
    const paths = pathsOf(request);
    const { path } = this.contest;
    if (!paths.some((each) => this.isOfElection(each))) return;
    const isClosed = candidacies.every((each) => each.isClosed);
    if (isClosed && request.kind === 'write' && !this.#givesUp(request.operations)) {
      world.fail('closed', `${candidacy.name} sends a request after close() has resolved`);
    }
    if (request.kind === 'write' && request.operations[0]?.type === 'create') {
      const { running } = candidacy;
      // Which of several has sent it is not known.
      if (running !== undefined && paths[0] !== path && candidacies.length === 1) {
        world.fail(
          'unsettled',
          `${candidacy.name} enters the queue while work of term ${running.token} runs`,
        );
      }
    }
    const { requestsPerInterval } = this.sim.ground;
    const windowMs = candidacy.timing.renewEveryMs / (1 + scenario.drift);
    const times = process.requestTimes;
    const since = world.nowMs - windowMs;
    times.push(world.nowMs);
    while ((times[0] ?? world.nowMs) < since) times.shift();
    if (times.length <= requestsPerInterval) return;
    const commits = this.sim.contests.reduce(
      (sum, { guarantees }) => sum + guarantees.commitsSince(since),
      0,
    );
    const allowed = requestsPerInterval * process.candidacies.length + 10 * commits;
    if (times.length > allowed) {
      world.fail(
        'operations',
        `${process.name} sent ${times.length} requests within ${windowMs.toFixed(0)} ms, in which ` +
          `the elections changed ${commits} times (allowed: ${allowed})`,
      );
    }
  }

  commitsSince(ms: number): number {
    while ((this.#commits[0] ?? Number.POSITIVE_INFINITY) < ms - 60_000) this.#commits.shift();
    return this.#commits.filter((atMs) => atMs >= ms).length;
  }

  /** @param why how places vanish with this transaction, unless their owner has deleted them */
  onCommit(
    transaction: Transaction,
    session: bigint,
    operations: readonly Operation[],
    why: 'expired' | 'by hand' | 'own',
  ): void {
    const { world } = this.sim;
    const { path } = this.contest;
    const node = transaction.changes.get(path);
    if (node !== undefined) this.#commits.push(world.nowMs);
    this.#onProof(session, operations, transaction.zxid);
    if (operations.some((operation) => operation.type === 'set' && operation.path === path)) {
      this.#onRecord(this.#recordIn(node?.data), session, transaction, operations);
    }
    const isWitness = this.sim.witness?.writes.has(operations) === true;
    // After the record: what an operator removes has to stand beside what it writes.
    for (const [changed, child] of transaction.changes) {
      if (child !== undefined) continue;
      const place = this.placeAt(changed);
      if (place !== undefined) this.#onVanished(place, session, why, isWitness);
    }
  }

  /** Which place a node was that is deleted now. */
  protected placeAt(path: string): string | undefined {
    return parentOf(path) === this.contest.path ? path : undefined;
  }

  /** A node of this election. */
  protected isOfElection(path: string): boolean {
    return path === this.contest.path || parentOf(path) === this.contest.path;
  }

  /** A place of the session was made, checked or written beside: it was there. */
  #onProof(session: bigint, operations: readonly Operation[], zxid: bigint): void {
    const process = this.sim.processOf(session);
    const madeMs = process?.requestsMadeMs.get(operations);
    if (process === undefined || madeMs === undefined) return;
    if (!operations.some((operation) => this.proves(operation, session))) return;
    this.#provedBy.set(process, zxid);
    this.#proved.set(process, Math.max(this.#proved.get(process) ?? madeMs, madeMs));
  }

  /** @param session whose transaction this is part of, which is committed */
  protected proves({ type, path }: Operation, session: bigint): boolean {
    if (parentOf(path) !== this.contest.path) return false;
    // A leader checks the place of its successor, too.
    if (type === 'check') return this.sim.ownerOf(path) === this.sim.processOf(session);
    return type === 'create';
  }

  #onVanished(
    place: string,
    session: bigint,
    why: 'expired' | 'by hand' | 'own',
    isWitness: boolean,
  ): void {
    const { world, coverage } = this.sim;
    const owner = this.sim.ownerOf(place);
    if (why === 'expired') {
      this.vanished.set(place, 'expired');
      if (this.#record?.holding?.place === place) coverage.count('sessions expired while leading');
      else coverage.count('sessions expired while waiting');
    } else if (why === 'by hand') this.vanished.set(place, 'by hand');
    else {
      const isOwn = owner !== undefined && this.sim.processOf(session) === owner;
      this.vanished.set(place, isOwn ? 'own' : 'operator');
      const { requests } = this.contest;
      // Of an operator that has given up it is not known any more what it has asked for.
      const isBeingEnded = requests.length > 0 && requests.every((what) => what === 'end');
      // A candidate whose node was deleted by hand may take another one's for its own.
      const isByOperator = this.sim.processOf(session) === undefined && !isWitness;
      if (isByOperator && isBeingEnded && this.#record?.ended !== true) {
        world.fail('promoted', 'places are taken away before the election is marked as ended');
      }
      if (!isOwn) this.checkTaken(owner, session);
    }
    this.checkHerd(place, owner);
  }

  /** Somebody has deleted a place that was not its own, and not by hand. */
  protected checkTaken(owner: QueueProcess | undefined, _session: bigint): void {
    if (owner !== undefined || this.contest.mayRemoveStrangers) return;
    const { path } = this.contest;
    this.sim.world.fail('stranger', `a place that is not ours was removed from ${path}`);
  }

  protected checkHerd(place: string, owner: QueueProcess | undefined): void {
    const { world, processes, scenario, ensemble } = this.sim;
    const leads = this.#record?.holding?.place;
    const leader = leads === undefined ? undefined : this.sim.ownerOf(leads);
    let woken = 0;
    for (const process of processes) {
      // It watches the one behind it, which it may name.
      if (process === leader) continue;
      const { sessionId } = process.client;
      // A client that has not heard of its session's end still has its watches; no server does.
      if (sessionId === undefined || !ensemble.sessions.has(sessionId)) continue;
      if (process !== owner && process.client.watchers(place) > 0) woken += 1;
    }
    // The one behind it, and one that has just become so while another has not yet noticed.
    if (woken > 2 && !scenario.observes) {
      world.fail('herd', `the end of one place wakes ${woken} others`);
    }
  }

  #onRecord(
    record: QueueRecord | undefined,
    session: bigint,
    transaction: Transaction,
    operations: readonly Operation[],
  ): void {
    const { world } = this.sim;
    const last = this.#record;
    const before = this.lastLed(last);
    this.#record = record;
    if (record === undefined) return;
    // Only so that announcements of before meet another version.
    if (isDeepStrictEqual(record, last)) return;
    this.records.push(record);
    const process = this.sim.processOf(session);
    world.trace.add(world.nowMs, process?.name ?? 'op', 'writes the record', () =>
      describeRecord(record),
    );
    if (last !== undefined && record.token < last.token) {
      world.fail('tokens', `the record’s token fell from ${last.token} to ${record.token}`);
    }
    const named = this.#namedBy(process, last, record, operations);
    if (named !== undefined) {
      this.#checkNaming(named, record, session, transaction);
      return;
    }
    const candidacy = this.#authorOf(process, record.holding ?? last?.holding);
    if (record.holding !== undefined && !this.sim.scenario.strangers) {
      this.readiness.check(record.token, record.holding.ready !== false, process?.name ?? 'op');
    }
    const changesHands =
      record.holding !== undefined && record.holding.place !== before?.holding?.place;
    const death = this.sim.witness?.writes.get(operations);
    if (death !== undefined) {
      this.#checkWitness(death, last, record);
      return;
    }
    if (candidacy === undefined) {
      this.#checkOperator(before, this.lastLed(record));
      const request = this.sim.operator.requests.get(operations);
      if (request !== undefined) this.#checkRequest(request, before, record);
      return;
    }
    this.#checkKept(candidacy, before, record);
    this.#checkHeard(candidacy, record);
    if (changesHands) {
      this.#checkAnnounced(candidacy, session, before, record, transaction);
      const leader = this.announcements.get(before?.token ?? 0n)?.by?.process;
      if (
        leader !== undefined &&
        leader.plan.spelling.chroot !== candidacy.process.plan.spelling.chroot
      ) {
        this.sim.coverage.count('leaders after one that spells its place otherwise');
      }
    }
    if (record.holding === undefined && last?.holding !== undefined) {
      this.#checkVacated(candidacy, last, session);
      this.checkReleased(candidacy, transaction);
    }
  }

  /** The leader that gives its place up with this record, if the record names another leader. */
  #namedBy(
    process: QueueProcess | undefined,
    last: QueueRecord | undefined,
    { holding }: QueueRecord,
    operations: readonly Operation[],
  ): { readonly leader: Candidacy; readonly last: QueueRecord } | undefined {
    const place = last?.holding?.place;
    if (process === undefined || last === undefined || place === undefined) return undefined;
    if (holding === undefined || this.sim.ownerOf(holding.place) === process) return undefined;
    // The operation may spell the place otherwise: its number says which one it is.
    const isGivenUp = operations.some(
      ({ type, path }) => type === 'delete' && nameOf(path) === nameOf(place),
    );
    const leader = this.#authorOf(process, last.holding);
    return isGivenUp && leader !== undefined ? { leader, last } : undefined;
  }

  /** A clean end and an announcement in one. */
  #checkNaming(
    { leader, last }: { readonly leader: Candidacy; readonly last: QueueRecord },
    record: QueueRecord,
    session: bigint,
    transaction: Transaction,
  ): void {
    const { holding } = record;
    const { token, place } = last;
    this.sim.coverage.count('successors named');
    this.#checkKept(leader, last, record);
    this.#checkVacated(leader, last, session);
    this.checkReleased(leader, transaction);
    const owner = holding && this.sim.ownerOf(holding.place);
    const named = this.#authorOf(owner, holding);
    const node = holding && this.sim.nodeOf(holding.place);
    if (named === undefined) {
      // Of one whose process has gone nothing is to be judged.
      this.sim.coverage.count('successors that were dead when they were named');
      return;
    }
    const before = { ...record, holding: undefined, token, place };
    this.#checkAnnounced(named, node?.owner ?? 0n, before, record, transaction, true);
  }

  /** Which candidate of a process has written that this one leads, or that it has stopped. */
  #authorOf(
    process: QueueProcess | undefined,
    leader: QueueRecord['holding'],
  ): Candidacy | undefined {
    const candidacies = process?.candidaciesIn(this.contest) ?? [];
    const [address] = leader?.candidate.addresses ?? [];
    return candidacies.find(({ handle }) => addressOf(handle) === address) ?? candidacies[0];
  }

  /** The record, or what stands for it where a leader that is not ours has left none. */
  protected lastLed(record: QueueRecord | undefined): QueueRecord | undefined {
    return record;
  }

  /** The last leader, if it said nothing of its end, was fenced by a candidate that is not ours. */
  protected get wasFenced(): boolean {
    return false;
  }

  #checkAnnounced(
    candidacy: Candidacy,
    session: bigint,
    before: QueueRecord | undefined,
    record: QueueRecord,
    { zxid }: Transaction,
    isNaming = false,
  ): void {
    const { world, scenario, coverage } = this.sim;
    const { holding, token } = record;
    if (holding === undefined) return;
    const { place } = holding;
    const { name, process } = candidacy;
    const node = this.sim.nodeOf(place);
    const isVoid = node === undefined || node.owner !== session || node.czxid !== token;
    const written = { token, place, session, by: candidacy, before, zxid };
    this.announcements.set(token, { ...written, isVoid, isNaming, atMs: world.nowMs });
    if (isVoid) {
      if (this.mayBeVoid(place)) coverage.count('announcements without a place');
      else world.fail('place', `${name} is announced without a place (${nameOf(place)})`);
    } else if (this.places()[0] !== place) {
      world.fail('place', `${name} is announced, and others are before it`);
    }
    if (token <= this.#highestToken) {
      world.fail('tokens', `${name} leads with token ${token}, after ${this.#highestToken}`);
    }
    this.#highestToken = token;
    if (record.ended || before?.ended === true) {
      world.fail('ended', `${name} is announced in an ended election`);
    }
    const { host } = process;
    const drain = before?.drains.find(({ id }) => id === process.plan.id);
    if (
      drain !== undefined &&
      drain.untilUnixMs > host.wallMs() + candidacy.timing.operationTimeoutMs &&
      host.lastDisturbedMs < world.nowMs - scenario.timeoutMs
    ) {
      world.fail('drain', `${name} is announced although it is drained`);
    }
    if (scenario.checksRules && scenario.waits) {
      world.looking = true;
      for (const entry of this.terms) {
        if (entry.token < token && entry.candidacy.process.alive && entry.term.isLeading()) {
          world.fail(
            'waiting',
            `${name} is announced with term ${token} while term ${entry.token} of ` +
              `${entry.candidacy.name} has ${left(entry)} ms of belief left`,
          );
        }
      }
      world.looking = false;
    }
    const isOwn = this.announcements.get(before?.token ?? 0n)?.by === candidacy;
    if (before?.holding !== undefined && !isOwn) {
      coverage.count('terms after an unclean end');
      if (!this.wasFenced) this.#unfenced.add(before.token);
    } else if (before !== undefined && before.token > 0n) coverage.count('terms after a clean end');
    this.#checkFenced(candidacy, token);
    const told = this.sim.onAnnounced;
    this.sim.onAnnounced = undefined;
    told?.(place);
  }

  /** May be announced without a place, if it does not lead then. */
  protected mayBeVoid(_place: string): boolean {
    return false;
  }

  #checkFenced(candidacy: Candidacy, token: bigint): void {
    const { hooks, takeoverDelayMs } = candidacy.process.plan;
    if (this.#unfenced.size > 0 && (hooks > 0 || takeoverDelayMs > 0)) {
      for (const unfenced of this.#unfenced) {
        const done = candidacy.hooksDone(token, unfenced);
        if (done < hooks) {
          this.sim.world.fail(
            'fencing',
            `${candidacy.name} announced term ${token} after ${done} of ${hooks} hooks for term ` +
              `${unfenced}, which ended unclean`,
          );
        }
      }
      this.sim.coverage.count('terms announced after fencing');
    }
    this.#unfenced.clear();
  }

  /** A leader has recorded its clean end. */
  protected checkReleased(_candidacy: Candidacy, _transaction: Transaction): void {}

  /** It is left to end with the session that it was made in, by somebody whose session is another one. */
  protected goesWithItsSession(_place: Node, _session: bigint): boolean {
    return false;
  }

  #checkVacated(candidacy: Candidacy, before: QueueRecord, session: bigint): void {
    const { world, coverage } = this.sim;
    const announcement = this.announcements.get(before.token);
    const place = before.holding?.place ?? '';
    if (announcement?.by?.process !== candidacy.process) {
      world.fail('release', `${candidacy.name} records a clean end of term ${before.token}`);
      return;
    }
    coverage.count('releases');
    if (candidacy.running?.token === before.token) {
      world.fail(
        'release',
        `term ${before.token} of ${candidacy.name} ends clean while its work runs`,
      );
    }
    // Of an announcement that is taken back the place may have gone before.
    const node = this.sim.nodeOf(place);
    if (node !== undefined && !this.goesWithItsSession(node, session)) {
      world.fail(
        'release',
        `term ${before.token} of ${candidacy.name} ends clean and keeps its place`,
      );
    }
  }

  #checkOperator(before: QueueRecord | undefined, after: QueueRecord | undefined): void {
    const last = before?.holding;
    if (before === undefined || last === undefined) return;
    const next = after?.holding;
    const isSameTerm =
      after?.token === before.token &&
      next?.place === last.place &&
      next.candidate.incarnation === last.candidate.incarnation;
    const isSameWrite = after?.nonce === before.nonce && after.beliefMs === before.beliefMs;
    // This check does not say what others would write of a leader that is not ours.
    const isOurs = this.announcements.has(before.token);
    if (isSameTerm && (isSameWrite || !isOurs)) return;
    this.sim.world.fail('operator', 'an operator changed who leads, its token, nonce or belief');
  }

  /** The record that it replaces is that of the dead, and its place goes with it. */
  #checkWitness(
    { candidacy, token, hasWorkEnded }: SeenDeath,
    last: QueueRecord | undefined,
    record: QueueRecord,
  ): void {
    const { world, coverage } = this.sim;
    const announcement = this.announcements.get(token);
    const isTheirs = last?.token === token && announcement?.by?.process === candidacy.process;
    const acts = candidacy.process.alive || candidacy.isOrphaned;
    if (!isTheirs || last?.holding === undefined || acts) {
      const what = describeRecord(last);
      world.fail('witness', `term ${token} of ${candidacy.name} died, ${what} is replaced`);
      return;
    }
    const isThere = this.sim.nodeOf(last.holding.place) !== undefined;
    if (record.holding !== undefined || record.token !== token || isThere) {
      const place = isThere ? 'keeps' : 'deletes';
      world.fail('witness', `a witness writes ${describeRecord(record)}, and ${place} the place`);
      return;
    }
    const drop = dropsOf(operatorStateOf(last), operatorStateOf(record), world.nowMs);
    if (drop !== undefined) world.fail('kept', `a witness drops ${drop.what}`);
    coverage.count('seats given back by a witness');
    // Effects of the dead may still be on their way: that is the price of not waiting.
    this.contest.resource.excused.add(token);
    if (hasWorkEnded) return;
    this.#unfenced.add(token);
    coverage.count('seats given back by a witness, to be fenced');
  }

  #checkRequest(
    { command, meant }: QueueRequest,
    before: QueueRecord | undefined,
    record: QueueRecord,
  ): void {
    const { world, operator } = this.sim;
    const nonce = record.holding?.request?.nonce;
    const isNew = nonce !== undefined && nonce !== before?.holding?.request?.nonce;
    if (isNew && record.token !== meant) {
      world.fail(
        'meant',
        `a request (${describeCommand(command)}) for term ${meant} was left for term ${record.token}`,
      );
    }
    if (record.holding?.revoked === true && !this.#revokedAtMs.has(record.token)) {
      this.#revokedAtMs.set(record.token, world.nowMs);
    }
    const drop = dropsOf(
      before && operatorStateOf(before),
      operatorStateOf(record),
      operator.host.wallMs(),
    );
    if (drop !== undefined && !takesBack(command, drop)) {
      world.fail('kept', `the operator’s ${describeCommand(command)} drops ${drop.what}`);
    }
  }

  /** The record of a candidate has everything in it that operators have written. */
  #checkKept(candidacy: Candidacy, before: QueueRecord | undefined, record: QueueRecord): void {
    const { host } = candidacy.process;
    const { world, scenario } = this.sim;
    // An order that was over by its clock when it wrote may not be over by it now.
    if (host.setBackAtMs > world.nowMs - scenario.timeoutMs) return;
    const drop = dropsOf(before && operatorStateOf(before), operatorStateOf(record), host.wallMs());
    if (drop === undefined) return;
    world.fail(
      'kept',
      `${candidacy.name} writes a record without ${drop.what}, which was in the one before it`,
    );
  }

  /** A candidate that writes a request on has read it. */
  #checkHeard({ name, running }: Candidacy, { holding, token, ended }: QueueRecord): void {
    if (running === undefined || running.token !== token || holding === undefined) return;
    if (holding.request === undefined && !ended) return;
    if (running.term.signal.aborted) return;
    this.sim.world.fail(
      'heard',
      `${name} writes on what is asked of term ${token}, and its work was not told`,
    );
  }

  /** An operator was told that what it asked for is recorded, or was already. */
  checkGranted(command: Command, before: QueueRecord | undefined, since: number): void {
    const wallMs = this.sim.operator.host.wallMs();
    const shown = [before, ...this.records.slice(since)];
    if (shown.some((record) => isGranted(command, record, wallMs))) return;
    this.sim.world.fail(
      'granted',
      `"${describeCommand(command)}" was recorded, the operator is told; it was not`,
    );
  }

  /** Which term the data of the election's node names; 0n for none. */
  tokenIn(data: Uint8Array | null): bigint {
    if (data === null || data.length === 0) return 0n;
    return this.sim.library.decodeQueueRecord(text.decode(data), this.contest.path).token;
  }

  /** The places in the queue, in order. */
  places(): readonly string[] {
    return this.sim.ground.placesIn(this.sim.ensemble.tree, this.contest.path);
  }
}

/** With the full path of each place, by whatever path its writer knows it. */
function inFull(record: QueueRecord, placeIn: (recorded: string) => string): QueueRecord {
  const { place, holding } = record;
  const full = (recorded: string) => (recorded === '' ? '' : placeIn(recorded));
  return {
    ...record,
    place: full(place),
    holding: holding && { ...holding, place: full(holding.place) },
  };
}

/** The orders that operators have left in a record. */
function operatorStateOf({ token, holding, drains, ended }: QueueRecord): OperatorState {
  return { token, holding: holding, drains, ended };
}

function requestOf(record: QueueRecord): string | undefined {
  return record.holding?.request?.kind;
}

function pathsOf(request: Request): readonly string[] {
  if (request.kind === 'write') return request.operations.map(({ path }) => path);
  return 'path' in request ? [request.path] : [];
}

function left(entry: TermEntry): string {
  return entry.term.remaining().toFixed(3);
}

export function describeRecord(record: QueueRecord | undefined): string {
  if (record === undefined) return 'no record';
  const { holding, reservation } = record;
  const parts = [`term ${record.token}`];
  if (holding === undefined) parts.push('vacant');
  else {
    parts.push(`${holding.candidate.id}/${holding.candidate.incarnation.slice(0, 4)}`);
    if (holding.revoked) parts.push('revoked');
    if (holding.request !== undefined) parts.push(`asked to ${holding.request.kind}`);
  }
  if (reservation !== undefined) parts.push(`reserved for ${reservation.for}`);
  if (record.ended) parts.push('ended');
  if (record.unfenced.length > 0) parts.push(`${record.unfenced.length} unfenced`);
  if (record.drains.length > 0) parts.push(`drained: ${record.drains.map(({ id }) => id).join()}`);
  return parts.join(', ');
}
