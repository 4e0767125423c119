/**
 * Watches the time of a session, by our own clock. It decides when to ping, and when the session
 * must have expired. It ends connections that are silent for too long, and attempts that take too
 * long.
 */
import type { Clock, Timer } from '../clock.ts';
import type { Pipeline } from './pipeline.ts';
import type { SessionRunner } from './session-runner.ts';
import type { SessionTiming } from './timing.ts';

/** The parts of the session that deadlines depend on. */
export interface Pulse {
  readonly machine: SessionRunner;
  readonly hasSession: boolean;
  readonly hasConnection: boolean;
  ping(): void;
  /** Ends the connection, because it is of no use. */
  giveUp(why: string): void;
  /** Ends the session, because it must have expired. */
  expire(why: string): void;
}

/** The longest delay of a timer. */
export const maxTimerMs = 0x7fff_ffff;

export class Heartbeat {
  readonly #clock: Clock;
  readonly #pipeline: Pipeline;
  readonly #pulse: Pulse;
  timing: SessionTiming;
  /** When something last arrived on this connection. */
  lastReceivedMs: number = Number.NEGATIVE_INFINITY;
  /** When the unanswered ping was sent; undefined if there is none. */
  pingSentMs: number | undefined;
  #attemptDeadlineMs: number = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;
  #timerAtMs: number = Number.POSITIVE_INFINITY;
  /**
   * Counts the attempts, because a check that was postponed must not end a later attempt. Between
   * two attempts no deadline applies.
   */
  #attempt = 0;
  #isCheckingSilence = false;
  #isCheckingExpiry = false;

  constructor(clock: Clock, pipeline: Pipeline, timing: SessionTiming, pulse: Pulse) {
    this.#clock = clock;
    this.#pipeline = pipeline;
    this.timing = timing;
    this.#pulse = pulse;
  }

  // Deadlines -------------------------------------------------------------------------------------

  /** Begins an attempt, which has to succeed by the deadline. */
  beginAttempt(deadlineMs: number): void {
    this.#attempt += 1;
    this.#attemptDeadlineMs = deadlineMs;
    this.schedule();
  }

  /** The connection is gone, and its ping with it. */
  endConnection(): void {
    this.pingSentMs = undefined;
  }

  /** Takes note that the server has answered the ping. @returns false if there was none */
  pinged(): boolean {
    const sentMs = this.pingSentMs;
    if (sentMs === undefined) return false;
    this.#pipeline.confirmedMs = Math.max(this.#pipeline.confirmedMs, sentMs);
    this.pingSentMs = undefined;
    return true;
  }

  get expiryDueMs(): number {
    if (!this.#pulse.hasSession) return Number.POSITIVE_INFINITY;
    return this.#pipeline.confirmedMs + this.timing.expiryMs;
  }

  get isOverdue(): boolean {
    return this.#clock.monotonicMs() >= this.expiryDueMs;
  }

  get #attemptDueMs(): number {
    return this.#pulse.machine.isTrying ? this.#attemptDeadlineMs : Number.POSITIVE_INFINITY;
  }

  get #silentDueMs(): number {
    if (!this.#pulse.machine.isGranted) return Number.POSITIVE_INFINITY;
    return this.lastReceivedMs + this.timing.silenceMs;
  }

  get #pingDueMs(): number {
    if (!this.#pulse.machine.isGranted || this.pingSentMs !== undefined)
      return Number.POSITIVE_INFINITY;
    return this.#pipeline.lastSentMs + this.timing.pingMs;
  }

  // Actions at a deadline -------------------------------------------------------------------------

