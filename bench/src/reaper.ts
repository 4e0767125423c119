import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import type { Writable } from 'node:stream';

/**
 * Kills what is left and removes the files, however we end. A shell in a session of its own reads
 * the numbers of our processes from a pipe. It does its work when the pipe ends, also after Ctrl-C
 * and after a SIGKILL of ours. The guards of `incumbent run` end what it started.
 */
export class Reaper {
  readonly #child: ChildProcess;
  readonly #pipe: Writable;
  readonly #ended: Promise<unknown>;

  constructor(directory: string) {
    this.#child = spawn('/bin/sh', ['-c', script, 'reaper', directory], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.#pipe = this.#child.stdin as Writable;
    this.#pipe.on('error', () => {});
    this.#ended = new Promise((resolve) => {
      this.#child.once('error', resolve);
      this.#child.once('exit', resolve);
    });
    // It waits for our end and must not keep us from it.
    this.#child.unref();
  }

  watch(child: ChildProcess): void {
    const { pid } = child;
    if (pid === undefined) return;
    this.#pipe.write(`+ ${pid}\n`);
    child.once('exit', () => this.#pipe.write(`- ${pid}\n`));
  }

  /** Resolves when its work is done. */
  async close(): Promise<void> {
    this.#child.ref();
    this.#pipe.end();
    await this.#ended;
  }
}

// Twice, because the killed may write a last time.
const script = `
left=' '
while read -r what pid; do
  case $what in
    +) left="$left$pid " ;;
    -) left="\${left%% $pid *} \${left#* $pid }" ;;
  esac
done
for pid in $left; do kill -KILL "$pid"; done
rm -rf "$1"
sleep 0.2
rm -rf "$1"
`;
