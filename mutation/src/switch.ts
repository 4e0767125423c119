/**
 * Imported by every source that has mutants: which of them is on in this process, and which of them
 * this process has come by. Set by the environment, because test workers and threads inherit it.
 */
const active = Number(process.env['INCUMBENT_MUTANT'] ?? -1);

/** Told of each mutant that the code reaches; the tests do not run with a mutant then. */
let note: ((number: number) => void) | undefined;

export function isActive(number: number): boolean {
  note?.(number);
  return number === active;
}

export function noteReached(observer: (number: number) => void): void {
  note = observer;
}
