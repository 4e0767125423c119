import { execFileSync } from 'node:child_process';
import { statfsSync } from 'node:fs';
import { cpus, loadavg, release, totalmem, type } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** The machine of the figures: without it they mean nothing. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly node: string;
  /** Where the file store was, or the servers' data. */
  readonly fileSystem: string;
  readonly commit: string;
  readonly startedAt: string;
  /** Of the last minute, as we started. */
  readonly load: number;
}

/** Above this the figures contain the work of other programs. */
const quietLoadPerCore = 0.5;
/** The load is a mean of the last minute, so what has just ended is in it for about so long. */
const longestRestMs = 180_000;

/** Waits for the machine to come to rest, so that the work of another subject is not told as ours. */
export async function rest(progress: (text: string) => void): Promise<void> {
  const isBusy = () => (loadavg()[0] ?? 0) > quietLoadPerCore * cpus().length;
  if (!isBusy()) return;
  progress(`waits up to ${longestRestMs / 60_000} minutes for the machine to come to rest`);
  const endMs = performance.now() + longestRestMs;
  while (isBusy() && performance.now() < endMs) await sleep(1_000);
}

export function describeMachine(directory: string): Machine {
  const cores = cpus();
  return {
    cpu: cores[0]?.model.trim() ?? 'unknown',
    cores: cores.length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: `${type()} ${release()}`,
    node: process.version,
    fileSystem: fileSystemOf(directory),
    commit: commit(),
    startedAt: new Date().toISOString(),
    load: loadavg()[0] ?? 0,
  };
}

/**
 * @param stored what is on its file system
 * @param loadAtEnd of the last minute, where the end is known already
 */
export function machineLines(machine: Machine, stored: string, loadAtEnd?: number): string[] {
  const { cpu, cores, memoryGiB, kernel, node, fileSystem, commit, startedAt, load } = machine;
  const end = loadAtEnd === undefined ? '' : `, ${loadAtEnd.toFixed(2)} at the end`;
  return [
    `${cores} × ${cpu}, ${memoryGiB} GiB, ${kernel}, Node ${node}, ${stored} on ${fileSystem}`,
    `commit ${commit}, ${startedAt.slice(0, 16).replace('T', ' ')} UTC, load ${load.toFixed(2)}${end}`,
  ];
}

/** Undefined on a machine that was quiet when we started. */
export function loadWarning({ load, cores }: Machine): string | undefined {
  if (load <= quietLoadPerCore * cores) return undefined;
  return (
    `the load is ${load.toFixed(2)} on ${cores} cores, above ${quietLoadPerCore} a core. ` +
    'Others are at work: these figures are worth little.'
  );
}

function fileSystemOf(directory: string): string {
  const { type: magic } = statfsSync(directory);
  const names: Readonly<Record<number, string>> = {
    61267: 'ext4',
    1481003842: 'xfs',
    2435016766: 'btrfs',
    801189825: 'zfs',
    2035054128: 'overlay',
    16914836: 'tmpfs (nothing is synced to a disk)',
    26: 'apfs',
  };
  return names[magic] ?? `type 0x${magic.toString(16)}`;
}

function commit(): string {
  try {
    const hash = git('rev-parse', '--short', 'HEAD');
    return git('status', '--porcelain', '--', 'packages') === '' ? hash : `${hash} with changes`;
  } catch {
    return 'unknown';
  }
}

function git(...args: readonly string[]): string {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const output = execFileSync('git', args, { cwd: root, stdio: ['ignore', 'pipe', 'ignore'] });
  return output.toString().trim();
}
