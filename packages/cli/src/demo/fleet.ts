import { CandidateProcess } from '../trial/candidate-process.ts';
import type { FencedLog } from '../trial/fenced-log.ts';
import { processesOf, send } from '../trial/processes.ts';
import { waitUntil } from '../trial/wait-until.ts';
import type { Scene } from './scene.ts';

const endWithinMs = 5_000;

/** The candidates of the demo: the demo ends all of them, even when it fails. */
export class Fleet {
  readonly election: string;
  readonly store: string;
  readonly lease: string;
  /** Rejects when a candidate ends although the demo did not end it. */
  readonly broken: Promise<never>;
  readonly #log: FencedLog;
  readonly #scene: Scene;
  readonly #candidates = new Map<string, CandidateProcess>();
  /** Terms that candidates reported as over. */
  readonly #ended = new Set<string>();
  readonly #killed = new Set<CandidateProcess>();
  #ending = false;
  #break: (error: Error) => void = () => {};

  constructor(
    options: { readonly election: string; readonly store: string; readonly lease: string },
    log: FencedLog,
    scene: Scene,
  ) {
    this.election = options.election;
    this.store = options.store;
    this.lease = options.lease;
    this.#log = log;
    this.#scene = scene;
    this.broken = new Promise((_, reject) => {
      this.#break = reject;
    });
    this.broken.catch(() => {});
  }

  start(id: string): void {
    const { election, store, lease } = this;
    let lastWords = '';
    const candidate = new CandidateProcess({
      id,
      election,
      store,
      lease,
      log: this.#log.path,
      onReport: ({ event, token, text }) => {
        if (event === 'waiting') this.#scene.is(id, 'waits');
        if (event === 'ended' && token !== undefined) this.#ended.add(token);
        if (text !== undefined) lastWords = text;
      },
    });
    this.#candidates.set(id, candidate);
    this.#scene.is(id, 'starts');
    void candidate.ended.then((how) => {
      // Another one of this id may have been started meanwhile.
      if (this.#candidates.get(id) === candidate) this.#scene.is(id, 'gone');
      if (this.#ending || this.#killed.has(candidate)) return;
      this.#break(new Error(`candidate ${id} ended unasked (${how}) ${lastWords}`.trimEnd()));
    });
  }

  hasEnded(token: bigint): boolean {
    return this.#ended.has(token.toString());
  }

  /** It has ended, or was never started. */
  hasGone(id: string): boolean {
    return this.#candidates.get(id)?.hasEnded !== false;
  }

  kill(id: string): void {
    const candidate = this.#candidates.get(id);
    if (candidate === undefined) return;
    this.#killed.add(candidate);
    candidate.signal('SIGKILL');
  }

  freeze(id: string): void {
    this.#candidates.get(id)?.signal('SIGSTOP');
  }

  thaw(id: string): void {
    this.#candidates.get(id)?.signal('SIGCONT');
  }

  /**
   * Asks all candidates to end, and kills those that have not ended after a while. Then kills
   * everything they started.
   * @returns how many processes had to be killed that should have ended with their supervisors:
   * none
   */
  async end(): Promise<number> {
    this.#ending = true;
    const all = [...this.#candidates.values()];
    for (const candidate of all) {
      candidate.signal('SIGTERM');
      candidate.signal('SIGCONT');
    }
    await waitUntil(() => all.every(({ hasEnded }) => hasEnded), endWithinMs);
    for (const candidate of all) candidate.signal('SIGKILL');
    await waitUntil(() => this.#living().length === 0, endWithinMs);
    const left = this.#living().length;
    this.killNow();
    return left;
  }

  /** At once and without waiting: for a process that is about to end. */
  killNow(): void {
    this.#ending = true;
    for (const candidate of this.#candidates.values()) candidate.signal('SIGKILL');
    for (const pid of this.#living()) send(pid, 'SIGKILL');
  }

  #living(): number[] {
    return processesOf(this.#log.path);
  }
}
