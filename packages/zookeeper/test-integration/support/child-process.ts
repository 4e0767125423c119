import type { ChildProcessByStdio } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { soon, until } from './waiting.ts';

type Line = Readonly<Record<string, unknown>>;

/** A process of ours that prints lines of JSON. */
export class TestChild implements AsyncDisposable {
  /** All lines so far. */
  readonly said: Line[] = [];
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;

  /** @param script a file beside this one; it uses the built package */
  constructor(script: string, args: readonly string[]) {
    const path = fileURLToPath(new URL(script, import.meta.url));
    this.#child = spawn(process.execPath, [path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdin.on('error', () => {});
    this.ended = once(this.#child, 'exit').then(([code]) => code as number | null);
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      this.said.push(JSON.parse(line) as Line);
    });
    process.once('exit', this.#kill);
  }

  async says(key: string): Promise<Line> {
    await until(`the child says ${key}`, () => {
      if (this.#child.exitCode !== null) throw new Error(`it ended: ${JSON.stringify(this.said)}`);
      return this.said.some((line) => key in line);
    });
    return this.said.find((line) => key in line) as Line;
  }

  tell(line: string): void {
    this.#child.stdin.write(`${line}\n`);
  }

  /** Resolves when the process is frozen. */
  async freeze(): Promise<void> {
    this.#child.kill('SIGSTOP');
    await until('the child stands still', () => {
      const stat = readFileSync(`/proc/${this.#child.pid}/stat`, 'utf8');
      return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T');
    });
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  readonly #kill: () => void = () => this.#child.kill('SIGKILL');

  async [Symbol.asyncDispose](): Promise<void> {
    process.off('exit', this.#kill);
    this.#kill();
    await soon(this.ended, 'the child ends');
  }
}
