/**
 * The checks, by name. Everything here is judged from outside, by the world's time and by the
 * records that really stood in the store. Nothing is taken from the library's own account of
 * itself.
 */

import type { Term, TermOutcome } from 'incumbent';
import type { LeaseRecord, Reading, SwapResult } from 'incumbent/testing';
import type { Command } from '../harness/command.ts';
import { describeCommand, dropsOf, isGranted, takesBack } from '../harness/command.ts';
import { Readiness } from '../harness/readiness.ts';
import { Request } from './bystanders.ts';
import type { CandidateProcess } from './candidate.ts';
import type { Client } from './network.ts';
import type { Commit } from './server.ts';
import type { LeaseSimulation } from './simulation.ts';
import { Witness } from './witness.ts';

export const guarantees = {
  belief: 'no two terms evaluate isLeading() to true at the same instant (S1)',
  seat: 'no two candidates believe in their seats at the same instant, announced or not (S1)',
  revival: 'a term that has stopped leading never leads again',
  tokens: 'tokens rise from term to term in the order of the commits, and never fall',
  margin:
    'an effect sent after assertLeading(m) and delivered within m never arrives after one of a newer term',
  overlap: 'work of two terms never runs at the same time in one process',
  start: 'work never starts while isLeading() is false',
  announced: 'nobody leads before the record says so',
  fencing: 'nobody with hooks leads before they have run for every unclean predecessor',
  release: 'a seat is given back only by its holder, and only when the work has settled',
  lease: 'no seat is taken before the lease in its record has run out, unless its holder is dead',
  witness: 'a witness gives back nothing but the seat of the process that it saw die',
  operator: 'an operator never takes the seat from its holder',
  meant: 'a request hits the term that it was meant for, and no later one',
  granted: 'what an operator was told to be recorded has stood in the record',
  kept: 'what an operator has written stays until it is over, or an operator takes it back',
  heard: 'a leader that writes the record with a request in it stops',
  revoked: 'no term outlives a forced vacate by more than the belief that it had',
  reservation: 'a reserved seat is left to whom it is reserved for',
  drain: 'a drained candidate does not take the seat',
  ended: 'nobody takes a seat of an ended election',
  unsettled: 'a candidate with unsettled work takes no seat',
  stop: 'work is told to stop when belief minus the stop margin has come',
  operations: 'store operations per unit of time are bounded',
  futile: 'followers read, and never write just to fail',
  truth: 'a term ends as superseded, gone or revoked only if it was',
  late: 'who withdraws looks for a write of its own that may have landed, and takes it back',
  handback: 'a leader that leaves while the store answers gives its seat back',
  disowned: 'a term that reads of another holder ends at once',
  proclaimed: 'what proclaim and declareActors have resolved for stands in the record',
  ready: 'no record and no observer says that a leader is ready before its work has said so',
  observer: 'an observer sees no view twice in a row, and no token fall',
  leader: 'somebody leads within the bound once faults have stopped (L)',
  keeping: 'an undisturbed leader keeps its term',
  settling: 'promises of the library settle within their bounds',
  closed: 'a closed handle asks the store for nothing more',
  rejections: 'no rejection goes unhandled',
  timers: 'nothing is thrown from a timer, and no timer is longer than Node keeps',
  errors: 'the library rejects with nothing but what it documents',
} as const;

/** A write that takes the seat, and whose outcome is not known. */
export interface Attempt {
  readonly nonce: string;
  readonly token: bigint;
  /** Looks at the store since then, and those of them that were answered in time. */
  looks: number;
  answers: number;
}

/** A term as the application has it. */
export interface TermEntry {
  readonly process: CandidateProcess;
  readonly term: Term<unknown>;
  readonly token: bigint;
  readonly sinceMs: number;
  led: boolean;
  stoppedAtMs: number | undefined;
  /** It has read that the seat is somebody else's. */
  mustEnd: boolean;
  /** Its seat is kept for so long after its work is done. */
  readonly holdMs: number;
  settledAtMs: number | undefined;
  outcome: TermOutcome | undefined;
}

/** Room for rounding in comparisons of times. */
const epsilonMs = 1e-3;

