import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { groupIsGone } from '../guard/group.ts';

/** Sends a signal; that nobody is there is not an error. A negative number is a process group. */
export function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/**
 * Nobody of a process group can act any more. Zombies count as gone: process 1 may take its time to
 * reap them.
 */
export function isGroupGone(group: number): boolean {
  return groupIsGone(group, true);
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
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    let stat: string;
    try {
      stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    } catch {
      // It ended meanwhile.
      continue;
    }
    // pid (name) state ppid ...: proc(5). The name may contain anything.
    yield [Number(pid), Number(stat.slice(stat.lastIndexOf(')') + 4).split(' ', 1)[0])];
  }
}

function* psParents(): Generator<[pid: number, ppid: number]> {
  const output = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  for (const line of output.split('\n')) {
    const [pid, ppid] = line.trim().split(/\s+/).map(Number);
    if (pid !== undefined && ppid !== undefined) yield [pid, ppid];
  }
}
