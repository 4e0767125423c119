import type { Clock, Timer } from 'incumbent';
import { Heap } from './heap.ts';
import type { Random } from './random.ts';
import type { World } from './world.ts';

/** Whose code runs: nothing runs for a process that was killed. */
export interface Owner {
  readonly alive: boolean;
  readonly name: string;
}

interface HostTimer {
  readonly owner: Owner;
  readonly callback: () => void;
  cancelled: boolean;
}

export interface ClockErrors {
  /** Local milliseconds per real millisecond. */
  readonly monotonicRate: number;
  readonly wallRate: number;
  readonly monotonicStartMs: number;
  readonly wallStartMs: number;
  /** Timers as in Node: whole milliseconds, up to one early by the monotonic clock. */
  readonly coarseTimers: boolean;
  /** Timers fire up to this much late. */
  readonly timerLagMs: number;
}

/** For a host whose clocks are not what a seed is about. */
export const perfectClock: ClockErrors = {
  monotonicRate: 1,
  wallRate: 1,
  monotonicStartMs: 5e5,
  wallStartMs: 1.7e12,
  coarseTimers: false,
  timerLagMs: 0,
};

/** Which of what has waited runs first when a host goes on after a stall. */
const orders = ['timers first', 'replies first', 'shuffled'] as const;

/** Later than due by this much, so that rounding never makes a clock read less than was waited for. */
const roundingMs = 1e-5;

/**
 * A machine with its two clocks and an event loop. It may stall (nothing runs, both clocks go on),
 * be suspended (nothing runs, the monotonic clock stands still), and have its wall clock set.
 */
export class Host {
  readonly name: string;
  readonly index: number;
  readonly errors: ClockErrors;
  /** When its clocks were last made to disagree: by a suspension, or by setting one. */
  lastClockChangeMs: number = Number.NEGATIVE_INFINITY;
  setBackAtMs: number = Number.NEGATIVE_INFINITY;
  suspendedUntilMs: number = Number.NEGATIVE_INFINITY;
  /** When this host last stalled, was suspended, or had its wall clock set. */
  lastDisturbedMs: number = Number.NEGATIVE_INFINITY;
  readonly #world: World;
  readonly #random: Random;
  readonly #timers = new Heap<HostTimer>();
  /** Deliveries that came while nothing ran. */
  #inbox: { readonly owner: Owner; readonly run: () => void }[] = [];
  #baseMs = 0;
  #monotonicMs: number;
  #wallMs: number;
  #suspended = false;
  #pausedUntilMs = 0;
  /** Code on this host stood still in the middle of a turn: it is this far already. */
  #presentMs = 0;
  #readsUntilHiccup = Number.POSITIVE_INFINITY;
  #hiccupMs = 0;
  #nextTimerAtMs: number | undefined = Number.POSITIVE_INFINITY;

  constructor(world: World, name: string, errors: ClockErrors, random: Random) {
    this.#world = world;
    this.name = name;
    this.index = world.hosts.length;
    this.errors = errors;
    this.#random = random;
    this.#monotonicMs = errors.monotonicStartMs;
    this.#wallMs = errors.wallStartMs;
    world.hosts.push(this);
  }

  /** The real time that the code on this host lives in. */
  get presentMs(): number {
    const { nowMs, looking } = this.#world;
    return looking || this.#presentMs < nowMs ? nowMs : this.#presentMs;
  }

  /** True while code of the present turn has run ahead of the world. */
  get isAhead(): boolean {
    return this.#presentMs > this.#world.nowMs;
  }

  get isPaused(): boolean {
    return this.#world.nowMs < this.#pausedUntilMs;
  }

  get pausedUntilMs(): number {
    return this.#pausedUntilMs;
  }

  get isSuspended(): boolean {
    return this.#suspended;
  }

  /** Local milliseconds per real one since then, at the least: of a suspended host the wall clock counts. */
  slowestRateSince(realMs: number): number {
    const { monotonicRate, wallRate } = this.errors;
    const wasSuspended = this.#suspended || this.suspendedUntilMs >= realMs;
    return wasSuspended ? Math.min(monotonicRate, wallRate) : monotonicRate;
  }

