import type { Reader } from './socket.ts';

interface Waiting {
  readonly run: () => void;
  readonly isUrgent: boolean;
}

/**
 * The tasks of one process, in their times: one thing after the other, and nothing while it stands
 * still.
 */
export class EventLoop implements Reader {
  /** For tasks that run even while the process looks at nothing else. */
  readonly urgent: Reader;
  readonly #answers: () => boolean;
  #waiting: Waiting[] = [];
  #isStopped = false;
  #isHeld = false;
  #isDead = false;

  /** @param answers whether its machine says that a connection is gone */
  constructor(answers: () => boolean) {
    this.#answers = answers;
    this.urgent = {
      read: (run) => this.#take({ run, isUrgent: true }),
      get answers() {
        return answers();
      },
    };
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  get answers(): boolean {
    return this.#answers();
  }

  read(run: () => void): void {
    this.#take({ run, isUrgent: false });
  }

  /** SIGSTOP. */
  stop(): void {
    this.#isStopped = true;
  }

  /** SIGCONT: everything that has waited runs. */
  go(): void {
    this.#isStopped = false;
    this.#drain();
  }

  /** It waits for one thing, and looks at nothing else. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    this.#drain();
  }

  end(): void {
    this.#isDead = true;
    this.#waiting = [];
  }

  #take(waiting: Waiting): void {
    if (this.#isDead) return;
    const mayRun = !this.#isStopped && (!this.#isHeld || waiting.isUrgent);
    if (mayRun) waiting.run();
    else this.#waiting.push(waiting);
  }

  #drain(): void {
    while (!this.#isStopped && !this.#isDead) {
      const next = this.#waiting.findIndex(({ isUrgent }) => isUrgent || !this.#isHeld);
      if (next < 0) return;
      const [waiting] = this.#waiting.splice(next, 1);
      waiting?.run();
    }
  }
}
