import { InvalidArgumentError } from './errors.ts';

/** What a node holds. A string is sent as UTF-8. null is not the same as no bytes. */
export type Data = string | Uint8Array | null;

/** Bounds of one call. */
export interface CallOptions {
  /** Aborts: the call rejects with the signal's reason. A write that was sent may be applied. */
  readonly signal?: AbortSignal | undefined;
  /** The call rejects with RequestTimeoutError after it, in ms (default: `requestTimeoutMs`). */
  readonly timeoutMs?: number | undefined;
}

/** A call that may demand a version. */
export interface VersionOptions extends CallOptions {
  /** The version that the node must have (default -1: any). */
  readonly version?: number | undefined;
}

const callOptions: ReadonlySet<string> = new Set([
  ...['signal', 'timeoutMs', 'version', 'acl', 'data'],
  ...['ephemeral', 'sequential', 'container', 'ttlMs', 'protected'],
  ...['recursive', 'maxBuffered', 'maxNodes', 'onProgress', 'configId'],
]);

/**
 * Throws InvalidArgumentError for what other clients take in this place, such as a version or a
 * watcher, and for names that no call knows: both would be ignored otherwise.
 */
export function checkCallOptions(options: object): void {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidArgumentError(
      `the options of a call are an object such as {timeoutMs: 500}, not ${describe(options)}`,
    );
  }
  checkNames(options, callOptions, 'a call');
}

/** @param of whose options they are */
export function checkNames(options: object, known: ReadonlySet<string>, of: string): void {
  for (const name in options) {
    if (!known.has(name)) {
      throw new InvalidArgumentError(
        `${of} has no option "${name}"; there are ${[...known].join(', ')}`,
      );
    }
  }
}

/** The longest TTL that the server can keep: 40 bits. */
const maxTtlMs = 2 ** 40 - 1;
const maxTimeoutMs = 2 ** 31 - 1;

export function toBytes(data: Data | undefined, path: string): Uint8Array | null {
  if (data === null || data === undefined) return null;
  if (typeof data === 'string') return Buffer.from(data, 'utf8');
  if (data instanceof Uint8Array) return data;
  throw new InvalidArgumentError(
    `the data of ${path} is a string, a Uint8Array or null, not ${describe(data)}`,
    { path },
  );
}

/** Data that is sent later than it was given, or twice: the caller may change its own meanwhile. */
export function copyOf(data: Data): Data {
  return data instanceof Uint8Array ? Uint8Array.from(data) : data;
}

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
