import type { Judge } from '@incumbent/cli/trial';

/** Ends that leave nobody any time: belief is over when they are heard of. The successor waits. */
const seatTaken: readonly string[] = ['record-gone', 'superseded', 'session-expired'];

/**
 * Whose program left effects after its supervisor had said that belief was over. With a belief of
 * less than a second it is killed shortly before that, and on a busy machine its watchers take longer
 * to end.
 */
export class Overruns {
  readonly #atMs = new Map<bigint, number>();

  /** Somebody of the program was there, at this time by CLOCK_MONOTONIC. */
  add(token: bigint, atMs: number, reason: string): void {
    if (!seatTaken.includes(reason)) this.#atMs.set(token, atMs);
  }

  /** @returns what must not be, of what was added since */
  judge(judge: Judge): string[] {
    const problems = [...this.#atMs].flatMap(([token, atMs]) => {
      const term = judge.terms.find((each) => each.token === token);
      const lateMs = term === undefined ? 0 : Number(term.lastNs) / 1e6 - atMs;
      if (term === undefined || lateMs <= 0) return [];
      return [
        `stopped in time: the program of term ${token} (${term.candidate}) worked for ` +
          `${Math.round(lateMs)} ms after its belief was over`,
      ];
    });
    this.#atMs.clear();
    return problems;
  }
}
