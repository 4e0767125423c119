import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import type { Surroundings } from '../surroundings.ts';

/** A Node process that loads nothing and does nothing. */
export class EmptyProcess {
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;

  constructor(surroundings: Surroundings) {
    this.#child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1 << 30)'], {
      detached: true,
      stdio: 'ignore',
    });
    if (this.#child.pid === undefined) throw new Error('no Node process could be started');
    this.pid = this.#child.pid;
    surroundings.reaper.watch(this.#child);
    this.#ended = new Promise((resolve) => {
      this.#child.once('exit', () => resolve());
    });
  }

  /** SIGKILL; resolves when it is gone. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }
}
