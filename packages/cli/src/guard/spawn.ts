import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { guardFile } from './guard-file.ts';
import { withoutNodeVariables } from './node-variables.ts';

// The guard never does much: no compilers beyond the interpreter, no room for garbage to pile up.
// These are V8's flags and may vanish with any Node, so only versions that were tried get them.
const smallMemory: readonly string[] =
  Number.parseInt(process.versions.node, 10) <= 26
    ? ['--no-opt', '--no-maglev', '--no-sparkplug', '--max-semi-space-size=1']
    : [];

/**
 * The process of a guard that no `Guard` speaks to yet. It holds nothing until it has been told its
 * margins. It ends when `discard` is called, and when this process ends.
 */
export class GuardProcess {
  readonly child: ChildProcess;
  #isTaken = false;

  /** Imports little, so that Node starts for the guard while this process reads its own code. */
  constructor(stdin: boolean) {
    keepOutputBlocking();
    this.child = spawn(process.execPath, [...smallMemory, guardFile, String(process.pid)], {
      // A session of its own: a terminal's Ctrl-C or Ctrl-Z is for us.
      detached: true,
      stdio: [stdin ? 'inherit' : 'ignore', 'inherit', 'inherit', 'pipe', 'pipe'],
      cwd: '/',
      env: withoutNodeVariables(process.env),
    });
    this.child.on('error', () => {});
    for (const pipe of this.child.stdio.slice(3)) pipe?.on('error', () => {});
  }

  /** @returns undefined when it was taken before, or has ended: the caller needs another one */
  take(): ChildProcess | undefined {
    const { child } = this;
    const isAlive = child.pid !== undefined && child.exitCode === null && child.signalCode === null;
    if (this.#isTaken || !isAlive) return undefined;
    this.#isTaken = true;
    return child;
  }

  /** Ends the guard if it was not taken, and resolves when it is gone. It has no program. */
  async discard(): Promise<void> {
    const child = this.take();
    if (child === undefined) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    for (const pipe of child.stdio.slice(3)) pipe?.destroy();
    await gone;
  }
}

/**
 * Node makes a pipe on fd 1 or 2 non-blocking when process.stdout or process.stderr is first looked
 * at. Every socket looks at the latter when it is destroyed. The program has the same pipe open,
 * and would lose output once it is full. So we look before there is a program: each spawn then
 * makes them blocking again, for good.
 */
function keepOutputBlocking(): void {
  void [process.stdout, process.stderr];
}
