import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { systemClock } from '../../src/base/clock.ts';
import type { Term } from '../../src/core/term.ts';

/** Fine enough to see the overlap of an operation that took too long. Events are looked at, too. */
const lookEveryMs = 2;

const channels = [
  'waiting',
  'won',
  'leading',
  'state',
  'confirmed',
  'unconfirmed',
  'ended',
  'overrun',
  'trouble',
].map((name) => `incumbent:${name}`);

/** The facts of one term, by the clock of this process, in ms. */
interface Watched {
  readonly term: Term;
  /** After the question that was first answered yes. */
  firstMs: number | undefined;
  /** Before the question that was last answered yes. */
  lastMs: number;
  /** The latest moment at which it may be answered yes. */
  readonly latestMs: () => number;
}

/**
 * Asks all terms of an election whether they lead, at every event of it and often in between. All
 * are in one process, by one clock. Violations are collected, and nothing is thrown.
 */
export class BeliefWatch {
  readonly violations: string[] = [];
  readonly #watched: Watched[] = [];
  readonly #said = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  readonly #onEvent: (message: unknown) => void;

  constructor(election: string) {
    this.#onEvent = (message) => {
      if ((message as { election: string }).election === election) this.look();
    };
    for (const name of channels) subscribe(name, this.#onEvent);
    this.#timer = setInterval(() => this.look(), lookEveryMs);
  }

  /** @param latestMs the latest time until which it may believe, as far as others can tell */
  add(term: Term, latestMs: () => number): void {
    const highest = this.#watched.at(-1)?.term.token;
    if (highest !== undefined && term.token <= highest) {
      this.#say(`tokens rise: ${term.candidate} leads with ${term.token}, after ${highest}`);
    }
    this.#watched.push({ term, firstMs: undefined, lastMs: Number.NEGATIVE_INFINITY, latestMs });
    this.look();
  }

  /** The terms that say now that they lead. */
  look(): readonly Term[] {
    const leaders: Term[] = [];
    for (const watched of this.#watched) {
      const { term, latestMs } = watched;
      const beforeMs = systemClock.monotonicMs();
      if (!term.isLeading()) continue;
      leaders.push(term);
      watched.lastMs = beforeMs;
      watched.firstMs ??= systemClock.monotonicMs();
      if (beforeMs > latestMs()) {
        this.#say(`belief counts from the send: ${name(term)} believes for longer than H after it`);
      }
    }
    if (leaders.length > 1) this.#say(`belief overlaps: ${leaders.map(name).join(' and ')} lead`);
    return leaders;
  }

  /** Judges the intervals, and looks no more. */
  stop(): void {
    clearInterval(this.#timer);
    for (const name of channels) unsubscribe(name, this.#onEvent);
    const spells = this.#watched.flatMap(({ term, firstMs, lastMs }) =>
      firstMs === undefined ? [] : [{ term, firstMs, lastMs }],
    );
    spells.forEach(({ term, firstMs }, index) => {
      for (const earlier of spells.slice(0, index)) {
        if (earlier.lastMs < firstMs) continue;
        const ms = (earlier.lastMs - firstMs).toFixed(1);
        this.#say(`belief overlaps: ${name(earlier.term)} and ${name(term)}, for ${ms} ms`);
      }
    });
  }

  #say(violation: string): void {
    if (this.#said.has(violation)) return;
    this.#said.add(violation);
    this.violations.push(violation);
  }
}

function name({ candidate, token }: Term): string {
  return `${candidate} (token ${token})`;
}
