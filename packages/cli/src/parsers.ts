/** Readers of option values for commander: they look at the form of a value, the library at the rest. */
import { InvalidArgumentError } from 'commander';
import type { ListenAddress } from './options.ts';

export function duration(text: string): string {
  if (/^[+]?(?:\d+(?:\.\d+)?|\.\d+)\s*(?:ms|s|m|h)$/.test(text.trim())) return text;
  const why = /^[+-]?[\d.]+$/.test(text.trim())
    ? 'It has no unit'
    : text.trim().startsWith('-')
      ? 'It is negative'
      : 'It is not a duration';
  throw new InvalidArgumentError(`${why}: write 500ms, 15s, 2m or 1h.`);
}

/** A duration to wait for: none at all has an option of its own. */
export function waitDuration(text: string): string {
  // Also without a unit: `--wait 0` is what one tries first.
  if (/^[+]?0*\.?0*\s*(?:ms|s|m|h)?$/.test(text.trim()) && text.includes('0')) {
    throw new InvalidArgumentError('Not to wait at all, use --try.');
  }
  return duration(text);
}

/** For options that may be repeated. */
export function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

/** KEY=VALUE, repeated. The value may be empty and may contain "=". */
export function keyValue(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Write KEY=VALUE.');
  const key = text.slice(0, at);
  if (Object.hasOwn(before, key)) {
    throw new InvalidArgumentError(`The key "${key}" is given twice.`);
  }
  // Entries and not an assignment: a key may be "__proto__".
  return Object.fromEntries([...Object.entries(before), [key, text.slice(at + 1)]]);
}

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < least || value > most) {
      throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
    }
    return value;
  };
}

/** How many shards, or their names. The library looks at the rest. */
export function shardList(text: string): number | readonly string[] {
  return /^[+-]?[\d.]+$/.test(text) ? Number(text) : text.split(',').map((name) => name.trim());
}

/** HOST:PORT, [IPV6]:PORT or :PORT, which listens on every address. */
export function listenAddress(text: string): ListenAddress {
  const match = /^(?:\[([0-9a-fA-F:.]+(?:%\w+)?)\]|([^:[\]\s]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65_535) {
    throw new InvalidArgumentError(
      'Write HOST:PORT, such as 127.0.0.1:8080, [::1]:8080, or :8080 for every address.',
    );
  }
  return { host: match[1] ?? match[2] ?? '', port };
}
