/** A value for a message. The contents of an object are never shown: they may be a password. */
export function show(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? String(value);
  const name = Object.getPrototypeOf(value)?.constructor?.name;
  return Array.isArray(value)
    ? 'a list'
    : name === 'Object'
      ? 'an object'
      : `an instance of ${name}`;
}
