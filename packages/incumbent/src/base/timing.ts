import { describeValue } from './candidate.ts';
import type { Duration } from './duration.ts';
import { formatDuration, parseDuration } from './duration.ts';
import { InvalidOptionError, InvalidTimingError } from './errors.ts';

/**
 * How long things take. To set `lease` is enough: most of the defaults follow from it. The defaults
 * of H, G, R and X below are those of stores without sessions. On ZooKeeper and etcd they follow
 * from the session: H is at most 0.4 D, R and X are H / 4, G is H / 8.
 */
export interface TimingOptions {
  /**
   * D: how long the record protects a leader that does not confirm. 1 s to 1 h, default 15 s. On S3
   * and Cloud Storage the default is 45 s. Cloud Storage takes at least 5 s, or less where
   * `maxWritesPerSecond` is raised. On ZooKeeper and etcd D is the timeout of the client's session.
   */
  readonly lease?: Duration;
  /** H: how long a leader believes after the last confirmation was *sent*. Default 0.8 D. */
  readonly belief?: Duration;
  /** G: how long before the end of belief the work is told to stop. Default 2 D / 15, at most 30 s. */
  readonly stopMargin?: Duration;
  /** R: time between confirmations. Default D / 5, at most 30 s. */
  readonly renewEvery?: Duration;
  /** X: how long one store operation may take. Default D / 6, at most 10 s. */
  readonly operationTimeout?: Duration;
  /** Pause after a failed confirmation (b). Default R / 4. */
  readonly retryBackoff?: Duration;
  /**
   * How often a follower reads the store when no change is announced. Default R, at most 5 s. On S3
   * and Cloud Storage half a lease, at most 30 s.
   */
  readonly pollEvery?: Duration;
  /** How long a leader goes on renewing for work that was asked to stop. Default 30 s. */
  readonly stopTimeout?: Duration;
  /** ρ: how far a clock's *rate* may be off, as a fraction from 0 to 0.2. Default 0.05. */
  readonly clockDrift?: number;
}

/** `TimingOptions` with all defaults filled in. All in milliseconds, but for `clockDrift`. */
export interface Timing {
  readonly leaseMs: number;
  readonly beliefMs: number;
  readonly stopMarginMs: number;
  readonly renewEveryMs: number;
  readonly operationTimeoutMs: number;
  readonly retryBackoffMs: number;
  readonly pollEveryMs: number;
  readonly stopTimeoutMs: number;
  readonly clockDrift: number;
}

/** Limits that a backend sets on durations, because of its store. */
export interface TimingLimits {
  /** D where the user names none. Default 15 s. */
  readonly defaultLeaseMs?: number;
  /** The shortest D that the store allows. Default 1 s. */
  readonly minLeaseMs?: number;
  /** The shortest R that the store bears. Object stores take few writes of one object. */
  readonly minRenewEveryMs?: number;
  /**
   * How often followers look within one lease, unless `pollEvery` is given, but at least every
   * 30 s. For stores where reading costs money.
   */
  readonly pollsPerLease?: number;
  /**
   * D, where the store gives it: the timeout of the session on which all elections of a client
   * live. A crash then costs D and H. So H is well below D: 0.4 D, with R and X 0.25 H and G
   * 0.125 H.
   */
  readonly sessionTimeoutMs?: number;
  /** The longest H that is safe on this store, and why. */
  readonly maxBelief?: { readonly ms: number; readonly because: string };
}

const defaultLeaseMs = 15_000;
const smallestLeaseMs = 1_000;
/** The longest lease that a handle may have. */
export const longestLeaseMs: number = 3_600_000;
/** Every loop pauses at least this long between two rounds. */
const shortestPauseMs = 10;
/**
 * A seat that was given back is not seen before the next look, so the default is never longer.
 */
const longestPollMs = 30_000;
/** Room for rounding in fractions of D, far below any clock's resolution. */
const roundingMs = 1e-6;

