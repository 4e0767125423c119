import type { Effect } from './effect.ts';
import { parseEffect } from './effect.ts';

/** The guarantees that must hold in every log. */
export type Guarantee =
  /** The times of two terms do not overlap: from its first to its last effect a term is alone. */
  | 'mutual exclusion'
  /** After an effect of a term there is none of an older one. */
  | 'order of effects'
  /** Tokens rise from term to term. */
  | 'rising tokens'
  /** A token is used by one candidate, and by one start of its program. */
  | 'one owner'
  | 'readable log';

export interface Violation {
  readonly guarantee: Guarantee;
  /** With the numbers, which may grow while the log does. */
  readonly message: string;
  /** The same as long as it is the same violation. */
  readonly key: string;
}

/** The activity of one term, as the log shows it. */
export interface TermActivity {
  readonly token: bigint;
  readonly candidate: string;
  readonly group: number;
  readonly firstNs: bigint;
  readonly lastNs: bigint;
  readonly effects: number;
  /** Its first and last line, counted from 1. */
  readonly firstLine: number;
  readonly lastLine: number;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/**
 * Judges a fenced log, line by line. It knows nothing of elections: it sees only what the workers
 * did, and when.
 */
export class Judge {
  readonly #terms = new Map<bigint, Mutable<TermActivity>>();
  readonly #violations: Violation[] = [];
  /** By the token that came late and the one that was there already. */
  readonly #late = new Map<string, { by: TermActivity; after: TermActivity; effects: number }>();
  /** Keys of the violations that were reported before. */
  readonly #said = new Set<string>();
  #newest: Mutable<TermActivity> | undefined;
  #lines = 0;
  #effects = 0;

  /** In the order of their first effects. */
  get terms(): readonly TermActivity[] {
    return [...this.#terms.values()];
  }

  /** The term with the highest token. */
  get newest(): TermActivity | undefined {
    return this.#newest;
  }

  get effects(): number {
    return this.#effects;
  }

  /** @returns the effect; undefined when the line is none */
  add(line: string): Effect | undefined {
    this.#lines += 1;
    const effect = parseEffect(line);
    if (effect === undefined) {
      this.#say('readable log', `line ${this.#lines} is no effect: ${JSON.stringify(line)}`);
      return undefined;
    }
    this.#effects += 1;
    const term = this.#terms.get(effect.token);
    if (term === undefined) this.#begin(effect);
    else this.#goOn(term, effect);
    return effect;
  }

  /** Everything found so far. */
  violations(): readonly Violation[] {
    return [
      ...this.#violations,
      ...this.overlaps().map(
        ([a, b]): Violation => ({
          guarantee: 'mutual exclusion',
          key: `overlap ${a.token} ${b.token}`,
          message: `terms ${a.token} (${a.candidate}) and ${b.token} (${b.candidate}) overlap by ${inMs(sharedNs(a, b))}`,
        }),
      ),
      ...[...this.#late.values()].map(
        ({ by, after, effects }): Violation => ({
          guarantee: 'order of effects',
          key: `late ${by.token} ${after.token}`,
          message: `${effects} effect${effects === 1 ? '' : 's'} of term ${by.token} (${by.candidate}) came after one of term ${after.token} (${after.candidate}), the last in line ${by.lastLine}`,
        }),
      ),
    ];
  }

  /** Pairs of terms whose times overlap, by the clock alone. */
  overlaps(): readonly (readonly [TermActivity, TermActivity])[] {
    const found: [TermActivity, TermActivity][] = [];
    let open: TermActivity[] = [];
    const byTime = [...this.#terms.values()].sort((a, b) => (a.firstNs < b.firstNs ? -1 : 1));
    for (const term of byTime) {
      open = open.filter(({ lastNs }) => lastNs >= term.firstNs);
      for (const earlier of open) found.push([earlier, term]);
      open.push(term);
    }
    return found;
  }

  #begin({ token, candidate, group, atNs }: Effect): void {
    const term = {
      token,
      candidate,
      group,
      firstNs: atNs,
      lastNs: atNs,
      effects: 1,
      firstLine: this.#lines,
      lastLine: this.#lines,
    };
    this.#terms.set(token, term);
    const newest = this.#newest;
    if (newest !== undefined && newest.token > token) {
      this.#say(
        'rising tokens',
        `term ${token} (${candidate}) began, in line ${this.#lines}, after term ${newest.token} (${newest.candidate})`,
      );
      return;
    }
    this.#newest = term;
  }

  #goOn(term: Mutable<TermActivity>, effect: Effect): void {
    const { token, candidate, group, atNs, kind } = effect;
    term.effects += 1;
    term.lastLine = this.#lines;
    // Two processes of a group may write in another order than they read the clock.
    if (atNs < term.firstNs) term.firstNs = atNs;
    if (atNs > term.lastNs) term.lastNs = atNs;
    if (candidate !== term.candidate || group !== term.group) {
      this.#say(
        'one owner',
        `token ${token} is used by ${term.candidate} (group ${term.group}) and by ${candidate} (group ${group})`,
      );
    } else if (kind === 'start') {
      this.#say('one owner', `token ${token} was given to two programs of ${candidate}`);
    }
    const newest = this.#newest;
    if (newest !== undefined && newest.token > token) {
      const key = `${token} ${newest.token}`;
      const late = this.#late.get(key) ?? { by: term, after: newest, effects: 0 };
      late.effects += 1;
      this.#late.set(key, late);
    }
  }

  #say(guarantee: Guarantee, message: string): void {
    if (this.#said.has(message)) return;
    this.#said.add(message);
    this.#violations.push({ guarantee, message, key: message });
  }
}

function sharedNs(a: TermActivity, b: TermActivity): bigint {
  const fromNs = a.firstNs > b.firstNs ? a.firstNs : b.firstNs;
  const toNs = a.lastNs < b.lastNs ? a.lastNs : b.lastNs;
  return toNs - fromNs;
}

function inMs(ns: bigint): string {
  const ms = Number(ns) / 1e6;
  return `${ms < 10 ? ms.toFixed(3) : Math.round(ms)} ms`;
}
