import type { Output } from '../context.ts';

const redrawEveryMs = 100;

/**
 * Draws the same lines in place, ten times a second. The last drawing stays on the terminal. The
 * cursor is shown again by `close`, and if that is never reached by `restore`.
 */
export class Screen {
  readonly #output: Output;
  readonly #draw: () => readonly string[];
  readonly #timer: NodeJS.Timeout;
  #rows = 0;

  constructor(output: Output, draw: () => readonly string[]) {
    this.#output = output;
    this.#draw = draw;
    output.write('\x1b[?25l');
    this.#redraw();
    this.#timer = setInterval(() => this.#redraw(), redrawEveryMs);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#redraw();
    this.restore();
  }

  restore(): void {
    this.#output.write('\x1b[?25h');
  }

  #redraw(): void {
    const lines = this.#draw();
    const up = this.#rows > 0 ? `\x1b[${this.#rows}A` : '';
    // Each line is cleared behind what is new, not before it: nothing flickers.
    this.#output.write(`\r${up}${lines.map((line) => `${line}\x1b[K\n`).join('')}\x1b[J`);
    this.#rows = lines.length;
  }
}