  monotonicMs(): number {
    return this.#monotonicAt(this.presentMs);
  }

  wallMs(): number {
    return this.#wallAt(this.presentMs);
  }

  /** The clock of one process on this host. */
  clockOf(owner: Owner): Clock {
    return {
      monotonicMs: () => {
        this.#maybeHiccup();
        return this.monotonicMs();
      },
      // Whole milliseconds, as Date.now() has them.
      wallMs: () => {
        this.#maybeHiccup();
        return Math.floor(this.wallMs());
      },
      setTimer: (callback, delayMs) => this.setTimer(owner, callback, delayMs),
    };
  }

  setTimer(owner: Owner, callback: () => void, delayMs: number): Timer {
    if (!(delayMs >= 0 && delayMs < 2 ** 31)) {
      this.#world.fail('timers', `a timer was set for ${delayMs} ms`);
    }
    const { coarseTimers, timerLagMs } = this.errors;
    let waitMs = delayMs;
    if (coarseTimers) waitMs = Math.max(0, Math.ceil(delayMs) - this.#random.next());
    if (timerLagMs > 0) waitMs += this.#random.next() * timerLagMs;
    const timer: HostTimer = { owner, callback, cancelled: false };
    this.#timers.push(this.#monotonicAt(this.presentMs) + waitMs, timer);
    this.#nextTimerAtMs = undefined;
    return {
      cancel: () => {
        timer.cancelled = true;
        if (this.#timers.first === timer) this.#nextTimerAtMs = undefined;
      },
    };
  }

  nextTimerAtMs(): number {
    this.#nextTimerAtMs ??= this.#findNextTimer();
    return this.#nextTimerAtMs;
  }

  runNextTimer(): boolean {
    this.#nextTimerAtMs = undefined;
    const timer = this.#timers.pop();
    return timer !== undefined && this.#fire(timer);
  }

  /** Something arrives for a process on this host. @returns true when its code ran now */
  deliver(owner: Owner, run: () => void): boolean {
    if (!owner.alive) return false;
    if (this.isPaused) {
      this.#inbox.push({ owner, run });
      return false;
    }
    run();
    return true;
  }

  /** Nothing runs for `ms`; both clocks go on. */
  stall(ms: number): void {
    this.#pauseUntil(this.#world.nowMs + ms);
  }

  /** The host sleeps for `ms`; its monotonic clock with it. */
  suspend(ms: number): void {
    if (this.#suspended) return;
    this.#rebase();
    this.#suspended = true;
    this.#world.at(this.#world.nowMs + ms, () => {
      this.#wake();
      return false;
    });
    this.#pauseUntil(this.#world.nowMs + ms);
  }

  /** Goes on at once, whatever holds it. */
  resume(): void {
    this.#wake();
    this.#pausedUntilMs = Math.min(
      this.#pausedUntilMs,
      Math.max(this.#world.nowMs, this.#presentMs),
    );
    this.#nextTimerAtMs = undefined;
    this.#world.at(this.#pausedUntilMs, () => this.#goOn());
  }

  stepWall(ms: number): void {
    this.#rebase();
    this.#wallMs += ms;
    if (ms < 0) this.setBackAtMs = this.#world.nowMs;
    this.lastDisturbedMs = Math.max(this.lastDisturbedMs, this.#world.nowMs);
  }

  /** Code that runs on this host now stands still for `ms`, as in a long garbage collection. */
  stallInTurn(ms: number): void {
    this.#presentMs = Math.max(this.#presentMs, this.#world.nowMs) + ms;
    this.#pauseUntil(this.#presentMs);
  }

  /** In the middle of the code that reads a clock for the n-th time from now, `ms` pass. */
  armHiccup(reads: number, ms: number): void {
    this.#readsUntilHiccup = reads;
    this.#hiccupMs = ms;
  }

  #maybeHiccup(): void {
    if (this.#world.looking || !Number.isFinite(this.#readsUntilHiccup)) return;
    this.#readsUntilHiccup -= 1;
    if (this.#readsUntilHiccup > 0) return;
    this.#readsUntilHiccup = Number.POSITIVE_INFINITY;
    this.#world.trace.add(
      this.#world.nowMs,
      this.name,
      'stands still in the middle of a turn',
      () => `for ${this.#hiccupMs.toFixed(1)} ms`,
    );
    this.stallInTurn(this.#hiccupMs);
  }

  #pauseUntil(untilMs: number): void {
    this.lastDisturbedMs = Math.max(untilMs, this.lastDisturbedMs);
    if (untilMs <= this.#pausedUntilMs) return;
    this.#pausedUntilMs = untilMs;
    this.#nextTimerAtMs = undefined;
    this.#world.at(untilMs, () => this.#goOn());
  }

  #wake(): void {
    if (!this.#suspended) return;
    this.#rebase();
    this.#suspended = false;
    this.suspendedUntilMs = this.#world.nowMs;
    this.#nextTimerAtMs = undefined;
    // It may have stalled besides, for longer.
    this.lastDisturbedMs = Math.max(this.#world.nowMs, this.#pausedUntilMs);
  }

  /** Everything that has waited runs, one after the other, in one of several orders. */
  #goOn(): boolean {
    if (this.isPaused) return false;
    this.#nextTimerAtMs = undefined;
    this.lastDisturbedMs = Math.max(this.lastDisturbedMs, this.#world.nowMs);
    const dueMs = this.monotonicMs();
    const timers: (() => boolean)[] = [];
    while (this.#timers.firstKey <= dueMs) {
      const timer = this.#timers.pop();
      if (timer !== undefined && !timer.cancelled) timers.push(() => this.#fire(timer));
    }
    const replies = this.#inbox.map(
      ({ owner, run }) =>
        () =>
          this.deliver(owner, run),
    );
    this.#inbox = [];
    const order = this.#random.pick(orders);
    const waiting = order === 'replies first' ? [...replies, ...timers] : [...timers, ...replies];
    if (order === 'shuffled') this.#random.shuffle(waiting);
    if (waiting.length > 0) {
      this.#world.trace.add(
        this.#world.nowMs,
        this.name,
        `goes on, ${order}`,
        () => `${timers.length} timers, ${replies.length} replies`,
      );
    }
    for (const [index, run] of waiting.entries()) {
      this.#world.at(this.#world.nowMs + index * 1e-3, run);
    }
    return false;
  }

  #fire(timer: HostTimer): boolean {
    if (timer.cancelled || !timer.owner.alive) return false;
    if (this.isPaused) {
      // Stalled again before its turn came.
      this.#inbox.push({ owner: timer.owner, run: () => void this.#fire(timer) });
      return false;
    }
    timer.cancelled = true;
    try {
      timer.callback();
    } catch (error) {
      this.#world.fail('timers', `${timer.owner.name}: a timer threw ${String(error)}`);
    }
    return true;
  }

  #findNextTimer(): number {
    while (this.#timers.first !== undefined) {
      if (!this.#timers.first.cancelled && this.#timers.first.owner.alive) break;
      this.#timers.pop();
    }
    if (this.isPaused || this.#suspended || this.#timers.size === 0) {
      return Number.POSITIVE_INFINITY;
    }
    const waitMs = this.#timers.firstKey - this.#monotonicMs;
    return this.#baseMs + waitMs / this.errors.monotonicRate + roundingMs;
  }

  #monotonicAt(realMs: number): number {
    if (this.#suspended) return this.#monotonicMs;
    return this.#monotonicMs + (realMs - this.#baseMs) * this.errors.monotonicRate;
  }

  #wallAt(realMs: number): number {
    return this.#wallMs + (realMs - this.#baseMs) * this.errors.wallRate;
  }

  /** From now on the clocks are counted from here: something about them changes. */
  #rebase(): void {
    const { nowMs } = this.#world;
    this.lastClockChangeMs = nowMs;
    const monotonicMs = this.#monotonicAt(nowMs);
    const wallMs = this.#wallAt(nowMs);
    this.#monotonicMs = monotonicMs;
    this.#wallMs = wallMs;
    this.#baseMs = nowMs;
    this.#nextTimerAtMs = undefined;
  }
}