/**
 * Fills in what was not given and checks every inequality of docs/design/time.md.
 * @throws InvalidOptionError for a value that is no duration, InvalidTimingError with every broken
 * rule and its numbers for values that do not fit together
 */
export function resolveTiming(options: TimingOptions = {}, limits: TimingLimits = {}): Timing {
  const timing = deriveTiming(options, limits);
  const minLeaseMs = limits.minLeaseMs ?? smallestLeaseMs;
  requireUnits(options, minLeaseMs);
  const violations = timingViolations(timing, minLeaseMs);
  const { minRenewEveryMs = 0 } = limits;
  if (timing.renewEveryMs < minRenewEveryMs) {
    violations.push(
      `renewEvery: ${formatDuration(timing.renewEveryMs)} is shorter than ` +
        `${formatDuration(minRenewEveryMs)}: this store takes no more writes of one record`,
    );
  }
  const { maxBelief } = limits;
  if (maxBelief !== undefined && timing.beliefMs > maxBelief.ms) {
    violations.push(
      `belief: ${formatDuration(timing.beliefMs)} is longer than ${formatDuration(maxBelief.ms)}: ` +
        maxBelief.because,
    );
  }
  if (violations.length > 0) throw new InvalidTimingError(violations);
  return shared(timing);
}

/**
 * A number that is far too small was meant in seconds. It is reported alone, because all that
 * follows from it is wrong as well.
 */
function requireUnits(options: TimingOptions, minLeaseMs: number): void {
  const meant = (['lease', 'renewEvery', 'operationTimeout', 'pollEvery'] as const).flatMap(
    (name) => {
      const value = options[name];
      const leastMs = name === 'lease' ? minLeaseMs : shortestPauseMs;
      if (typeof value !== 'number' || value <= 0 || value >= leastMs) return [];
      const inSeconds = value * 1_000 >= leastMs ? `: write "${value}s"` : '';
      const shortest = `the shortest ${name} is ${formatDuration(leastMs)}`;
      return [`${name}: ${value} is milliseconds, and ${shortest}${inSeconds}`];
    },
  );
  if (meant.length > 0) throw new InvalidTimingError(meant);
}

let last: Timing | undefined;

/**
 * One object for all elections of a process with the same timing. There may be thousands of them.
 */
function shared(timing: Timing): Timing {
  const fields = Object.keys(timing) as (keyof Timing)[];
  if (last === undefined || fields.some((field) => last?.[field] !== timing[field])) {
    last = Object.freeze(timing);
  }
  return last;
}

/**
 * `resolveTiming` without the check of the inequalities. For showing the numbers of timings that
 * break a rule. Nothing may run on the result.
 * @throws InvalidOptionError for a value that is no duration
 */
