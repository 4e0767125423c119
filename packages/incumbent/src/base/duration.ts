import { describeValue } from './candidate.ts';
import { maxTimerMs } from './clock.ts';
import { InvalidOptionError } from './errors.ts';

export { formatDuration } from './format-duration.ts';

/** A number of milliseconds, or a number with a unit: `"250ms"`, `"15s"`, `"1.5m"`, `"1h"`. */
export type Duration = number | string;

const unitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/**
 * Reads a duration.
 * @param what names the option in the error
 * @returns milliseconds, from 0 to 2^31 - 1
 * @throws InvalidOptionError for anything else, naming the value and the rule
 */
export function parseDuration(what: string, value: unknown): number {
  let ms: number;
  if (typeof value === 'number') {
    ms = value;
  } else if (typeof value === 'string') {
    const match = /^([+-]?(?:\d+(?:\.\d+)?|\.\d+))\s*([a-zA-Z]*)$/.exec(value.trim());
    const unit = match?.[2] ?? '';
    const factor = unitMs[unit];
    if (match === null || factor === undefined) {
      const why = match !== null && unit === '' ? 'has no unit' : 'is not a duration';
      throw new InvalidOptionError(
        `${what} ${describeValue(value)} ${why}: write a number of ms, or a string such as ` +
          '"500ms", "15s", "2m" or "1h"',
      );
    }
    ms = Number(match[1]) * factor;
  } else {
    throw new InvalidOptionError(
      `${what} must be a duration such as "15s" or a number of ms, not ${describeValue(value)}`,
    );
  }
  if (!Number.isFinite(ms)) {
    throw new InvalidOptionError(`${what} must be finite, not ${describeValue(value)}`);
  }
  if (ms < 0) {
    throw new InvalidOptionError(`${what} must not be negative, not ${describeValue(value)}`);
  }
  if (ms > maxTimerMs) {
    throw new InvalidOptionError(
      `${what} ${describeValue(value)} is ${ms} ms; timers keep at most 2^31 - 1 ms (24.8 days)`,
    );
  }
  return ms;
}
