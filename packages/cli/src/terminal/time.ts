/** `2030-05-01 06:00:00` in local time; `withMs` adds `.123`. */
export function localTime(unixMs: number, withMs = false): string {
  const date = new Date(unixMs);
  // A record can hold any number.
  if (Number.isNaN(date.getTime())) return 'at no valid time';
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const ms = withMs ? `.${String(date.getMilliseconds()).padStart(3, '0')}` : '';
  return `${day} ${time}${ms}`;
}

/** For JSON: ISO 8601 in UTC, or null for a number that is no valid time. */
export function isoTime(unixMs: number): string | null {
  const date = new Date(unixMs);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** A span of time in at most two units: `250ms`, `12.3s`, `3m 12s`, `2h 5m`, `3d 4h`. */
export function span(ms: number): string {
  if (!Number.isFinite(ms)) return '?';
  if (ms < 0) return `-${span(-ms)}`;
  if (ms < 999.5) return `${Math.round(ms)}ms`;
  if (ms < 59_950) return `${Math.round(ms / 100) / 10}s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return twoUnits(seconds, 60, 'm', 's');
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return twoUnits(minutes, 60, 'h', 'm');
  return twoUnits(Math.round(minutes / 60), 24, 'd', 'h');
}

function twoUnits(total: number, size: number, large: string, small: string): string {
  const rest = total % size;
  const whole = `${Math.floor(total / size)}${large}`;
  return rest === 0 ? whole : `${whole} ${rest}${small}`;
}

/** A span of time in one unit: `2.5ms`, `250ms`, `1.2s`, `90s`. */
export function milliseconds(ms: number): string {
  if (ms < 10) return `${Math.round(ms * 10) / 10}ms`;
  return ms < 999.5 ? `${Math.round(ms)}ms` : `${Math.round(ms / 100) / 10}s`;
}

/** `3 minutes ago`, or `in 2 seconds` when our clock is behind the clock of the server. */
export function ago(unixMs: number, nowUnixMs: number): string {
  const seconds = (nowUnixMs - unixMs) / 1000;
  const size = Math.abs(seconds);
  if (!Number.isFinite(size)) return '';
  if (size < 1) return 'just now';
  const [unit, length] = units.find(([, each]) => size >= each) ?? ['second', 1];
  const count = Math.floor(size / length);
  const words = `${count} ${unit}${count === 1 ? '' : 's'}`;
  return seconds < 0 ? `in ${words}` : `${words} ago`;
}

const units: readonly (readonly [name: string, seconds: number])[] = [
  ['year', 31_557_600],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];
