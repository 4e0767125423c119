/** The candidates of one fault scenario, each with a network of its own, and their judges. */

import type { TestProxy } from '@incumbent/zookeeper-testing';
import { systemClock } from '../../src/base/clock.ts';
import { takesSeatAway } from '../../src/base/reasons.ts';
import type { TimingOptions } from '../../src/base/timing.ts';
import type { Backend } from '../../src/core/contest.ts';
import type { Election } from '../../src/core/election.ts';
import { createElection } from '../../src/core/election.ts';
import type { Term, TermOutcome } from '../../src/core/term.ts';
import { BeliefWatch } from './belief-watch.ts';

/** A client of a store, as a process of its own would have it. */
export interface FaultyConnection {
  readonly backend: Backend;
  /** All of its connections go through it. */
  readonly proxy: TestProxy;
  close(): Promise<unknown>;
}

export interface FaultStand {
  connect(): Promise<FaultyConnection>;
  /** Whether a chunk of requests carries one that wins, confirms or gives back a seat. */
  isWrite(chunk: Uint8Array): boolean;
  /** False where a seat is won in steps: an attempt without an answer is not found, but repeated. */
  readonly winsInOneWrite?: boolean;
  readonly timing: TimingOptions;
}

/**
 * A long belief and long operations, within the rules. A leader that wrongly counted belief from
 * the reply instead of the send would believe for longer than the others wait.
 */
export function faultTiming(leaseMs: number): TimingOptions {
  return {
    lease: leaseMs,
    belief: 0.9 * leaseMs,
    renewEvery: 0.1 * leaseMs,
    stopMargin: 0.04 * leaseMs,
    operationTimeout: leaseMs / 3,
    retryBackoff: 0.025 * leaseMs,
    pollEvery: leaseMs / 30,
  };
}

/** Only turns a hang into a failure that names the missing event. */
const patienceMs = 60_000;
const lookEveryMs = 3;

export class Trial {
  readonly watch: BeliefWatch;
  readonly candidates: FaultyCandidate[] = [];
  readonly stand: FaultStand;
  readonly #election: string;
  readonly #cleanUps: (() => Promise<unknown>)[] = [];

  constructor(stand: FaultStand, election: string) {
    this.stand = stand;
    this.#election = election;
    this.watch = new BeliefWatch(election);
  }

  /** Another candidate, which does not campaign yet. */
  async candidate(): Promise<FaultyCandidate> {
    const id = String.fromCharCode(97 + this.candidates.length);
    const { election, connection } = await this.#open(id);
    const candidate = new FaultyCandidate(id, election, connection, this.stand, this.watch);
    this.candidates.push(candidate);
    return candidate;
  }

  /** Two that campaign. */
  async two(): Promise<void> {
    for (const candidate of [await this.candidate(), await this.candidate()]) candidate.campaign();
  }

  /** A handle of an operator, which takes no part. */
  async operator(): Promise<{ readonly election: Election; readonly proxy: TestProxy }> {
    const { election, connection } = await this.#open('operator');
    return { election, proxy: connection.proxy };
  }

  /** The candidate that leads, and the other one, as soon as one leads. */
  async leader(): Promise<{ readonly leader: FaultyCandidate; readonly other: FaultyCandidate }> {
    const leader = await this.until('somebody leads', () =>
      this.candidates.find(({ isLeading }) => isLeading),
    );
    const other = this.candidates.find((each) => each !== leader) ?? leader;
    return { leader, other };
  }

  /** The term of another candidate than `before`, once it leads. */
  nextTerm(before: Term): Promise<Term> {
    return this.until(`somebody leads after ${before.candidate} (token ${before.token})`, () => {
      const term = this.watch.look().at(-1);
      return term !== undefined && term.token > before.token ? term : undefined;
    });
  }

  /** Waits for what `ask` gives, once it is something. */
  async until<T>(what: string, ask: () => T | undefined | false | null | ''): Promise<T> {
    const deadlineMs = systemClock.monotonicMs() + patienceMs;
    for (;;) {
      const answer = ask();
      if (answer) return answer;
      if (systemClock.monotonicMs() > deadlineMs) {
        const found = this.watch.violations;
        throw new Error(`never: ${[what, ...found].join('; ')}`);
      }
      await new Promise((resolve) => setTimeout(resolve, lookEveryMs));
    }
  }

  /** `term` is confirmed so often, counted from now, unless it ends. @returns whether it goes on */
  async goesOn(candidate: FaultyCandidate, term: Term, confirmations = 2): Promise<boolean> {
    let seen = 0;
    let remainingMs = term.remaining();
    await this.until(`term ${term.token} of ${candidate.id} is confirmed or ends`, () => {
      const nowMs = term.remaining();
      if (nowMs > remainingMs) seen += 1;
      remainingMs = nowMs;
      return seen >= confirmations || term.signal.aborted || !term.isLeading();
    });
    return !term.signal.aborted && term.isLeading();
  }

  /**
   * Everything is healed: a candidate leads, and when that one goes, so does the remaining one.
   * Then all end.
   * @returns the violations
   */
  async judge(): Promise<readonly string[]> {
    for (const candidate of this.candidates) await candidate.heal();
    const left = new Set(this.candidates.filter(({ campaigns }) => campaigns));
    while (left.size > 0) {
      const leader = await this.until('whoever is left leads', () =>
        [...left].find(({ isLeading }) => isLeading),
      );
      left.delete(leader);
      await leader.withdraw();
    }
    this.watch.stop();
    return this.watch.violations;
  }

