/** Why a candidate is not elected: one reason for errors, statuses, diagnostics and operators. */

import { formatDuration } from './format-duration.ts';
import { textOf } from './thrown.ts';

/** Why a candidate is not elected. Branch on `kind`. `describeNotElected` says it in words. */
export type NotElectedReason =
  /**
   * This candidate leads, or has led and may still believe that it does. `token` is missing where
   * its program tells none. `over`: its term began after we had asked and has ended already, so the
   * job is done. `seats`: so many are there, and all are taken. This candidate has one of them.
   */
  | {
      readonly kind: 'led';
      readonly id: string;
      readonly token?: bigint;
      readonly over?: true;
      readonly seats?: number;
    }
  /** Until then only `for` may take the seat. Without `for`, no candidate may. */
  | { readonly kind: 'reserved'; readonly for?: string; readonly untilUnixMs: number }
  /** The work of `by` is done, and is not to be done again before then. */
  | { readonly kind: 'held'; readonly by: string; readonly untilUnixMs: number }
  /** An operator keeps this candidate out. */
  | { readonly kind: 'drained'; readonly untilUnixMs: number }
  /** This candidate has just given a term up, and lets others go first. */
  | { readonly kind: 'aside'; readonly untilUnixMs: number }
  /** The health check failed. `error` is what it threw, undefined when it only said no. */
  | { readonly kind: 'unhealthy'; readonly error: unknown }
  /**
   * No candidate leads, but an earlier leader may still believe that it does.
   *
   * - `restart`: the store was restarted at `sinceUnixMs`, and may have forgotten a leader. A new
   *   store looks the same.
   * - `loss`: a record that was there is gone.
   * - `win`: this candidate has won the seat since then, and waits for its predecessor.
   */
  | {
      readonly kind: 'settling';
      readonly after: 'restart' | 'loss' | 'win';
      readonly sinceUnixMs: number;
      readonly untilUnixMs: number;
    }
  /** The store does not answer, or not in a way that a candidate could rely on. */
  | { readonly kind: 'unreachable'; readonly cause: unknown }
  /**
   * The seat was won, and lost again before the term began. A hook failed, or an operator asked.
   */
  | { readonly kind: 'lost'; readonly cause: unknown };

/**
 * The reason in words, for logs and operators.
 * @returns a sentence without a full stop, with times as this machine's clock shows them
 */
export function describeNotElected(why: NotElectedReason, nowUnixMs: number = Date.now()): string {
  switch (why.kind) {
    case 'led':
      return (
        (why.seats === undefined ? '' : `all ${why.seats} seats are taken; `) +
        `"${why.id}" ${why.over ? 'was elected meanwhile' : 'leads'}` +
        (why.token === undefined ? '' : ` with token ${why.token}`)
      );
    case 'reserved': {
      const whom = why.for === undefined ? '' : ` for "${why.for}"`;
      return `the seat is reserved${whom} until ${clockTime(why.untilUnixMs, nowUnixMs)}`;
    }
    case 'held':
      return (
        `"${why.by}" has done its work and holds the seat until ` +
        clockTime(why.untilUnixMs, nowUnixMs)
      );
    case 'drained':
      return `this candidate is drained until ${clockTime(why.untilUnixMs, nowUnixMs)}`;
    case 'aside':
      return (
        'this candidate has just given the seat up and lets others go first for ' +
        span(why.untilUnixMs - nowUnixMs)
      );
    case 'unhealthy':
      return `the health check fails${because(why.error)}`;
    case 'settling': {
      const ago = span(nowUnixMs - why.sinceUnixMs);
      const what = {
        restart: `the store was restarted, or the election is new there (${ago} ago); a leader that it forgot`,
        loss: `the record of an earlier leader was lost ${ago} ago; that leader`,
        win: 'the seat is won; the leader before',
      }[why.after];
      return `${what} may still believe for ${span(why.untilUnixMs - nowUnixMs)}`;
    }
    case 'unreachable':
      return `the store cannot be used${because(why.cause)}`;
    case 'lost':
      return `the seat was won, and lost before the term began${because(why.cause)}`;
    default:
      return why satisfies never;
  }
}

/** The error behind the reason, if there is one. */
export function causeOf(why: NotElectedReason): unknown {
  if (why.kind === 'unhealthy') return why.error;
  return why.kind === 'unreachable' || why.kind === 'lost' ? why.cause : undefined;
}

/**
 * The clocks are read anew at every look. Times that differ by less than this count as the same.
 */
const sameTimeMs = 1_000;

/** True when the reason has been told already. */
export function sameReason(a: NotElectedReason | undefined, b: NotElectedReason): boolean {
  if (a?.kind !== b.kind) return false;
  if (a.kind === 'led' && b.kind === 'led') return a.id === b.id && a.token === b.token;
  if (a.kind === 'reserved' && b.kind === 'reserved' && a.for !== b.for) return false;
  if (a.kind === 'held' && b.kind === 'held' && a.by !== b.by) return false;
  if ('untilUnixMs' in a && 'untilUnixMs' in b) {
    return Math.abs(a.untilUnixMs - b.untilUnixMs) < sameTimeMs;
  }
  // An error that repeats is reported as trouble.
  return true;
}

function because(error: unknown): string {
  if (error === undefined) return '';
  return `: ${textOf(error)}`;
}

/** As exact as people read it: `300ms`, `4.1s`, `15s`. */
function span(ms: number): string {
  const left = Math.max(0, ms);
  const stepMs = left < 1_000 ? 1 : left < 10_000 ? 100 : 1_000;
  return formatDuration(Math.round(left / stepMs) * stepMs);
}

/** `14:20:05`, with the date when it is another day. */
function clockTime(unixMs: number, nowUnixMs: number): string {
  const date = new Date(unixMs);
  // A record can hold any number.
  if (Number.isNaN(date.getTime())) return 'no valid time';
  const two = (value: number) => String(value).padStart(2, '0');
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':');
  if (new Date(nowUnixMs).toDateString() === date.toDateString()) return time;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}
