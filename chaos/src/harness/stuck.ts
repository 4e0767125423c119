/** Something that must come does not: there is no point in going on. The message says what is broken. */
export class StuckError extends Error {
  override readonly name: string = 'StuckError';
}
