import type { ChildProcess } from 'node:child_process';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import process from 'node:process';
import { ServerUnavailableError } from './errors.ts';

/** One run of a server: a process that does not outlive this one. */
export interface Child {
  readonly pid: number;
  readonly alive: boolean;
  /** Resolves when the process is gone, with the signal or code that ended it. */
  readonly ended: Promise<string>;
  send(signal: 'SIGTERM' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void;
}

export interface ChildPlan {
  readonly program: string;
  readonly arguments: readonly string[];
  readonly directory: string;
  /** Both outputs are appended to this file. A pipe would block the server if it is not read. */
  readonly logPath: string;
  /** Removed with the process when this process dies first. */
  readonly temporaryDirectory: string;
  /** The user that it runs as. Default: that of this process. Another user needs root. */
  readonly user?: { readonly uid: number; readonly gid: number };
}

/** @throws ServerUnavailableError when the program cannot be started */
export async function spawnChild(plan: ChildPlan): Promise<Child> {
  const log = openSync(plan.logPath, 'a');
  const child = spawn(plan.program, plan.arguments, {
    cwd: plan.directory,
    stdio: ['ignore', log, log],
    ...plan.user,
  });
  closeSync(log);
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  try {
    await once(child, 'spawn');
  } catch (cause) {
    throw new ServerUnavailableError(`${plan.program} cannot be started`, { cause });
  }
  child.on('error', () => {}); // a signal to a process that has just ended
  endWithThisProcess(child, plan.temporaryDirectory);
  return {
    pid: child.pid as number,
    get alive() {
      return child.exitCode === null && child.signalCode === null;
    },
    ended,
    send: (signal) => child.kill(signal),
  };
}

/**
 * Whether no thread of a process that was sent SIGSTOP runs any more. When the signal has been sent
 * it is only on its way: until it arrives a server may still answer.
 */
export function isStopped(pid: number): boolean {
  if (process.platform !== 'linux') {
    const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
    return stdout.trim().startsWith('T');
  }
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads.every((id) =>
      // `pid (name) state …`, and the name may hold anything.
      /^ [Tt]/.test(readFileSync(`/proc/${pid}/task/${id}/stat`, 'latin1').replace(/^.*\)/s, '')),
    );
  } catch {
    return false; // a thread or the whole process has just ended
  }
}

const running = new Map<ChildProcess, string>();

/** SIGKILL, because a process in SIGSTOP ignores everything else. */
function killAll(): void {
  for (const [child, directory] of running) {
    child.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true, maxRetries: 2 });
  }
}

/**
 * The exit hook does not run when a signal ends this process. So each server also has a shell
 * beside it that waits for the end of its input. That comes with the end of this process, however
 * it ends.
 */
function endWithThisProcess(child: ChildProcess, directory: string): void {
  if (running.size === 0) process.on('exit', killAll);
  running.set(child, directory);
  const script = 'read -r line; kill -KILL "$1"; rm -rf "$2"';
  const watcher = spawn('/bin/sh', ['-c', script, 'sh', String(child.pid), directory], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // a Ctrl-C at the terminal must not end it before its work
    cwd: '/',
  });
  watcher.on('error', () => {}); // no shell: the exit hook is what remains
  watcher.stdin.on('error', () => {});
  watcher.unref();
  (watcher.stdin as unknown as { unref(): void }).unref();
  child.once('exit', () => {
    watcher.kill('SIGKILL'); // before the number of the process can be given to another one
    running.delete(child);
    if (running.size === 0) process.off('exit', killAll);
  });
}
