import type { Output } from './host.ts';

/** How often the line is written anew. */
const periodMs = 100;

/** A line on a terminal that is rewritten again and again, and erased at the end. */
export class Progress {
  readonly #output: Output;
  readonly #nowMs: () => number;
  #shownAtMs: number;
  #isShown = false;

  /** @param output nothing is written unless it is a terminal */
  constructor(output: Output, nowMs: () => number = () => performance.now()) {
    this.#output = output;
    this.#nowMs = nowMs;
    // A quick command needs no progress.
    this.#shownAtMs = nowMs();
  }

  update(text: string): void {
    if (this.#output.isTTY !== true) return;
    const nowMs = this.#nowMs();
    if (nowMs - this.#shownAtMs < periodMs) return;
    this.#shownAtMs = nowMs;
    this.#isShown = true;
    this.#output.write(`\r${text}`);
  }

  /** The next output takes its place. */
  end(): void {
    if (this.#isShown) this.#output.write('\r\u001b[K');
    this.#isShown = false;
  }
}
