/** The calls that a server accepted in one term, so that they end with it. */
import type { Term } from '../../core/term.ts';

export interface CallOfTerm {
  /** True: the call goes on until one side ends it, so it might never end. */
  readonly isStream: boolean;
  /** Ends the call unless it has ended. */
  end(): void;
}

/** The pause between two looks at a term whose work does not stop. */
const shortestPauseMs = 10;

const terms = new WeakMap<Term, CallsOfTerm>();

/**
 * Streams end when the term is told to stop: they would keep its work from settling. Other calls
 * may finish while the term is still believed. They end when it is not.
 */
export class CallsOfTerm {
  readonly #term: Term;
  readonly #calls = new Set<CallOfTerm>();
  readonly #onEmpty: (() => void)[] = [];

  private constructor(term: Term) {
    this.#term = term;
    // One listener, however many calls there are.
    term.signal.addEventListener('abort', () => this.#stop(), { once: true });
  }

  static of(term: Term): CallsOfTerm {
    let calls = terms.get(term);
    if (calls === undefined) {
      calls = new CallsOfTerm(term);
      terms.set(term, calls);
    }
    return calls;
  }

  add(call: CallOfTerm): void {
    this.#calls.add(call);
  }

  delete(call: CallOfTerm): void {
    this.#calls.delete(call);
    if (this.#calls.size === 0) for (const tell of this.#onEmpty.splice(0)) tell();
  }

  /** Resolves when no call is left. */
  ended(): Promise<void> {
    if (this.#calls.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onEmpty.push(resolve));
  }

  #stop(): void {
    for (const call of [...this.#calls]) if (call.isStream) call.end();
    void this.#term.ended.then(() => this.#endAll());
    this.#endWithBelief();
  }

  /** Work that does not stop keeps `ended` from coming, but the belief ends all the same. */
  #endWithBelief(): void {
    if (!this.#term.isLeading()) this.#endAll();
    if (this.#calls.size === 0) return;
    const pauseMs = Math.max(shortestPauseMs, this.#term.remaining());
    setTimeout(() => this.#endWithBelief(), Math.min(pauseMs, 2 ** 31 - 1)).unref();
  }

  #endAll(): void {
    for (const call of [...this.#calls]) call.end();
  }
}

/**
 * Resolves when every call that was accepted in this term has its answer or its refusal. So the
 * seat is given back after that. Await it in the work, once `term.signal` has aborted. From then on
 * no call is accepted, and streams have been ended. Other calls end with the belief at the latest.
 * A handler whose call was ended from outside may still run.
 */
export function callsEnded(term: Term): Promise<void> {
  return CallsOfTerm.of(term).ended();
}
