/** What users and clients throw may be anything: telling of it must not throw in its turn. */

/** In words for people. */
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
    // A proxy may refuse even that.
  }
  return new Error(textOf(thrown));
}
