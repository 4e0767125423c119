import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { UsageError } from '../failure.ts';

/** The shortest time of a check, and from one to the next, as the library's health gate has it. */
export const shortestCheckMs = 10;

/**
 * The shell takes a command without words for a success: a check or a fence that always passes.
 * @param option the option that has the value
 * @throws UsageError
 */
export function requireCommand(option: string, command: string, kinds = 'a command'): void {
  if (command.trim() === '') throw new UsageError(`${option} is empty: give ${kinds}`);
}

/** A command that ended with another code than 0, or by a signal. */
export class CommandFailedError extends Error {
  override readonly name: string = 'CommandFailedError';
  /** Null: a signal ended it. */
  readonly exitCode: number | null;

  constructor(message: string, exitCode: number | null) {
    super(message);
    this.exitCode = exitCode;
  }
}

/**
 * Kills the group of the command when fd 3 ends: its other end is ours alone, so we are dead. A command
 * that nobody bounds would have its effect much later. The watcher is no child of the command, which may
 * wait for all its children. So process 1 has to reap it, and in a container that may be us: then each
 * run leaves a zombie. That is too much for a check that runs every second.
 */
const untilWeEnd = '( (read -r line <&3; kill -KILL 0) & ) ; exec 3<&-; exec /bin/sh -c "$1"';

/**
 * Runs `command` with the shell, without output. Resolves when it ended with 0.
 * @param option the option that it was given with, for the error
 * @param endsWithUs it is killed when we are gone
 * @throws CommandFailedError, an error of the system; `signal` kills it with all that it started
 */
export function runShellCheck(
  option: string,
  command: string,
  env: Readonly<Record<string, string>>,
  cwd: string,
  signal: AbortSignal,
  endsWithUs = false,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(
      '/bin/sh',
      endsWithUs ? ['-c', untilWeEnd, 'sh', command] : ['-c', command],
      {
        env,
        cwd,
        stdio: endsWithUs ? ['ignore', 'ignore', 'ignore', 'pipe'] : 'ignore',
        // A group of its own, so that what it starts can be killed with it.
        detached: true,
      },
    );
    const kill = () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // Gone already.
      }
    };
    const pipe = child.stdio[3] as Socket | null | undefined;
    pipe?.on('error', () => {});
    signal.addEventListener('abort', kill, { once: true });
    child.once('error', reject);
    child.once('exit', (code, by) => {
      signal.removeEventListener('abort', kill);
      kill();
      pipe?.destroy();
      if (code === 0) resolve();
      else reject(new CommandFailedError(`${option} ${command}: ${by ?? exitWords(code)}`, code));
    });
  });
}

/** As the shell means them: a command that the shell could not start has checked nothing. */
function exitWords(code: number | null): string {
  const why =
    code === 127 ? ' (command not found)' : code === 126 ? ' (command cannot be executed)' : '';
  return `exit code ${code}${why}`;
}