  /**
   * Gives up a connection on which nothing has arrived for `forMs`, although a request has waited
   * for its answer as long.
   */
  giveUpIfSilent(forMs: number): void {
    const attempt = this.#attempt;
    const isSilent = () => {
      const { machine, hasConnection } = this.#pulse;
      if (!machine.isGranted || !hasConnection || attempt !== this.#attempt) return false;
      const latestMs = this.#clock.monotonicMs() - forMs;
      const askedMs = this.#pipeline.oldest?.sentAt.monotonicMs ?? Number.POSITIVE_INFINITY;
      return this.lastReceivedMs <= latestMs && askedMs <= latestMs;
    };
    if (!isSilent()) return;
    // The answer may wait in the socket of a process that stood still.
    setImmediate(() => {
      if (!isSilent()) return;
      const silentMs = Math.round(this.#clock.monotonicMs() - this.lastReceivedMs);
      this.#pulse.giveUp(`the server said nothing for ${silentMs} ms, and another one may`);
    });
  }

  expireIfOverdue(): void {
    if (this.#pulse.machine.isFinal || !this.isOverdue) return;
    this.#pulse.expire(
      `no server has confirmed the session for ${Math.round(this.timing.expiryMs)} ms`,
    );
  }

  /**
   * Expires the session if it is overdue, and even an answer to the last message that was sent
   * would not change that.
   */
  expireIfHopeless(): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#pulse.machine.isGranted && nowMs < this.#pipeline.lastSentMs + this.timing.expiryMs)
      return;
    this.expireIfOverdue();
  }

  /** Sets the timer for the next deadline. */
  schedule(): void {
    if (this.#pulse.machine.isFinal) return;
    const dueMs = Math.min(
      this.#pipeline.expireOverdue(this.#clock.monotonicMs()),
      this.#attemptDueMs,
      this.expiryDueMs,
      this.#silentDueMs,
      this.#pingDueMs,
    );
    if (dueMs === Number.POSITIVE_INFINITY) this.stop();
    else this.#setTimer(dueMs);
  }

  /** Makes sure that the timer fires by `dueMs`. */
  scheduleBy(dueMs: number): void {
    if (dueMs < this.#timerAtMs) this.#setTimer(dueMs);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAtMs = Number.POSITIVE_INFINITY;
  }

  #setTimer(atMs: number): void {
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    const delayMs = Math.max(1, atMs - this.#clock.monotonicMs());
    this.#timer = this.#clock.setTimer(
      () => {
        this.#timer = undefined;
        this.#timerAtMs = Number.POSITIVE_INFINITY;
        this.#onTimer();
      },
      Math.min(delayMs, maxTimerMs),
    );
  }

  #onTimer(): void {
    const nowMs = this.#clock.monotonicMs();
    this.expireIfHopeless();
    if (this.isOverdue) this.#expireAfterPendingInput();
    this.#pipeline.expireOverdue(nowMs);
    if (nowMs >= this.#attemptDueMs || nowMs >= this.#silentDueMs) {
      this.#giveUpAfterPendingInput();
    } else if (nowMs >= this.#pingDueMs) {
      this.#pulse.ping();
    }
    this.schedule();
  }

  /**
   * A process that was suspended finds its timers due before it has read the data in its socket. So
   * it reads those first.
   */
  #giveUpAfterPendingInput(): void {
    if (this.#isCheckingSilence || !this.#pulse.hasConnection) return;
    this.#isCheckingSilence = true;
    const attempt = this.#attempt;
    setImmediate(() => {
      this.#isCheckingSilence = false;
      const nowMs = this.#clock.monotonicMs();
      if (attempt !== this.#attempt) return;
      if (nowMs < this.#attemptDueMs && nowMs < this.#silentDueMs) return;
      const time = this.#pulse.machine.isGranted
        ? `${Math.round(nowMs - this.lastReceivedMs)} ms`
        : 'the time of one attempt';
      this.#pulse.giveUp(`the server said nothing for ${time}`);
    });
  }

  /**
   * The answer to a ping may be among the unread data, and it confirms the session for a later
   * time.
   */
  #expireAfterPendingInput(): void {
    if (this.#isCheckingExpiry) return;
    this.#isCheckingExpiry = true;
    setImmediate(() => {
      this.#isCheckingExpiry = false;
      this.expireIfOverdue();
    });
  }
}
