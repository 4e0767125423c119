import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { groupIsGone } from '../guard/group.ts';

/**
 * Sends a signal; a process that does not exist is no error. A negative number is a process group.
 */
export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/**
 * No process of the group can act any more. Zombies count as gone: process 1 may take its time to
 * reap them.
 */
export function isGroupGone(group: number): boolean {
  return groupIsGone(group, true);
}

/**
 * The processes of a group that can still act, as `pid command`: for a report. Where there is no
 * /proc, `isGroupGone` has to do, and the report is the number of the group.
 */
export function livingOf(group: number): readonly string[] {
  if (isGroupGone(group)) return [];
  if (process.platform !== 'linux') return [`group ${group}`];
  // `isGroupGone` takes any doubt for a no, such as one process that ended while it looked.
  return readdirSync('/proc')
    .filter(isNumber)
    .filter((pid) => {
      const [state, , pgrp] = statusOf(Number(pid));
      return Number(pgrp) === group && state !== 'Z' && state !== 'X';
    })
    .map((pid) => `${pid} ${readOf(Number(pid), 'cmdline').replaceAll('\0', ' ').slice(0, 80)}`);
}

/** The environment that all processes of a trial have, guards included, by the log they have. */
export function markOf(log: string): { readonly INCUMBENT_TRIAL: string } {
  return { INCUMBENT_TRIAL: log };
}

/** The processes of a trial that can still act. Elsewhere than on Linux it misses the guards. */
export function processesOf(log: string): number[] {
  if (process.platform !== 'linux') {
    const output = execFileSync('ps', ['-A', '-o', 'pid=,args='], { encoding: 'utf8' });
    const lines = output.split('\n').filter((line) => line.includes(log));
    return lines.map((line) => Number.parseInt(line, 10));
  }
  const mark = `INCUMBENT_TRIAL=${markOf(log).INCUMBENT_TRIAL}`;
  // A zombie has no environment any more.
  return readdirSync('/proc')
    .filter(isNumber)
    .map(Number)
    .filter((pid) => readOf(pid, 'environ').split('\0').includes(mark));
}

/** The processes that `parent` started and that have not been reaped. */
export function childrenOf(parent: number): number[] {
  const children: number[] = [];
  for (const [pid, ppid] of process.platform === 'linux' ? procParents() : psParents()) {
    if (ppid === parent) children.push(pid);
  }
  return children;
}

function* procParents(): Generator<[pid: number, ppid: number]> {
  for (const pid of readdirSync('/proc').filter(isNumber).map(Number)) {
    yield [pid, Number(statusOf(pid)[1])];
  }
}

/** state, ppid, pgrp and so on; empty for a process that has ended meanwhile. */
function statusOf(pid: number): string[] {
  // pid (name) state ppid ...: proc(5). The name may contain anything.
  const stat = readOf(pid, 'stat');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function* psParents(): Generator<[pid: number, ppid: number]> {
  const output = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  for (const line of output.split('\n')) {
    const [pid, ppid] = line.trim().split(/\s+/).map(Number);
    if (pid !== undefined && ppid !== undefined) yield [pid, ppid];
  }
}

function isNumber(name: string): boolean {
  return /^\d+$/.test(name);
}

/** Empty when the process has ended meanwhile, or is another user's. */
function readOf(pid: number, file: 'cmdline' | 'environ' | 'stat'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}
