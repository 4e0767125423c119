import type { Judge, TermActivity } from '@incumbent/cli/trial';
import type { Played } from './play.ts';
import { sideOf } from './play.ts';

/** Two terms at once, of which the earlier was the other library's. */
export interface Overlap {
  readonly earlier: string;
  readonly later: string;
  /** The strike that the earlier one had; undefined: none of ours. */
  readonly strike: Played['strike'] | undefined;
  readonly ms: number;
}

export interface Verdict {
  /** The findings that must not be. */
  readonly violations: readonly string[];
  /** Overlaps that the other library's own rules allow. */
  readonly overlaps: readonly Overlap[];
}

/**
 * Nobody may lead while ours do, and ours stop before anybody follows them. A foreign leader stops
 * when its own library says so, and whoever follows it cannot know when that is.
 *
 * The order of lines in the log is not judged. A candidate that is frozen between a look at its
 * belief and its write is not wrong, and the line says when it believed.
 */
export function judge(log: Judge, played: readonly Played[]): Verdict {
  const violations = log
    .violations()
    .filter(({ guarantee }) => guarantee !== 'mutual exclusion' && guarantee !== 'order of effects')
    .map(({ guarantee, message }) => `${guarantee}: ${message}`);
  const overlaps: Overlap[] = [];
  for (const [earlier, later] of log.overlaps()) {
    const ms = sharedMs(earlier, later);
    if (sideOf(earlier.candidate) === 'ours') {
      violations.push(
        `mutual exclusion: ${earlier.candidate} (term ${earlier.token}) went on for ${ms.toFixed(3)} ms ` +
          `while ${later.candidate} (term ${later.token}) led`,
      );
    } else {
      const strike = played.find(({ struck }) => struck.token === earlier.token)?.strike;
      overlaps.push({ earlier: earlier.candidate, later: later.candidate, strike, ms });
    }
  }
  return { violations, overlaps };
}

function sharedMs(earlier: TermActivity, later: TermActivity): number {
  const untilNs = earlier.lastNs < later.lastNs ? earlier.lastNs : later.lastNs;
  return Number(untilNs - later.firstNs) / 1e6;
}
