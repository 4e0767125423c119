/** Users and clients may throw anything. Reporting it must not throw in its turn. */

/** The thrown value as text for people. */
export function textOf(thrown: unknown): string {
  try {
    return `${thrown instanceof Error ? thrown.message : String(thrown)}`;
  } catch {
    return 'a value without a text was thrown';
  }
}

export function asError(thrown: unknown): Error {
  try {
    if (thrown instanceof Error) return thrown;
  } catch {
    // A proxy may throw even here.
  }
  return new Error(textOf(thrown));
}
