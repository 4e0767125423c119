import { constants } from 'node:os';
import { exitCodes } from '../failure.ts';
import type { ProgramExit } from '../guard/index.ts';
import { monotonicMs } from '../guard/protocol.ts';

const firstBackoffMs = 1_000;
const longestBackoffMs = 60_000;
/** After a program that ran for so long, the back-off starts anew. */
const calmAfterMs = 60_000;

/** The pause before a program is begun again: longer each time, unless it ran for long. */
export class RestartPause {
  #backoffMs = firstBackoffMs;

  /** @param startedMs when the program began, monotonic; infinite: it did not */
  next(startedMs: number): number {
    if (monotonicMs() - startedMs >= calmAfterMs) this.#backoffMs = firstBackoffMs;
    const backoffMs = this.#backoffMs;
    this.#backoffMs = Math.min(2 * backoffMs, longestBackoffMs);
    return backoffMs;
  }
}

/** As a shell reports it: the code, or 128 + the number of the signal. */
export function codeOf({ code, signal }: ProgramExit): number {
  return code ?? (signal === null ? exitCodes.internal : 128 + constants.signals[signal]);
}