export class Guarantees {
  /** Terms that may lead, or whose end is awaited. */
  readonly terms: Set<TermEntry> = new Set();
  readonly readiness: Readiness;
  /** Tokens of records that were committed as announced. */
  readonly announced: Set<bigint> = new Set();
  readonly #sim: LeaseSimulation;
  /** Tokens of announced terms that ended unclean and that nobody has fenced since. */
  readonly #unfenced: Set<bigint> = new Set();
  /** The process that sent each nonce: that alone says whose a record is. */
  readonly #authors = new Map<string, CandidateProcess>();
  /** When an operator has forced the holder out, by the token of its term. */
  readonly #revokedAtMs: Map<bigint, number> = new Map();
  #highestToken = 0n;
  constructor(sim: LeaseSimulation) {
    this.#sim = sim;
    this.readiness = new Readiness(sim.world);
  }

  /** Operators keep the nonce of the holder. */
  #holds(process: CandidateProcess, record: LeaseRecord | undefined): boolean {
    return record?.holding !== undefined && this.#authors.get(record.nonce) === process;
  }

  // --- before and after every event ---

  check(): void {
    const { world, processes } = this.#sim;
    let seats = 0;
    let holder: CandidateProcess | undefined;
    for (const process of processes) {
      if (!process.believes() || this.#sim.unknowable.has(process.seatToken)) continue;
      if (seats > 0) {
        world.fail(
          'seat',
          `${holder?.name} and ${process.name} both believe in their seats ` +
            `(${holder?.describeBelief()}; ${process.describeBelief()})`,
        );
      }
      seats += 1;
      holder = process;
    }
    let leader: TermEntry | undefined;
    const looks = this.#sim.scenario.looksAlways || this.terms.size > 1;
    for (const entry of this.terms) {
      if (!entry.process.alive) {
        this.terms.delete(entry);
        continue;
      }
      if (!looks) {
        if (entry.outcome !== undefined) this.terms.delete(entry);
        else this.#checkEnding(entry);
        continue;
      }
      if (!entry.term.isLeading()) {
        if (entry.led && entry.stoppedAtMs === undefined) entry.stoppedAtMs = world.nowMs;
        if (entry.outcome !== undefined) this.terms.delete(entry);
        else this.#checkEnding(entry);
        continue;
      }
      const isExcused = this.#sim.unknowable.has(entry.token);
      if (leader !== undefined && !isExcused) {
        world.fail(
          'belief',
          `term ${leader.token} of ${leader.process.name} (${left(leader)} ms left) and term ` +
            `${entry.token} of ${entry.process.name} (${left(entry)} ms left) both lead`,
        );
      }
      if (!isExcused) leader = entry;
      this.#checkLeading(entry);
    }
  }

  #checkLeading(entry: TermEntry): void {
    const { world } = this.#sim;
    const { process, term } = entry;
    const { host, timing } = process;
    entry.led = true;
    const revokedAtMs = this.#revokedAtMs.get(entry.token) ?? world.nowMs;
    const revokedMs = world.nowMs - revokedAtMs;
    if (revokedMs > timing.beliefMs / host.slowestRateSince(revokedAtMs) + epsilonMs) {
      world.fail(
        'revoked',
        `term ${entry.token} of ${process.name} leads ${revokedMs.toFixed(1)} ms after it was revoked`,
      );
    }
    if (entry.mustEnd) {
      world.fail('disowned', `term ${entry.token} of ${process.name} leads on`);
    }
    if (entry.stoppedAtMs !== undefined) {
      // Setting a wall clock forward and back again interrupts a belief without ending it.
      if (host.lastClockChangeMs < entry.stoppedAtMs) {
        world.fail('revival', `term ${entry.token} of ${process.name} leads again`);
      }
      entry.stoppedAtMs = undefined;
    }
    if (term.signal.aborted || host.isPaused || host.isAhead) return;
    // A clock that was set under way is noticed at the next renewal.
    const calmMs = world.nowMs - Math.max(host.lastDisturbedMs, entry.sinceMs);
    if (calmMs < 2 * (timing.renewEveryMs + timing.operationTimeoutMs)) return;
    const lateMs = timing.stopMarginMs - term.remaining();
    const allowedMs = 5 + 3 * host.errors.timerLagMs;
    if (lateMs > allowedMs) {
      world.fail(
        'stop',
        `term ${entry.token} of ${process.name} has ${left(entry)} ms of belief left, less than ` +
          `its stop margin of ${timing.stopMarginMs.toFixed(1)} ms, and was not told to stop`,
      );
    }
  }

  /** Once the work has settled, the seat is given back within three operation timeouts. */
  #checkEnding({ process, token, settledAtMs, holdMs }: TermEntry): void {
    if (settledAtMs === undefined) return;
    const { world, scenario } = this.#sim;
    const sinceMs = world.nowMs - Math.max(settledAtMs, process.host.lastDisturbedMs);
    const { timerLagMs } = process.host.errors;
    const timeoutMs = process.timing.operationTimeoutMs;
    const boundMs = (holdMs + 4 * timeoutMs + 10 * timerLagMs) / (1 - scenario.drift);
    if (sinceMs > boundMs) {
      world.fail(
        'settling',
        `term ${token} of ${process.name} has not ended ${sinceMs.toFixed(1)} ms after its work`,
      );
    }
  }

  /** Called when a process believes, or believes for longer. */
  checkBelief(process: CandidateProcess): void {
    // It knows that it has won, also if it never comes to work.
    process.attempt = undefined;
    if (process.revokedToken !== process.seatToken) return;
    this.#sim.world.fail(
      'revoked',
      `${process.name} believes in term ${process.seatToken}, and has read that it is revoked`,
    );
  }

  /** Called when a process takes part no more. */
  checkWithdrawn(process: CandidateProcess): void {
    const { attempt } = process;
    // Of a look without an answer nothing was learnt.
    if (attempt === undefined || attempt.answers < attempt.looks) return;
    this.#sim.world.fail(
      'late',
      `${process.name} withdraws, ${attempt.looks === 0 ? 'does not look for' : 'finds'} its ` +
        `write for term ${attempt.token}, and does not take it back`,
    );
  }

  /** Called when the work of a term begins. */
  checkBeginning({ process, term, token }: TermEntry): void {
    const { world, server } = this.#sim;
    const { host } = process;
    // In this order: the question itself may be where the host stands still.
    if (!term.isLeading() && !host.isAhead) {
      world.fail('start', `${process.name} starts work for term ${token} without leading`);
    }
    if (!this.announced.has(token)) {
      world.fail('announced', `${process.name} leads with term ${token}, no record says so`);
    }
    if (this.#sim.disowned.has(token)) return;
    // After a record was deleted by hand, others may have had this token before.
    const taken = server.commits.find(
      ({ record }) => record?.token === token && this.#holds(process, record),
    );
    // A win that was never written: other guarantees say so.
    if (taken === undefined) return;
    const before = server.commit(taken.version - 1)?.record;
    const { predecessor } = term;
    const isNamed = (record: LeaseRecord | undefined): boolean => {
      const held = record?.holding?.announced === true ? record.holding.candidate : undefined;
      const last = record?.history.at(-1);
      const isClean = held === undefined ? last?.why !== 'unclean' : this.#holds(process, record);
      return (
        predecessor?.token === (held === undefined ? last?.token : record?.token) &&
        predecessor?.id === (held ?? last)?.id &&
        (predecessor?.clean ?? true) === isClean
      );
    };
    const isRight = this.#followed(process, taken.version - 1).some(isNamed);
    if (!isRight || term.guard !== token) {
      world.fail(
        'predecessor',
        `term ${token} names term ${predecessor?.token} of ${predecessor?.id} ` +
          `(${predecessor?.clean === true ? 'clean' : 'unclean'}) before ${describe(before)}`,
      );
    }
  }

  /**
   * The records that a winner may follow. One is the record that it has replaced. The others stood
   * below wins of its own that it has never heard of, for those were no terms.
   */
  #followed(process: CandidateProcess, version: number): readonly (LeaseRecord | undefined)[] {
    const { server } = this.#sim;
    const records: (LeaseRecord | undefined)[] = [];
    for (let beneath = version; ; ) {
      const record = server.commit(beneath)?.record;
      records.push(record);
      if (!this.#holds(process, record)) return records;
      const { token, nonce } = record as LeaseRecord;
      // One that came back from a backup stands where it was written first.
      beneath = server.commits.find((each) => each.record?.nonce === nonce)?.version ?? beneath;
      while (server.commit(beneath)?.record?.token === token) beneath -= 1;
    }
  }

  /** Why a term ended is judged by what really stood in the store. */
  checkOutcome({ process, token, outcome }: TermEntry): void {
    const { server, world } = this.#sim;
    const reason = outcome?.reason;
    if (this.#sim.disowned.has(token)) return;
    const since = server.commits.findIndex(({ record }) => record?.token === token);
    const later = server.commits.slice(Math.max(0, since)).map(({ record }) => record);
    const holds: Record<string, () => boolean> = {
      superseded: () => later.some((record) => (record?.token ?? 0n) > token),
      'record-gone': () => later.includes(undefined),
      'election-ended': () => later.some((record) => record?.ended === true),
      'handed-over': () => later.some((record) => record?.holding?.request?.kind === 'transfer'),
      vacated: () =>
        later.some(
          (record) =>
            record?.holding?.request?.kind === 'vacate' ||
            record?.drains.some(({ id }) => id === process.plan.id) === true,
        ),
    };
    if (reason !== undefined && holds[reason]?.() === false) {
      world.fail('truth', `term ${token} of ${process.name} ended as ${reason}; it was not`);
    }
  }

  /** Asked by code that runs within a turn of a process and just found that it leads. */
  checkNow(process: CandidateProcess): void {
    if (!process.host.isAhead) this.#sim.world.look();
  }

  // --- the store ---

  onSend(client: Client, kind: 'read' | 'swap'): void {
    const { world, server } = this.#sim;
    const process = this.#sim.processOf(client);
    world.trace.add(client.host.presentMs, client.name, `sends ${kind}`);
    if (process === undefined) return;
    if (process.isClosed) {
      world.fail('closed', `${process.name} sends a ${kind} after close() has resolved`);
    }
    // One renewal, one poll and what each change of the record may cause, in one renewal interval.
    const windowMs = process.timing.renewEveryMs / (1 + this.#sim.scenario.drift);
    const since = world.nowMs - windowMs;
    const times = process.operationTimes;
    times.push(world.nowMs);
    while ((times[0] ?? world.nowMs) < since) times.shift();
    if (times.length > operationsPerInterval) {
      let commits = 0;
      for (let i = server.commits.length - 1; i >= 0; i -= 1) {
        if ((server.commits[i] as Commit).atMs < since) break;
        commits += 1;
      }
      const allowed = operationsPerInterval + 6 * commits;
      if (times.length > allowed) {
        world.fail(
          'operations',
          `${process.name} sent ${times.length} operations within ${windowMs.toFixed(0)} ms, in ` +
            `which the record changed ${commits} times (allowed: ${allowed})`,
        );
      }
    }
  }

  onSwapSent(client: Client, expected: unknown, next: LeaseRecord): void {
    this.onSend(client, 'swap');
    const { world, server } = this.#sim;
    const process = this.#sim.processOf(client);
    world.trace.add(client.host.presentMs, client.name, `  v${expected} →`, () => describe(next));
    if (process === undefined) return;
    const base = server.commit(Number(expected));
    const { running } = process;
    const takes = next.holding !== undefined && next.token > (base?.record?.token ?? 0n);
    this.#authors.set(next.nonce, process);
    if (takes) {
      // Even if somebody has deleted the record meanwhile.
      if (next.token < process.triedToken) {
        world.fail(
          'tokens',
          `${process.name} asks for term ${next.token}, and has asked for ${process.triedToken}`,
        );
      }
      process.triedToken = next.token;
      process.attempt = { nonce: next.nonce, token: next.token, looks: 0, answers: 0 };
    } else process.attempt = undefined;
    if (takes && running !== undefined && running.token !== next.token) {
      world.fail(
        'unsettled',
        `${process.name} asks for term ${next.token} while work of term ${running.token} runs`,
      );
    }
    if (next.holding === undefined) this.#checkSettled(process, base?.record, 'asks to vacate');
    this.#checkKept(process, base?.record, next);
    this.#checkHeard(process, next);
    process.unanswered.add(next.nonce);
  }

  /** The record of a candidate has everything in it that operators have written. */
  #checkKept(process: CandidateProcess, base: LeaseRecord | undefined, next: LeaseRecord): void {
    if (base === undefined) return;
    const wallMs = process.host.wallMs();
    const drop = dropsOf(base, next, wallMs);
    if (drop === undefined) return;
    this.#sim.world.fail(
      'kept',
      `${process.name} asks for a record without ${drop.what}, which was in the one before it`,
    );
  }

  /** A candidate that writes a request on has read it. */
  #checkHeard(process: CandidateProcess, next: LeaseRecord): void {
    const { running } = process;
    const isAsked = next.holding?.request !== undefined || next.ended;
    if (!isAsked || next.holding === undefined || running?.token !== next.token) return;
    if (running.term.signal.aborted) return;
    this.#sim.world.fail(
      'heard',
      `${process.name} writes on what is asked of term ${next.token}, and its work was not told`,
    );
  }

  /** The news of a look at the store about writes that had no answer. */
  onReadAnswer(client: Client, { record }: Reading, tookMs: number): void {
    const { coverage } = this.#sim;
    const process = this.#sim.processOf(client);
    const { attempt } = process ?? {};
    if (process !== undefined && attempt !== undefined && this.#isInTime(process, tookMs)) {
      attempt.answers += 1;
      const isRevoked = record?.nonce === attempt.nonce && record.holding?.revoked === true;
      if (isRevoked) process.revokedToken = record.token;
      if (record?.nonce !== attempt.nonce && attempt.looks > 0) process.attempt = undefined;
    }
    if (process === undefined || process.unanswered.size === 0) return;
    if (record !== undefined && process.unanswered.has(record.nonce)) {
      coverage.count('unanswered writes found to have landed');
    } else if (this.#holds(process, record)) {
      coverage.count('unanswered writes found not to have landed');
      return;
    } else {
      coverage.count('unanswered writes found overtaken');
    }
    process.unanswered.clear();
  }

  /** @returns the term that this read is to tell whose the seat is, after a refused write */
  onReadSent(client: Client): TermEntry | undefined {
    this.onSend(client, 'read');
    const process = this.#sim.processOf(client);
    if (process?.attempt !== undefined) process.attempt.looks += 1;
    if (process?.wasRefused !== true) return undefined;
    process.wasRefused = false;
    return process.running;
  }

  onReadBack(entry: TermEntry, { record }: Reading, tookMs: number): void {
    const { process, token } = entry;
    if (!this.#isInTime(process, tookMs)) return;
    const isOwn = record?.token === token && this.#holds(process, record);
    // Within the stop margin nothing is kept any more, and what comes then is not looked at.
    const isKept = entry.term.remaining() > process.timing.stopMarginMs;
    if (!isOwn && isKept) entry.mustEnd = true;
  }

  onSwapAnswer(client: Client, result: SwapResult, tookMs: number): void {
    const process = this.#sim.processOf(client);
    if (process === undefined || !this.#isInTime(process, tookMs)) return;
    if (result.outcome === 'ok') process.unanswered.clear();
    if (result.outcome === 'ok') process.attempt = undefined;
    process.wasRefused = result.outcome === 'conflict';
  }

  /** Whether a reply came before the library had given up on it. */
  #isInTime(process: CandidateProcess, tookMs: number): boolean {
    const { host, timing } = process;
    return tookMs * host.errors.monotonicRate < timing.operationTimeoutMs - 2;
  }

  onRead(client: Client, reading: Reading): void {
    if (client instanceof Request) client.meant ??= reading.record?.token ?? 0n;
    this.#sim.world.trace.add(this.#sim.world.nowMs, client.name, `  reads v${reading.version}`);
  }

  onSwapped(client: Client, expected: unknown, next: LeaseRecord, result: SwapResult): void {
    const { world, server } = this.#sim;
    const process = this.#sim.processOf(client);
    world.trace.add(world.nowMs, client.name, `  v${expected} → ${result.outcome}`);
    if (result.outcome === 'ok' || process === undefined) return;
    this.#sim.coverage.count('conflicts');
    const { record, atMs } = server.current;
    const base = server.commit(Number(expected))?.record;
    const takes = next.holding !== undefined && (base === undefined || next.token > base.token);
    const held = record?.holding !== undefined && record.token === (base?.token ?? -1n);
    if (!takes || !held) return;
    // Losing to a renewal that came at the last moment is fair. It is fair once in a lease, or a
    // few times while attempts of ours are still under way.
    const times = process.futileWrites;
    times.push(world.nowMs);
    while ((times[0] ?? 0) < world.nowMs - record.leaseMs) times.shift();
    if (times.length > 8) {
      world.fail(
        'futile',
        `${process.name} tried ${times.length} times within one lease to take a seat that is held ` +
          `(since v${server.current.version} at ${atMs.toFixed(1)} ms)`,
      );
    }
  }

  onCommit(commit: Commit, previous: Commit): void {
    const { world } = this.#sim;
    const process = this.#sim.processOf(commit.writer);
    const next = commit.record;
    const last = previous.record;
    world.trace.add(world.nowMs, commit.writer?.name ?? 'hand', `committed v${commit.version}`);
    const isLate = process?.alive === false && this.#sim.isReplaced(process);
    if (isLate)
      this.#sim.coverage.count('writes of the dead that landed after their successor began');
    if (next === undefined || commit.writer === undefined) return;
    if (last !== undefined && next.token < last.token) {
      world.fail('tokens', `the record's token fell from ${last.token} to ${next.token}`);
    }
    if (commit.writer instanceof Witness) {
      this.#checkWitness(commit.writer, commit, previous);
      return;
    }
    if (process === undefined) {
      this.#checkOperator(commit, previous);
      return;
    }
    const changesHands =
      next.holding !== undefined &&
      (last?.holding === undefined ||
        last.holding.candidate.incarnation !== next.holding.candidate.incarnation ||
        last.token !== next.token);
    if (changesHands) this.#checkTaken(process, commit, previous);
    if (next.holding === undefined) this.#checkVacated(process, commit, previous);
    if (next.holding !== undefined && !this.#sim.scenario.meddles) {
      this.readiness.check(next.token, next.holding.ready !== false, process.name);
    }
    if (next.holding?.announced === true) {
      if (changesHands || last?.holding?.announced !== true) this.#checkAnnounced(process, next);
      this.announced.add(next.token);
    }
  }

  #checkTaken(process: CandidateProcess, commit: Commit, previous: Commit): void {
    const { world, scenario, coverage } = this.#sim;
    const next = commit.record as LeaseRecord;
    const last = previous.record;
    process.seatToken = next.token;
    if (next.token <= this.#highestToken) {
      world.fail(
        'tokens',
        `${process.name} took the seat with token ${next.token}, after ${this.#highestToken}`,
      );
    }
    this.#highestToken = next.token;
    if (last === undefined) return;
    if (last.ended) world.fail('ended', `${process.name} took a seat of an ended election`);
    const fastest = 1 + scenario.drift;
    const standsMs = commit.atMs - this.#writtenAtMs(previous) + epsilonMs;
    const { reservation } = last;
    if (last.holding === undefined && reservation !== undefined) {
      if (reservation.for === next.holding?.candidate.id) coverage.count('reservations used');
      else if (
        standsMs < reservation.reserveMs / fastest &&
        process.host.wallMs() < reservation.untilUnixMs
      ) {
        world.fail('reservation', `${process.name} took a seat reserved for ${reservation.for}`);
      }
    }
    const drain = last.drains.find(({ id }) => id === next.holding?.candidate.id);
    const { host } = process;
    if (
      drain !== undefined &&
      drain.untilUnixMs > host.wallMs() &&
      host.lastDisturbedMs < world.nowMs - scenario.leaseMs
    ) {
      world.fail('drain', `${process.name} took the seat although it is drained`);
    }
    const holder = last.holding;
    if (holder === undefined) return;
    if (this.#holds(process, last)) {
      coverage.count('late writes of one’s own taken over');
      return;
    }
    coverage.count('takeovers');
    this.#checkLeaseOver(process.name, commit, previous);
  }

  /** Somebody takes or opens a seat whose holder has not given it back. */
  #checkLeaseOver(name: string, commit: Commit, previous: Commit): void {
    const { world, scenario, coverage } = this.#sim;
    const last = previous.record;
    const holder = last?.holding;
    if (last === undefined || holder === undefined) return;
    const fastest = 1 + scenario.drift;
    const standsMs = commit.atMs - this.#writtenAtMs(previous) + epsilonMs;
    if (holder.announced) this.#unfenced.add(last.token);
    const provedGone =
      scenario.store.proves &&
      holder.actors !== null &&
      holder.actors.length > 0 &&
      holder.actors.every((actor) => this.#sim.isDead(Number(actor['number'])));
    if (standsMs < last.leaseMs / fastest) {
      if (provedGone) {
        coverage.count('takeovers by proof of death');
        // Requests of a killed process may still be on their way: that is the price of not waiting.
        this.#sim.resource.excused.add(last.token);
      } else if (scenario.checksRules) {
        world.fail(
          'lease',
          `${name} took the seat of ${holder.candidate.id} ${standsMs.toFixed(3)} ms after ` +
            `its holder’s last write, whose lease is ${last.leaseMs} ms`,
        );
      }
    }
    if (standsMs < last.leaseMs / fastest + 0.02 * last.leaseMs) {
      coverage.count('takeovers at the edge of the lease');
    }
  }

  /** When the last write of a candidate came: operators keep its nonce. */
  #writtenAtMs({ version, record }: Commit): number {
    const { commits } = this.#sim.server;
    let first = version;
    while (commits[first - 1]?.record?.nonce === record?.nonce && first > 1) first -= 1;
    return (commits[first] as Commit).atMs;
  }

  #checkVacated(process: CandidateProcess, commit: Commit, previous: Commit): void {
    const { coverage } = this.#sim;
    const last = previous.record;
    if (last?.holding === undefined) return;
    if (!this.#holds(process, last)) {
      // So that a win of its own that it has not heard of cannot land any more.
      coverage.count('wins taken back before they landed');
      this.#checkLeaseOver(process.name, commit, previous);
      return;
    }
    coverage.count('releases');
    this.#checkSettled(process, last, 'vacated');
  }

  /** The record that it replaces was the last word of the dead, and says no more than that. */
  #checkWitness({ death, name }: Witness, { record }: Commit, previous: Commit): void {
    const { world, coverage, resource } = this.#sim;
    const { process, token, hasWorkEnded } = death;
    const last = previous.record;
    const isTheirs = last?.token === token && this.#holds(process, last);
    if (!isTheirs || process.alive || process.believes()) {
      world.fail(
        'witness',
        `${name} saw term ${token} of ${process.name} die, and replaces ${describe(last)}`,
      );
      return;
    }
    if (record === undefined || record.holding !== undefined || record.token !== token) {
      world.fail('witness', `${name} writes ${describe(record)} over ${describe(last)}`);
      return;
    }
    const drop = dropsOf({ ...last, holding: undefined }, record, process.host.wallMs());
    if (drop !== undefined) world.fail('kept', `${name} drops ${drop.what}`);
    coverage.count('seats given back by a witness');
    // Effects of the dead may still be on their way: that is the price of not waiting.
    resource.excused.add(token);
    if (last.holding?.announced === true && !hasWorkEnded) {
      this.#unfenced.add(token);
      coverage.count('seats given back by a witness, to be fenced');
    }
  }

  #checkSettled(process: CandidateProcess, last: LeaseRecord | undefined, what: string): void {
    const { world } = this.#sim;
    if (!this.#holds(process, last)) return;
    if (process.running?.token === last?.token) {
      world.fail('release', `${process.name} ${what} term ${last?.token} while its work runs`);
    }
    if (process.hooksRunningFor(last?.token ?? 0n) > 0) {
      world.fail('release', `${process.name} ${what} term ${last?.token} while a hook runs`);
    }
  }

  #checkAnnounced(process: CandidateProcess, next: LeaseRecord): void {
    const { world } = this.#sim;
    const { hooks, takeoverDelayMs } = process.plan;
    if (this.#unfenced.size > 0 && (hooks > 0 || takeoverDelayMs > 0)) {
      for (const token of this.#unfenced) {
        const done = process.hooksDone(next.token, token);
        if (done < hooks) {
          world.fail(
            'fencing',
            `${process.name} announced term ${next.token} after ${done} of ${hooks} hooks for ` +
              `term ${token}, which ended unclean`,
          );
        }
      }
      this.#sim.coverage.count('terms announced after fencing');
      const takenAtMs = this.#sim.server.commits.find(({ record }) => record?.token === next.token);
      const waitedMs = world.nowMs - (takenAtMs?.atMs ?? world.nowMs);
      if (waitedMs + epsilonMs < takeoverDelayMs / (1 + this.#sim.scenario.drift)) {
        world.fail(
          'fencing',
          `${process.name} announced term ${next.token} after ${waitedMs.toFixed(1)} ms; its ` +
            `takeover delay is ${takeoverDelayMs.toFixed(1)} ms`,
        );
      }
    }
    this.#unfenced.clear();
  }

  /** An operator was told that what it asked for is recorded, or was already, after that version. */
  checkGranted(command: Command, since: number): void {
    const { server, world, operator } = this.#sim;
    const wallMs = operator.host.wallMs();
    const later = server.commits.slice(since);
    if (later.some(({ record }) => isGranted(command, record, wallMs))) return;
    world.fail(
      'granted',
      `"${describeCommand(command)}" was recorded, the operator is told; it was not`,
    );
  }

  #checkOperator(commit: Commit, previous: Commit): void {
    const before = previous.record?.holding;
    const after = commit.record?.holding;
    const { writer } = commit;
    if (writer instanceof Request) this.#checkRequest(writer, commit, previous);
    if (writer === undefined || before === undefined) return;
    if (after === undefined && before.held !== undefined) {
      this.#sim.coverage.count('holds lifted');
      this.#checkLeaseOver('an operator', commit, previous);
      return;
    }
    const kept =
      after !== undefined &&
      after.candidate.incarnation === before.candidate.incarnation &&
      after.announced === before.announced &&
      JSON.stringify(after.actors) === JSON.stringify(before.actors) &&
      commit.record?.token === previous.record?.token &&
      commit.record?.nonce === previous.record?.nonce &&
      commit.record?.leaseMs === previous.record?.leaseMs;
    if (!kept && this.#sim.scenario.checksRules) {
      this.#sim.world.fail(
        'operator',
        `an operator changed holder, nonce, actors, token or lease of v${previous.version}`,
      );
    }
  }

  #checkRequest(writer: Request, { record }: Commit, previous: Commit): void {
    const { world, operator } = this.#sim;
    const { command } = writer;
    const asked = record?.holding?.request;
    // By its nonce: the writer has read a copy of what stood there.
    const isNew = asked !== undefined && asked.nonce !== previous.record?.holding?.request?.nonce;
    if (isNew && record?.token !== writer.meant) {
      world.fail(
        'meant',
        `a request (${describeCommand(command)}) for term ${writer.meant} was left for term ${record?.token}`,
      );
    }
    if (record?.holding?.revoked === true && !this.#revokedAtMs.has(record.token)) {
      this.#revokedAtMs.set(record.token, world.nowMs);
    }
    if (previous.record === undefined || record === undefined) return;
    const drop = dropsOf(previous.record, record, operator.host.wallMs());
    if (drop !== undefined && !takesBack(command, drop)) {
      world.fail('kept', `the operator’s ${describeCommand(command)} drops ${drop.what}`);
    }
  }

  /** Somebody deleted or overwrote the record by hand. */
  forgetTokens(): void {
    // The tokens begin anew, and with them whose term was revoked.
    this.#revokedAtMs.clear();
    this.#highestToken = 0n;
    this.#unfenced.clear();
  }
}

/** Operations of one process in a renewal interval while the record does not change. */
const operationsPerInterval = 30;

function left(entry: TermEntry): string {
  return entry.term.remaining().toFixed(3);
}

export function describe(record: LeaseRecord | undefined): string {
  if (record === undefined) return 'no record';
  const { holding, reservation } = record;
  const parts = [`term ${record.token}`];
  if (holding === undefined) parts.push('vacant');
  else {
    parts.push(`${holding.candidate.id}/${holding.candidate.incarnation.slice(0, 4)}`);
    if (!holding.announced) parts.push('not announced');
    if (holding.revoked) parts.push('revoked');
    if (holding.request !== undefined) parts.push(`asked to ${holding.request.kind}`);
  }
  if (reservation !== undefined) parts.push(`reserved for ${reservation.for}`);
  if (record.ended) parts.push('ended');
  if (record.unfenced.length > 0) parts.push(`${record.unfenced.length} unfenced`);
  if (record.drains.length > 0) parts.push(`drained: ${record.drains.map(({ id }) => id).join()}`);
  return parts.join(', ');
}
