import { describeValue } from '../base/candidate.ts';
import { checkNames } from '../base/check-names.ts';
import type { Duration } from '../base/duration.ts';
import { parseDuration } from '../base/duration.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { bounded, sleep } from '../base/wait.ts';
import type { Scope } from './contest.ts';
import type { DiagnosticSource } from './diagnostics.ts';
import { publish } from './diagnostics.ts';

/** A check of this process's health, which decides whether it may lead. */
export interface HealthOptions {
  /**
   * Healthy unless it resolves to false, throws, or takes longer than `timeout`. An unhealthy
   * candidate does not campaign. An unhealthy leader gives its term up (`unhealthy`).
   */
  readonly check: (signal: AbortSignal) => Promise<unknown> | unknown;
  /** Time between checks. Default: `renewEvery`. */
  readonly every?: Duration;
  /** How long one check may take. Default: `every`. */
  readonly timeout?: Duration;
  /** Failures in a row that make it unhealthy. Default 1. One success makes it healthy again. */
  readonly failures?: number;
}

const names: Readonly<Record<keyof HealthOptions, true>> = {
  check: true,
  every: true,
  timeout: true,
  failures: true,
};

/** Runs the health check while a campaign or a term runs. */
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
  #error: unknown = new Error('it has not ended yet');
  readonly #waiters = new Set<() => void>();
  /** A check goes on after its time was up. */
  #running = false;

  constructor(options: HealthOptions, scope: Scope, source: DiagnosticSource) {
    checkNames('health', options, names, '{ check: () => fetch("http://localhost/healthz") }');
    if (typeof options.check !== 'function') {
      throw new InvalidOptionError(
        `health.check must be a function, not ${describeValue(options.check)}`,
      );
    }
    this.#check = options.check;
    this.#everyMs = parseDuration('health.every', options.every ?? scope.timing.renewEveryMs);
    this.#timeoutMs = parseDuration('health.timeout', options.timeout ?? this.#everyMs);
    this.#failuresAllowed = options.failures ?? 1;
    if (!Number.isInteger(this.#failuresAllowed) || this.#failuresAllowed < 1) {
      throw new InvalidOptionError(
        `health.failures must be a whole number from 1, not ${describeValue(options.failures)}`,
      );
    }
    if (this.#everyMs < 10 || this.#timeoutMs < 10) {
      throw new InvalidOptionError('health.every and health.timeout must be 10 ms or longer');
    }
    this.#scope = scope;
    this.#source = source;
  }

  /** The error of the last check. Undefined when it only said no. */
  get error(): unknown {
    return this.#error;
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
          (checkSignal) => this.#runCheck(checkSignal),
        );
        good = answer !== false;
      } catch (thrown) {
        if (signal.aborted) return;
        error = thrown;
      }
      // The campaign may have ended just when the check did.
      if (signal.aborted) return;
      this.#error = error;
      this.#failures = good ? 0 : this.#failures + 1;
      if (good) this.#set(true, undefined);
      // Before the first success nothing shows that it is healthy, so the first failure decides.
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

  /** Never runs two checks at once: checks that hang would pile up. */
  async #runCheck(signal: AbortSignal): Promise<unknown> {
    if (this.#running) throw new Error('the last health check has not ended yet');
    this.#running = true;
    try {
      return await this.#check(signal);
    } finally {
      this.#running = false;
    }
  }

  /**
   * Resolves when a check finds it so.
   * @throws `signal.reason` when aborted
   */
  until(healthy: boolean, signal: AbortSignal): Promise<void> {
    return this.#when((now) => now === healthy, signal);
  }

  /**
   * Resolves when the first check has ended, or at once if it has.
   * @throws `signal.reason` when aborted
   */
  async first(signal: AbortSignal): Promise<boolean> {
    await this.#when((now) => now !== undefined, signal);
    return this.#healthy === true;
  }

  #when(holds: (healthy: boolean | undefined) => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      if (holds(this.#healthy)) return resolve();
      const remove = () => {
        this.#waiters.delete(look);
        signal.removeEventListener('abort', abort);
      };
      const look = () => {
        if (!holds(this.#healthy)) return;
        remove();
        resolve();
      };
      const abort = () => {
        remove();
        reject(signal.reason);
      };
      this.#waiters.add(look);
      signal.addEventListener('abort', abort, { once: true });
    });
  }

  #set(healthy: boolean, error: unknown): void {
    if (this.#healthy === healthy) return;
    this.#healthy = healthy;
    publish('incumbent:health', this.#source, { healthy, error });
    for (const look of [...this.#waiters]) look();
  }
}
