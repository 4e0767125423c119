import type { CandidateInfo } from '../../src/base/candidate.ts';
import { ClosedError } from '../../src/base/errors.ts';
import type { StoppableIterator } from '../../src/base/iterate.ts';
import { stoppable } from '../../src/base/iterate.ts';
import type { Election } from '../../src/core/election.ts';
import type { View } from '../../src/record/record.ts';

export function candidate(id: string, options: Partial<CandidateInfo> = {}): CandidateInfo {
  return { id, incarnation: `of ${id}`, addresses: [], metadata: {}, ...options };
}

export function ledBy(leader: CandidateInfo, token?: bigint): View {
  return { state: 'led', leader, sinceUnixMs: 0, ...(token === undefined ? {} : { token }) };
}

export function vacant(token?: bigint): View {
  return { state: 'vacant', sinceUnixMs: 0, ...(token === undefined ? {} : { token }) };
}

export const unknown: View = { state: 'unknown', sinceUnixMs: 0, error: new Error('no route') };

/** An election as those see it who only observe: the test says what. */
export class FakeElection {
  readonly name: string;
  /** Observations that were begun, and those that have not ended. */
  begun = 0;
  open = 0;
  /** Single looks, and their result. */
  looks = 0;
  look: () => Promise<View> = async () => {
    throw new Error('no look was expected');
  };
  #state: 'open' | 'closed' | Error = 'open';
  #view: View | undefined;
  readonly #changed = new EventTarget();

  constructor(name: string) {
    this.name = name;
  }

  get election(): Election {
    return this as unknown as Election;
  }

  show(view: View): void {
    this.#view = view;
    this.#changed.dispatchEvent(new Event('change'));
  }

  /** The handle is closed. */
  close(): void {
    this.#state = 'closed';
    this.#changed.dispatchEvent(new Event('change'));
  }

  /** Observations throw, from now on until `repair`. Those of real elections never do. */
  breakWith(error: Error): void {
    this.#state = error;
    this.#changed.dispatchEvent(new Event('change'));
  }

  repair(): void {
    this.#state = 'open';
  }

  observe(): StoppableIterator<View> {
    this.begun += 1;
    return stoppable((stop) => this.#views(stop));
  }

  leader(): Promise<View> {
    this.looks += 1;
    return this.look();
  }

  async *#views(stop: AbortSignal): AsyncGenerator<View, void, void> {
    this.open += 1;
    let told: View | undefined;
    try {
      for (;;) {
        if (stop.aborted) return;
        const state = this.#state;
        if (state instanceof Error) throw state;
        if (state === 'closed' && told === undefined) throw new ClosedError(this.name);
        if (state === 'closed') return;
        if (this.#view !== undefined && this.#view !== told) {
          told = this.#view;
          yield told;
          continue;
        }
        await new Promise<void>((resolve) => {
          const done = () => {
            this.#changed.removeEventListener('change', done);
            stop.removeEventListener('abort', done);
            resolve();
          };
          this.#changed.addEventListener('change', done);
          stop.addEventListener('abort', done);
        });
      }
    } finally {
      this.open -= 1;
    }
  }
}
