/** All that the model takes from outside: virtual time and chance. */
export interface Scheduler {
  /** Milliseconds since some beginning. */
  now(): number;
  /** Calls `run` once, `delayMs` from now; calls that are due together run in the order they were made. */
  after(delayMs: number, run: () => void): Cancel;
  /** 0 ≤ x < 1, drawn from a seed. */
  random(): number;
}

export type Cancel = () => void;

const hex = '0123456789abcdef';

/** Such as a run id or a replication id (`getRandomHexChars` of util.c). */
export function randomHexId({ random }: Scheduler): string {
  return Array.from({ length: 40 }, () => hex[Math.floor(random() * 16)]).join('');
}
