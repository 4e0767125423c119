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