  async close(): Promise<void> {
    this.watch.stop();
    await Promise.all(this.candidates.map((candidate) => candidate.withdraw()));
    for (const cleanUp of this.#cleanUps.splice(0).reverse()) await cleanUp();
  }

  async #open(
    id: string,
  ): Promise<{ readonly election: Election; readonly connection: FaultyConnection }> {
    const connection = await this.stand.connect();
    const election = createElection({
      name: this.#election,
      backend: connection.backend,
      candidate: { id },
      ...this.stand.timing,
    });
    this.#cleanUps.push(async () => {
      // A fault that was not healed must not make the end wait.
      await connection.proxy.pass().catch(() => {});
      await election.close();
      await connection.close();
      await connection.proxy.close();
    });
    return { election, connection };
  }
}

export class FaultyCandidate {
  readonly id: string;
  readonly election: Election;
  readonly proxy: TestProxy;
  readonly #watch: BeliefWatch;
  readonly #stand: FaultStand;
  readonly #withdrawal = new AbortController();
  /** When the proxy saw the last write that can still reach the store: it was sent before. */
  #lastWriteMs = Number.NEGATIVE_INFINITY;
  #isSilent = false;
  #writeTrap: ((chunk: Uint8Array) => void) | undefined;
  #announceTrap: ((term: Term) => void) | undefined;
  #finish: (() => void) | undefined;
  #campaigning: Promise<unknown> | undefined;
  #term: Term | undefined;

  constructor(
    id: string,
    election: Election,
    { proxy }: FaultyConnection,
    stand: FaultStand,
    watch: BeliefWatch,
  ) {
    this.id = id;
    this.election = election;
    this.proxy = proxy;
    this.#watch = watch;
    this.#stand = stand;
    proxy.onRequest((chunk) => this.#onRequest(chunk));
  }

  get campaigns(): boolean {
    return this.#campaigning !== undefined && !this.#withdrawal.signal.aborted;
  }

  /** The last that was announced. */
  get term(): Term | undefined {
    return this.#term;
  }

  /** It believes, and is not about to stop. */
  get isLeading(): boolean {
    return this.#term?.isLeading() === true && !this.#term.signal.aborted;
  }

  get lastWriteMs(): number {
    return this.#lastWriteMs;
  }

  /**
   * Leads whenever it can, until it withdraws. The effects of its work are judged by its belief.
   */
  campaign(): void {
    const { signal } = this.#withdrawal;
    const lead = () => this.election.lead((term) => this.#work(term), { signal });
    const again = async () => {
      while (!signal.aborted) await lead();
    };
    this.#campaigning = again().catch((error: unknown) => {
      if (!signal.aborted) this.#watch.violations.push(`${this.id} gave up: ${error}`);
    });
  }

  /** From now on: the first chunk with a write, before the proxy has judged it. */
  onNextWrite(act: (chunk: Uint8Array) => void): void {
    this.#writeTrap = act;
  }

  /** From now on: when its next term is announced, before anything else can happen. */
  onNextTerm(act: (term: Term) => void): void {
    this.#announceTrap = act;
  }

  forgetTraps(): void {
    this.#writeTrap = undefined;
    this.#announceTrap = undefined;
  }

  /** The network swallows everything from now on, and data that was held is not let go. */
  silence(): void {
    this.#isSilent = true;
    this.proxy.silence();
  }

  async heal(): Promise<void> {
    this.#isSilent = false;
    await this.proxy.pass();
  }

  /** The work of the present term returns. */
  finish(): void {
    this.#finish?.();
  }

  /** Stops being a candidate. Resolves when the seat was given back or left to run out. */
  async withdraw(): Promise<void> {
    this.#withdrawal.abort();
    await this.#campaigning;
  }

  async #work(term: Term): Promise<void> {
    this.#term = term;
    const { beliefMs } = this.election.timing;
    this.#watch.add(term, () => this.#lastWriteMs + beliefMs);
    const finished = new Promise<void>((resolve) => {
      this.#finish = resolve;
    });
    this.#announceTrap?.(term);
    this.#announceTrap = undefined;
    await Promise.race([finished, aborted(term.signal)]);
    // The worst that work can do: it goes on for as long as it may.
    const isLost = ['renewal-failed', 'stalled'].includes(reasonOf(term) ?? '');
    while (isLost && term.isLeading()) await new Promise((resolve) => setTimeout(resolve, 1));
  }

  #onRequest(chunk: Uint8Array): void {
    if (!this.#stand.isWrite(chunk)) return;
    const trap = this.#writeTrap;
    this.#writeTrap = undefined;
    trap?.(chunk);
    if (!this.#isSilent) this.#lastWriteMs = systemClock.monotonicMs();
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Why it ends, if it does. */
export function reasonOf(term: Term): TermOutcome['reason'] | undefined {
  return (term.signal.reason as { readonly reason?: TermOutcome['reason'] } | undefined)?.reason;
}

/** The machine was too busy for the fault that was meant: nothing is shown, and nothing broken. */
export function wasTooSlow(term: Term): boolean {
  const reason = reasonOf(term);
  // Without one its belief was over before a timer could say so.
  return reason === undefined || !takesSeatAway(reason);
}