export function deriveTiming(options: TimingOptions = {}, limits: TimingLimits = {}): Timing {
  const given = (name: keyof TimingOptions, fallback: number): number =>
    options[name] === undefined ? fallback : parseDuration(name, options[name]);
  const { sessionTimeoutMs, maxBelief } = limits;
  const leaseMs = given('lease', sessionTimeoutMs ?? limits.defaultLeaseMs ?? defaultLeaseMs);
  if (sessionTimeoutMs !== undefined && leaseMs !== sessionTimeoutMs) {
    throw new InvalidOptionError(
      `lease: on this store it is the timeout of the client's session, which is ` +
        `${formatDuration(sessionTimeoutMs)} and not ${formatDuration(leaseMs)}: leave it out, or ` +
        'ask for another session timeout when connecting (servers allow 2 to 20 ticks)',
    );
  }
  const hasSession = sessionTimeoutMs !== undefined;
  const longestMs = Math.max(0, maxBelief?.ms ?? Number.POSITIVE_INFINITY);
  const beliefMs = given('belief', hasSession ? Math.min(0.4 * leaseMs, longestMs) : 0.8 * leaseMs);
  const renewEveryMs = given(
    'renewEvery',
    Math.min(hasSession ? beliefMs / 4 : leaseMs / 5, 30_000),
  );
  const timing: Timing = {
    leaseMs,
    beliefMs,
    stopMarginMs: given(
      'stopMargin',
      Math.min(hasSession ? beliefMs / 8 : (2 * leaseMs) / 15, 30_000),
    ),
    renewEveryMs,
    operationTimeoutMs: given(
      'operationTimeout',
      Math.min(hasSession ? beliefMs / 4 : leaseMs / 6, 10_000),
    ),
    retryBackoffMs: given('retryBackoff', renewEveryMs / 4),
    pollEveryMs: given(
      'pollEvery',
      limits.pollsPerLease === undefined
        ? Math.min(renewEveryMs, 5_000)
        : Math.min(leaseMs / limits.pollsPerLease, longestPollMs),
    ),
    stopTimeoutMs: given('stopTimeout', 30_000),
    clockDrift: options.clockDrift ?? 0.05,
  };
  const { clockDrift } = timing;
  if (!(typeof clockDrift === 'number' && clockDrift >= 0 && clockDrift <= 0.2)) {
    throw new InvalidOptionError(
      `clockDrift must be a fraction from 0 to 0.2, not ${describeValue(clockDrift)}`,
    );
  }
  return timing;
}

/** One sentence, with numbers and a way out, for each rule that `timing` breaks. */
export function timingViolations(timing: Timing, minLeaseMs: number = smallestLeaseMs): string[] {
  const d = timing.leaseMs;
  const h = timing.beliefMs;
  const g = timing.stopMarginMs;
  const r = timing.renewEveryMs;
  const x = timing.operationTimeoutMs;
  const b = timing.retryBackoffMs;
  const rho = timing.clockDrift;
  const show = formatDuration;
  const violations: string[] = [];
  const require = (holds: boolean, sentence: string) => {
    if (!holds) violations.push(sentence);
  };
  require(d >= minLeaseMs &&
    d <=
      longestLeaseMs, `lease: ${show(d)} is outside ${show(minLeaseMs)} to ${show(longestLeaseMs)}`);
  require(h > 0, 'belief: it must be longer than 0');
  for (const [name, value] of [
    ['renewEvery', r],
    ['operationTimeout', x],
    ['retryBackoff', b],
    ['pollEvery', timing.pollEveryMs],
  ] as const) {
    require(value >=
      shortestPauseMs, `${name}: ${show(value)} is shorter than ${show(shortestPauseMs)}: it would keep the store and this process busy`);
  }
  // The other rules follow from the lease, so they would only repeat its fault.
  if (violations.some((sentence) => sentence.startsWith('lease:'))) return violations;
  const neededLease = (h * (1 + rho)) / (1 - rho);
  require(neededLease <=
    d +
      roundingMs, `P1 belief·(1+ρ)/(1−ρ) ≤ lease: ${show(h)} of belief at a clock drift of ${rho} needs a lease ` +
    `of ${show(neededLease)}, it is ${show(d)}: lengthen the lease or shorten the belief to ` +
    `${show((d * (1 - rho)) / (1 + rho))}`);
  require(g > 0 &&
    g < h - r, `P2 0 < stopMargin < belief − renewEvery: ${show(g)} is not between 0 and ` +
    `${show(h)} − ${show(r)} = ${show(h - r)}`);
  require(r + 2 * x + b <=
    h -
      g +
      roundingMs, `P3 renewEvery + 2·operationTimeout + retryBackoff ≤ belief − stopMargin: ${show(r)} + 2·` +
    `${show(x)} + ${show(b)} = ${show(r + 2 * x + b)} is more than ${show(h)} − ${show(g)} = ` +
    `${show(h - g)}: two full attempts would not fit before the work is told to stop`);
  return violations;
}
