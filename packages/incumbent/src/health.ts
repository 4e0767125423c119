import type { Scope } from './contest.ts';
import type { DiagnosticSource } from './diagnostics.ts';
import { publish } from './diagnostics.ts';
import type { Duration } from './duration.ts';
import { parseDuration } from './duration.ts';
import { InvalidOptionError } from './errors.ts';
import { bounded, Deferred, onAbort, sleep } from './wait.ts';

export interface HealthOptions {
  /**
   * Healthy unless it resolves to false, throws, or takes longer than `timeout`. An unhealthy
   * candidate does not campaign, an unhealthy leader gives its term up (`unhealthy`).
   */
  readonly check: (signal: AbortSignal) => Promise<unknown> | unknown;
  /** Time between checks. Default: the renewal interval. */
  readonly every?: Duration;
  /** Default: `every`. */
  readonly timeout?: Duration;
  /** Failures in a row that make it unhealthy, default 1. One success makes it healthy again. */
  readonly failures?: number;
}

/** Runs the health check as long as somebody campaigns or leads. */
export class HealthGate {
  readonly #check: HealthOptions['check'];
  readonly #everyMs: number;
  readonly #timeoutMs: number;
  readonly #failuresAllowed: number;
  readonly #scope: Scope;
  readonly #source: DiagnosticSource;
  #failures = 0;
  /** Undefined until the first check has ended. */
  #healthy: boolean | undefined;
  #changed = new Deferred<void>();

  constructor(options: HealthOptions, scope: Scope, source: DiagnosticSource) {
    if (typeof options.check !== 'function') {
      throw new InvalidOptionError('health.check must be a function');
    }
    this.#check = options.check;
    this.#everyMs = parseDuration('health.every', options.every ?? scope.timing.renewEveryMs);
    this.#timeoutMs = parseDuration('health.timeout', options.timeout ?? this.#everyMs);
    this.#failuresAllowed = options.failures ?? 1;
    if (!Number.isInteger(this.#failuresAllowed) || this.#failuresAllowed < 1) {
      throw new InvalidOptionError(
        `health.failures must be a whole number from 1, not ${this.#failuresAllowed}`,
      );
    }
    if (this.#everyMs === 0 || this.#timeoutMs === 0) {
      throw new InvalidOptionError('health.every and health.timeout must be longer than 0');
    }
    this.#scope = scope;
    this.#source = source;
  }

  /** Checks until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let error: unknown;
      let good = false;
      try {
        const answer = await bounded(
          this.#scope.clock,
          'the health check',
          this.#timeoutMs,
          signal,
          async (checkSignal) => this.#check(checkSignal),
        );
        good = answer !== false;
      } catch (thrown) {
        if (signal.aborted) return;
        error = thrown;
      }
      this.#failures = good ? 0 : this.#failures + 1;
      if (good) this.#set(true, undefined);
      // Before the first success nothing speaks for being healthy, so the first failure decides.
      else if (this.#healthy === undefined || this.#failures >= this.#failuresAllowed) {
        this.#set(false, error);
      }
      try {
        await sleep(this.#scope.clock, this.#everyMs, signal);
      } catch {
        return;
      }
    }
  }

  /** Resolves once the check says so. @throws `signal.reason` when aborted */
  async until(healthy: boolean, signal: AbortSignal): Promise<void> {
    const aborted = new Deferred<void>();
    const removeListener = onAbort(signal, () => aborted.resolve());
    try {
      for (;;) {
        signal.throwIfAborted();
        if (this.#healthy === healthy) return;
        await Promise.race([this.#changed.promise, aborted.promise]);
      }
    } finally {
      removeListener();
    }
  }

  #set(healthy: boolean, error: unknown): void {
    if (this.#healthy === healthy) return;
    this.#healthy = healthy;
    publish('incumbent:health', this.#source, { healthy, error });
    this.#changed.resolve();
    this.#changed = new Deferred();
  }
}
