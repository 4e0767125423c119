import type { FencedLog } from '../trial/fenced-log.ts';
import type { TermActivity } from '../trial/judge.ts';
import { ActionError } from '../web/page-server.ts';
import type { Fleet } from './fleet.ts';
import { inSeconds } from './picture.ts';
import type { Scene } from './scene.ts';
import type { Act, Condition, Mark, Note, Snapshot } from './snapshot.ts';

/** As far back as the page shows. It begins with less, which is seen better. */
const longestWindowMs = 60_000;
const firstWindowMs = 20_000;
const mostNotes = 50;
const shownEffects = 8;

interface Strike {
  readonly note: Note;
  readonly token: bigint;
  readonly atNs: bigint;
}

/** The demo that a person plays: does what the buttons say, and notes what comes of it. */
export class WebStage {
  readonly #scene: Scene;
  readonly #fleet: Fleet;
  readonly #log: FencedLog;
  readonly #vacate: () => Promise<unknown>;
  readonly #lines: { token: string; candidate: string; atMs: number }[] = [];
  #newest: TermActivity | undefined;
  /** The last blow to a leader, while its successor is awaited. */
  #strike: Strike | undefined;
  #thaws: Strike[] = [];
  /** The last term whose supervisor was killed, so it cannot tell its end. */
  #killed: bigint | undefined;

  constructor(scene: Scene, fleet: Fleet, log: FencedLog, vacate: () => Promise<unknown>) {
    this.#scene = scene;
    this.#fleet = fleet;
    this.#log = log;
    this.#vacate = vacate;
    log.onEffect((effect) => {
      scene.works(effect);
      this.#lines.push({
        token: effect.token.toString(),
        candidate: effect.candidate,
        atMs: scene.msOf(effect.atNs),
      });
      if (this.#lines.length > shownEffects) this.#lines.shift();
      this.#see(log.judge.newest);
    });
  }

  /** @throws ActionError when the candidate is not in a state for it */
  async act(act: Act, id: string): Promise<void> {
    const condition = this.#conditionOf(id);
    if (condition === undefined) throw new ActionError(`there is no candidate "${id}"`);
    const refuse = (why: string): never => {
      throw new ActionError(`${id} ${why}`);
    };
    switch (act) {
      case 'start':
        if (!this.#fleet.hasGone(id)) refuse('runs already');
        this.#scene.note({ what: `${id} started again` });
        this.#fleet.start(id);
        return;
      case 'kill':
        if (condition === 'gone') refuse('is gone already');
        this.#struck(id, 'killed', 'killed (SIGKILL)');
        if (this.#log.judge.newest?.candidate === id) this.#killed = this.#log.judge.newest.token;
        this.#fleet.kill(id);
        this.#scene.is(id, 'gone');
        return;
      case 'freeze':
        if (condition === 'gone') refuse('is gone: start it first');
        if (condition === 'frozen') refuse('is frozen already');
        this.#struck(id, 'frozen', 'frozen (SIGSTOP)');
        this.#fleet.freeze(id);
        this.#scene.is(id, 'frozen');
        return;
      case 'thaw':
        if (condition !== 'frozen') refuse('is not frozen');
        this.#thaw(id);
        return;
      case 'resign':
        if (!this.#leads(id)) refuse('does not lead');
        this.#struck(id, 'resigned', 'asked to resign');
        await this.#vacate();
        return;
      default:
        act satisfies never;
    }
  }

  snapshot(): Snapshot {
    this.#noticeEnds();
    const { nowMs } = this.#scene;
    const windowMs = Math.min(longestWindowMs, Math.max(firstWindowMs, nowMs));
    const sinceMs = nowMs - windowMs;
    const { judge } = this.#log;
    return {
      nowMs,
      windowMs,
      lanes: this.#scene.lanes.map(({ id, conditions, work, marks }) => ({
        id,
        condition: this.#conditionOf(id) ?? 'gone',
        leads: this.#leads(id),
        conditions: since(conditions, sinceMs).map((each) => [round(each.sinceMs), each.condition]),
        work: work
          .filter(({ toMs }) => toMs >= sinceMs)
          .map(({ fromMs, toMs, token }) => [round(fromMs), round(toMs), String(token)]),
        marks: marks
          .filter(({ atMs }) => atMs >= sinceMs)
          .map(({ atMs, mark }) => [round(atMs), mark]),
      })),
      notes: this.#scene.notes.slice(-mostNotes),
      effects: judge.effects,
      terms: judge.terms.length,
      overlaps: judge.overlaps().length,
      violations: judge.violations().map(({ guarantee, message }) => `${guarantee}: ${message}`),
      token: judge.newest?.token.toString(),
      lines: [...this.#lines],
    };
  }

  #conditionOf(id: string): Condition | undefined {
    return this.#scene.lanes.find((lane) => lane.id === id)?.conditions.at(-1)?.condition;
  }

  /** Its program was the last one that worked, and it has not reported the end of that term. */
  #leads(id: string): boolean {
    const { newest } = this.#log.judge;
    if (newest?.candidate !== id) return false;
    return newest.token !== this.#killed && !this.#fleet.hasEnded(newest.token);
  }

  #struck(id: string, mark: Mark, what: string): void {
    this.#scene.mark(id, mark);
    const note = this.#scene.note({ mark, what: `${id} ${what}` });
    const { newest } = this.#log.judge;
    if (newest === undefined || !this.#leads(id)) return;
    this.#strike = { note, token: newest.token, atNs: process.hrtime.bigint() };
  }

  #thaw(id: string): void {
    this.#scene.mark(id, 'thawed');
    const note = this.#scene.note({ mark: 'thawed', what: `${id} thawed (SIGCONT)` });
    const term = this.#log.judge.terms.findLast(({ candidate }) => candidate === id);
    this.#fleet.thaw(id);
    this.#scene.is(id, 'waits');
    if (term === undefined || this.#fleet.hasEnded(term.token)) return;
    this.#thaws.push({ note, token: term.token, atNs: process.hrtime.bigint() });
  }

  /** The end of a term that a frozen candidate slept through. */
  #noticeEnds(): void {
    this.#thaws = this.#thaws.filter(({ note, token }) => {
      if (!this.#fleet.hasEnded(token)) return true;
      note.outcome = 'it finds its term over, and waits';
      return false;
    });
  }

  #see(newest: TermActivity | undefined): void {
    if (newest === undefined || newest.token === this.#newest?.token) return;
    this.#newest = newest;
    const strike = this.#strike;
    this.#strike = undefined;
    if (strike !== undefined && strike.token < newest.token) {
      const tookMs = Number(newest.firstNs - strike.atNs) / 1e6;
      strike.note.outcome = `${newest.candidate} leads after ${inSeconds(tookMs, 2)}`;
    } else {
      this.#scene.note({ what: `${newest.candidate} leads` });
    }
  }
}

/** With the one that holds at the beginning of the window. */
function since<T extends { readonly sinceMs: number }>(
  all: readonly T[],
  sinceMs: number,
): readonly T[] {
  const first = all.findLastIndex((each) => each.sinceMs <= sinceMs);
  return all.slice(Math.max(0, first));
}

function round(ms: number): number {
  return Math.round(ms);
}
