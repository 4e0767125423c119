/**
 * The demands on a backend, as scenarios that need no test runner: run them from any, or from a
 * script. A scenario that does not apply to a backend is reported as skipped, with the reason.
 */
import type { Clock } from '../base/clock.ts';
import { systemClock } from '../base/clock.ts';

/** The abilities that a backend claims. Scenarios that need more are skipped. */
export interface Capabilities {
  /** `watch` calls back soon after a change. */
  readonly hints?: boolean;
  /** `describe` and `provesGone`. */
  readonly deathProof?: boolean;
  /** `enlist` and `list`. */
  readonly lists?: boolean;
  /** `read` tells the age of the record by the store's own clock. */
  readonly age?: boolean;
}

/**
 * A rule that a subject has to keep.
 * @typeParam Subject the examined thing: a `LeaseStore`, or a `Backend`
 */
export interface Scenario<Subject> {
  /** The rule, as a sentence. */
  readonly name: string;
  /** The ability that a subject needs for this rule. */
  readonly needs?: keyof Capabilities;
  /** Resolves when the rule holds, rejects when it does not. */
  run(context: ConformanceContext<Subject>): Promise<void>;
}

/** The tools of a running scenario. */
export interface ConformanceContext<Subject> {
  /** The name of an election that was never used before. */
  readonly election: string;
  readonly capabilities: Capabilities;
  readonly clock: Clock;
  /** D for the elections of the scenario, in ms. */
  readonly leaseMs: number;
  /** Another handle on the same store, as another process would have it. */
  open(election?: string): Promise<Subject>;
  /** Lets time pass. By the machine's clocks no longer than until `settled` has settled. */
  wait(ms: number, settled?: Promise<unknown>): Promise<void>;
  /** From now on the store hears nothing of this handle, as if its process had died. */
  silence(subject: Subject): Promise<void>;
  /** Called when the scenario is over, the last one first. */
  onCleanUp(action: () => unknown): void;
}

/** The options of `runConformance`. */
export interface ConformanceOptions<Subject> {
  /** Another handle on the store under examination. Called often. */
  readonly open: (election: string) => Subject | Promise<Subject>;
  readonly capabilities?: Capabilities;
  /** The clock that counts time. Default: the machine's clocks. */
  readonly clock?: Clock;
  /** Lets time pass. Default: waits. With a simulated clock: `(ms) => clock.advance(ms)`. */
  readonly wait?: (ms: number) => Promise<void>;
  /**
   * Makes the store hear nothing of a handle any more. For stores that hear of a process in
   * other ways than by its operations, such as a session. The handle is not used after it.
   * Default: does nothing.
   */
  readonly silence?: (subject: Subject) => void | Promise<void>;
  /** D for the elections, in ms. Default 1000, the shortest there is. */
  readonly leaseMs?: number;
  /** How long one scenario may take, in real time. Default 60 000 ms. */
  readonly timeoutMs?: number;
  /** Called with every result as it comes. */
  readonly onResult?: (result: ScenarioResult) => void;
  /** Prefix for the names of elections. Default `conformance`. */
  readonly prefix?: string;
}

/** The result of one scenario. */
export interface ScenarioResult {
  readonly name: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** Why it was skipped or has failed. */
  readonly reason?: string;
  readonly error?: unknown;
  /** How long it took in real time, in ms. */
  readonly elapsedMs: number;
}

let runs = 0;

/** Runs the scenarios one after the other. Never rejects: a failure is a result. */
export async function runConformance<Subject>(
  scenarios: readonly Scenario<Subject>[],
  options: ConformanceOptions<Subject>,
): Promise<readonly ScenarioResult[]> {
  const results: ScenarioResult[] = [];
  for (const scenario of scenarios) {
    const result = await runScenario(scenario, options);
    results.push(result);
    options.onResult?.(result);
  }
  return results;
}

async function runScenario<Subject>(
  scenario: Scenario<Subject>,
  options: ConformanceOptions<Subject>,
): Promise<ScenarioResult> {
  const { name, needs } = scenario;
  const capabilities = options.capabilities ?? {};
  if (needs !== undefined && capabilities[needs] !== true) {
    return {
      name,
      outcome: 'skipped',
      reason: `the backend does not offer "${needs}"`,
      elapsedMs: 0,
    };
  }
  const startMs = systemClock.monotonicMs();
  const finish = (rest: Pick<ScenarioResult, 'outcome' | 'reason' | 'error'>): ScenarioResult => ({
    name,
    elapsedMs: systemClock.monotonicMs() - startMs,
    ...rest,
  });
  const cleaners: (() => unknown)[] = [];
  runs += 1;
  const election = `${options.prefix ?? 'conformance'}-${process.pid}-${runs}`;
  const context: ConformanceContext<Subject> = {
    election,
    capabilities,
    clock: options.clock ?? systemClock,
    leaseMs: options.leaseMs ?? 1_000,
    open: async (other = election) => options.open(other),
    wait: options.wait ?? sleep,
    silence: async (subject) => options.silence?.(subject),
    onCleanUp: (action) => void cleaners.unshift(action),
  };
  try {
    await withinTime(scenario.run(context), options.timeoutMs ?? 60_000);
    return finish({ outcome: 'passed' });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return finish({ outcome: 'failed', reason, error });
  } finally {
    for (const clean of cleaners) {
      // Leftovers of a failure are not another failure.
      await withinTime(Promise.resolve().then(clean), 10_000).catch(() => {});
    }
  }
}

function sleep(ms: number, settled?: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const wake = () => {
      clearTimeout(timer);
      resolve();
    };
    settled?.then(wake, wake);
  });
}

function withinTime<T>(promise: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`not done after ${ms} ms`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
