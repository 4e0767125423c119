import { InvalidArgumentError } from './errors.ts';
import { nearest } from './nearest.ts';

/**
 * The data of a node. A string is sent as UTF-8. null differs from an empty array: the node then
 * has no data at all.
 */
export type Data = string | Uint8Array | null;

/** Limits of one call. */
export interface CallOptions {
  /**
   * The call rejects with the signal's reason when it aborts. A write that was sent already may be
   * applied all the same.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * How long the call may take, in ms (default: `requestTimeoutMs`). After that it rejects with
   * RequestTimeoutError.
   */
  readonly timeoutMs?: number | undefined;
}

/** Options of a call that may demand a version. */
export interface VersionOptions extends CallOptions {
  /** The version that the node must have. Default -1: any. It must not be undefined. */
  readonly version?: number;
}

/** The names of an object's members. The compiler checks that the list is complete. */
export function namesOf<T>(
  names: {
    readonly [Name in keyof Required<T>]: true;
  },
): readonly string[] {
  return Object.keys(names);
}

const callOptions = namesOf<CallOptions>({ signal: true, timeoutMs: true });
export const versionOptions: readonly string[] = namesOf<VersionOptions>({
  signal: true,
  timeoutMs: true,
  version: true,
});

/**
 * Options without which a call demands less, allows more, or keeps the node longer. A value that is
 * missing by mistake must not do that silently.
 */
const notUndefined: ReadonlyMap<string, string> = new Map([
  ['version', 'leave it out, or give -1, for any version'],
  ['configId', 'leave it out, or give -1n, for any configuration'],
  ['acl', 'leave it out, or give [acl.world()], to allow everybody everything'],
  ['ttlMs', 'leave it out for a node that stays'],
]);
const switches: ReadonlySet<string> = new Set([
  ...['ephemeral', 'sequential', 'container', 'recursive', 'keepSession', 'readOnly'],
]);

/**
 * Rejects names of options that the call `of` does not have and would ignore, and suggests the name
 * that may be meant. It also rejects values that other clients take in this place, such as a
 * version or a watcher.
 * @param of the call, such as `set`
 * @param names the options that it has (default: the limits of every call)
 * @throws InvalidArgumentError
 */
export function checkOptions(
  of: string,
  options: object | undefined,
  names: readonly string[] = callOptions,
): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null) {
    throw new InvalidArgumentError(
      `the options of ${of} are an object such as {${names[0]}: …}, not ${describe(options)}`,
    );
  }
  for (const name in options) {
    if (!names.includes(name)) {
      const meant = nearest(name, names);
      throw new InvalidArgumentError(
        `${of} has no option ${JSON.stringify(name)}; ` +
          `${meant === undefined ? '' : `did you mean ${meant}? `}there are ${names.join(', ')}`,
      );
    }
    const value = (options as Readonly<Record<string, unknown>>)[name];
    if (value === undefined) {
      const instead = notUndefined.get(name);
      if (instead !== undefined) {
        throw new InvalidArgumentError(`${of}: ${name} is undefined; ${instead}`);
      }
    } else if (switches.has(name) && typeof value !== 'boolean') {
      throw new InvalidArgumentError(`${of}: ${name} is true or false, not ${describe(value)}`);
    } else if (name === 'signal' && !isSignal(value)) {
      throw new InvalidArgumentError(`${of}: signal is an AbortSignal, not ${describe(value)}`);
    }
  }
}

function isSignal(value: unknown): boolean {
  const { aborted, addEventListener } = (value ?? {}) as Partial<AbortSignal>;
  return typeof aborted === 'boolean' && typeof addEventListener === 'function';
}

/** The longest TTL that the server can keep: 40 bits. */
const maxTtlMs = 2 ** 40 - 1;
const maxTimeoutMs = 2 ** 31 - 1;

export function toBytes(data: Data, path: string): Uint8Array | null {
  if (data === null) return null;
  if (typeof data === 'string') return Buffer.from(data, 'utf8');
  if (data instanceof Uint8Array) return data;
  const toEmpty = data === undefined ? '; null empties the node' : '';
  throw new InvalidArgumentError(
    `the data of ${path} is a string, a Uint8Array or null, not ${describe(data)}${toEmpty}`,
    { path },
  );
}

/**
 * Copies data that is sent later than it was given, or twice. The caller may change its own array
 * meanwhile.
 */
export function copyOf(data: Data): Data {
  return data instanceof Uint8Array ? Uint8Array.from(data) : data;
}

/** @param version undefined only if it was left out */
export function checkVersion(version: number | undefined, path: string): number {
  if (version === undefined) return -1;
  if (!Number.isInteger(version) || version < -(2 ** 31) || version > 2 ** 31 - 1) {
    throw new InvalidArgumentError(
      `a version is a signed 32-bit integer (-1: any), not ${describe(version)}`,
      { path },
    );
  }
  return version;
}

export function checkTtl(ttlMs: number, path: string): number {
  if (!Number.isInteger(ttlMs) || ttlMs < 1 || ttlMs > maxTtlMs) {
    throw new InvalidArgumentError(`a TTL is 1 to ${maxTtlMs} ms (ttlMs), not ${describe(ttlMs)}`, {
      path,
    });
  }
  return ttlMs;
}

export function checkTimeout(name: string, timeoutMs: number): number {
  if (typeof timeoutMs !== 'number' || !(timeoutMs > 0 && timeoutMs <= maxTimeoutMs)) {
    throw new InvalidArgumentError(
      `${name} is more than 0 and at most ${maxTimeoutMs} ms, not ${describe(timeoutMs)}`,
    );
  }
  return timeoutMs;
}

export function checkCount(name: string, count: number, least = 1): number {
  if (!Number.isSafeInteger(count) || count < least) {
    throw new InvalidArgumentError(
      `${name} is an integer of at least ${least}, not ${describe(count)}`,
    );
  }
  return count;
}

export function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'object' && value !== null)
    return `a ${value.constructor?.name ?? 'object'}`;
  return String(value);
}
