/**
 * JSON has no bigint, and `JSON.stringify` throws at one. So objects with a token get a `toJSON`.
 */

/** Gives `value` a `toJSON` that is not enumerable: tokens become decimal texts. */
export function withJson<T extends object>(value: T): T {
  // A user's own store may have frozen it, or returned it before.
  if (!Object.isExtensible(value) || 'toJSON' in value) return value;
  return Object.defineProperty(value, 'toJSON', {
    value(this: object) {
      return toJson(this);
    },
  });
}

/** A copy of the enumerable fields, with bigints as decimal texts and errors as objects. */
export function toJson(value: object): Readonly<Record<string, unknown>> {
  return copy(value, new Set([value]));
}

/** An error as an object, without its stack: that is for a log of its own. */
export function errorToJson(error: Error): Readonly<Record<string, unknown>> {
  return copyError(error, new Set([error]));
}

function copy(value: object, seen: Set<object>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, plain(each, seen)] as const),
  );
}

function copyError(error: Error, seen: Set<object>): Record<string, unknown> {
  const { name, message, cause } = error;
  return { ...copy(error, seen), name, message, cause: plain(cause, seen) };
}

/** Leaves out circles, and the sockets and the like that drivers put into their errors. */
function plain(value: unknown, seen: Set<object>): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return value;
  if (seen.has(value)) return undefined;
  const path = new Set(seen).add(value);
  if (Array.isArray(value)) return value.map((each) => plain(each, path));
  if (value instanceof Error) return copyError(value, path);
  return Object.getPrototypeOf(value) === Object.prototype ? copy(value, path) : undefined;
}
