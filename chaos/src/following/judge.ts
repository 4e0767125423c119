import type { TermActivity } from '@incumbent/cli/trial';
import type { Failure, Served } from './messages.ts';
import type { Fault } from './plan.ts';
import type { ToldTerm } from './terms.ts';

/** A change of the leader that was brought about. */
export interface Played {
  readonly fault: Fault;
  readonly calm: boolean;
  readonly atMs: number;
  readonly struck: bigint;
  /** The next term. */
  readonly next: bigint;
  readonly beginsMs: number;
}

/** A time in which calls may fail: from the end of one term to a while after the next has begun. */
export interface Window {
  readonly fromMs: number;
  readonly toMs: number;
  /** The term that begins in it. */
  readonly token: bigint;
  /** Brought about, and not by chance. */
  readonly isStruck: boolean;
}

/** Something that must not be, and when it was. */
export interface Finding {
  readonly atMs: number;
  readonly what: string;
}

/**
 * @param terms by token
 * @param followMs how long calls may fail after a term began
 */
export function windowsOf(
  terms: readonly ToldTerm[],
  played: readonly Played[],
  followMs: (fromMs: number) => number,
): readonly Window[] {
  return terms.map((term, index) => {
    const before = terms[index - 1];
    const strikes = played.filter(({ struck }) => struck === before?.token);
    const fromMs =
      before === undefined
        ? Number.NEGATIVE_INFINITY
        : Math.min(before.endsMs, ...strikes.map(({ atMs }) => atMs));
    const toMs = term.beginsMs + followMs(term.beginsMs);
    return { fromMs, toMs, token: term.token, isStruck: strikes.length > 0 };
  });
}

/** Calls that failed, and were under way at no time in which calls may. */
export function failedOutside(
  failures: readonly Failure[],
  windows: readonly Window[],
): readonly Finding[] {
  return failures
    .filter(({ startMs, endMs }) =>
      windows.every(({ fromMs, toMs }) => endMs < fromMs || startMs > toMs),
    )
    .map(({ client, way, startMs, endMs, why }) => {
      const last = windows.findLast(({ toMs }) => toMs < startMs);
      const since =
        last === undefined
          ? ''
          : `, ${seconds(startMs - last.toMs)} after calls had to succeed again in term ${last.token}`;
      return {
        atMs: endMs,
        what: `calls fail only in the bound: ${client}, ${way}: ${why}${since}`,
      };
    });
}

/** Terms under which something was served when nobody believed in them. */
export function servedOutside(
  activities: readonly TermActivity[],
  terms: readonly ToldTerm[],
): readonly Finding[] {
  return activities.flatMap(({ token, candidate, firstNs, lastNs }) => {
    const [firstMs, lastMs] = [firstNs, lastNs].map((ns) => Number(ns) / 1e6) as [number, number];
    const term = terms.find((each) => each.token === token);
    const say = (atMs: number, how: string): Finding => {
      return {
        atMs,
        what: `served while it leads: ${candidate} served under token ${token} ${how}`,
      };
    };
    if (term === undefined) return [say(firstMs, 'which is no term')];
    const found: Finding[] = [];
    if (firstMs < term.beginsMs) {
      found.push(say(firstMs, `${seconds(term.beginsMs - firstMs)} before the term began`));
    }
    if (lastMs > term.endsMs) {
      found.push(say(lastMs, `${seconds(lastMs - term.endsMs)} after its belief was over`));
    }
    return found;
  });
}

export interface Caller extends Pick<Served, 'client' | 'way'> {
  /** From then on it must have been served: it had begun to call some time before. */
  readonly dueMs: number;
}

/** Ways by which nothing was served in a term that lasted for longer than calls may fail. */
export function neverServed(
  served: readonly Served[],
  callers: readonly Caller[],
  windows: readonly Window[],
  endMs: number,
): readonly Finding[] {
  return windows.flatMap(({ token, toMs }, index) => {
    const untilMs = Math.min(endMs, windows[index + 1]?.fromMs ?? endMs);
    if (untilMs <= toMs) return [];
    return callers
      .filter(({ client, way, dueMs }) => {
        if (untilMs <= dueMs) return false;
        const found = served.find(
          (each) => each.client === client && each.way === way && each.token === String(token),
        );
        return found === undefined || found.firstMs > untilMs;
      })
      .map(({ client, way }) => ({
        atMs: untilMs,
        what: `everybody is served: ${client}, ${way} had no answer in term ${token}`,
      }));
  });
}

/** Changes that took longer than they may. */
export function lateTakeovers(
  played: readonly Played[],
  boundMs: (fault: Fault, atMs: number) => number,
): readonly Finding[] {
  return played.flatMap(({ fault, atMs, struck, beginsMs }) => {
    const tookMs = beginsMs - atMs;
    const mostMs = boundMs(fault, atMs);
    if (tookMs <= mostMs) return [];
    const what =
      `take-over: nobody led for ${seconds(tookMs)} after ${fault} of term ${struck}; ` +
      `the bound is ${seconds(mostMs)}`;
    return [{ atMs: beginsMs, what }];
  });
}

/** Calls that took longer than they were given. */
export function lateCalls(
  failures: readonly Failure[],
  mostMs: (startMs: number) => number,
): readonly Finding[] {
  return failures
    .filter(({ startMs, endMs }) => endMs - startMs > mostMs(startMs))
    .map(({ client, way, startMs, endMs, why }) => ({
      atMs: endMs,
      what: `calls settle: ${client}, ${way} had none for ${seconds(endMs - startMs)}: ${why}`,
    }));
}

export function seconds(ms: number): string {
  return ms < 10 ? `${ms.toFixed(3)} ms` : `${(ms / 1000).toFixed(2)} s`;
}
