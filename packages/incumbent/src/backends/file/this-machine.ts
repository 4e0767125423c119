import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
} from 'node:fs';
import { hostname } from 'node:os';

/** What proofs of death are made of. All of it is synchronous and cheap. */
export interface Machine {
  /** Changes with every boot of the machine; '' where it is not known, and nothing can be proved. */
  readonly boot: string;
  /** In which process ids mean what they mean to us; '' where it is not known. */
  readonly pidNamespace: string;
  /** In which start times mean what they mean to us; '' where the kernel has no such thing. */
  readonly timeNamespace: string;
  /** False where one boot may have several ids. */
  readonly bootIsExact: boolean;
  /** True only if kill(2) says that there is no such process, or for -n no process in group n. */
  isAbsent(target: number): boolean;
  /** Undefined when it cannot be read. */
  process(pid: number): ProcessState | undefined;
  /** Whether `areSpent` can see who is in a session. */
  readonly hasSessions: boolean;
  /**
   * True only if each group has members, and nobody of these groups and sessions can act any more.
   * Costs a walk through all processes: to be asked last.
   */
  areSpent(groups: readonly number[], sessions: readonly number[]): boolean;
}

export interface ProcessState {
  /** In clock ticks since boot. */
  readonly startTime: string;
  /**
   * It has ended and only waits for its parent to take notice: a zombie whose threads have all
   * ended. Where process 1 is slow to reap orphans, or never does, the dead stay listed like this.
   */
  readonly isSpent: boolean;
}

function isAbsent(target: number): boolean {
  try {
    process.kill(target, 0);
    return false;
  } catch (error) {
    // EPERM: it exists and belongs to somebody else.
    return error instanceof Error && 'code' in error && error.code === 'ESRCH';
  }
}

/** As it is now: a process may be restored elsewhere. */
export function linuxMachine(): Machine {
  const pidNamespace = attempt(() => readlinkSync('/proc/self/ns/pid')) ?? '';
  const seesOwnPids = procShowsOwnNamespace();
  const mounts = attempt(() => readFileSync('/proc/self/mounts', 'latin1')) ?? '';
  const seesAll = seesOwnPids && procShowsEverybody(mounts);
  return {
    boot: attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()) ?? '',
    pidNamespace,
    timeNamespace: attempt(() => readlinkSync('/proc/self/ns/time')) ?? '',
    bootIsExact: true,
    isAbsent,
    process: (pid) => (seesOwnPids ? readProcess(pid) : undefined),
    hasSessions: true,
    areSpent: (groups, sessions) => seesAll && areSpent(groups, sessions),
  };
}

/**
 * Without /proc there are no start times and no namespaces: only an absent process is dead, and a
 * number that is in use again leaves a doubt. The host name stands for the boot, as macOS tells an
 * unprivileged program no boot id; a process of an earlier boot is dead if its number is not in use.
 */
export function darwinMachine(): Machine {
  return {
    boot: `darwin:${hostname()}`,
    pidNamespace: 'darwin',
    timeNamespace: '',
    bootIsExact: false,
    isAbsent,
    process: () => undefined,
    hasSessions: false,
    areSpent: () => false,
  };
}

/** Nothing can be proved. */
const otherMachine: Machine = {
  boot: '',
  pidNamespace: '',
  timeNamespace: '',
  bootIsExact: false,
  isAbsent: () => false,
  process: () => undefined,
  hasSessions: false,
  areSpent: () => false,
};

export function thisMachine(): Machine {
  if (process.platform === 'linux') return linuxMachine();
  return process.platform === 'darwin' ? darwinMachine() : otherMachine;
}

const statBuffer = Buffer.alloc(1024);

function readStat(pid: number | string): ProcessStat | undefined {
  try {
    const file = openSync(`/proc/${pid}/stat`, 'r');
    try {
      return parseStat(statBuffer.subarray(0, readSync(file, statBuffer, 0, 1024, 0)));
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
}

interface ProcessStat extends ProcessState {
  readonly group: number;
  readonly session: number;
}

function readProcess(pid: number): ProcessState | undefined {
  return readStat(pid);
}

/**
 * Fields of proc_pid_stat(5): state 3, process group 5, session 6, number of threads
 * 20, start time 22. Field 2
 * is the program's name in parentheses and may itself contain spaces and parentheses, but nothing
 * after it does.
 */
export function parseStat(stat: Buffer): ProcessStat | undefined {
  const afterName = stat.lastIndexOf(0x29);
  if (afterName < 0) return undefined;
  const fields = stat.toString('latin1', afterName + 2).split(' ', 21);
  const [state, group, session, threads, startTime] = [0, 2, 3, 17, 19].map(
    (index) => fields[index],
  );
  // Complete only if something follows it.
  if (startTime === undefined || !/^\d+$/.test(startTime) || fields.length <= 20) return undefined;
  // The leader of a thread group may be a zombie while other threads live on. 0 means that they
  // could not be counted, as when one of them becomes the leader by execve(2) just then.
  return {
    startTime,
    group: Number(group),
    session: Number(session),
    isSpent: state === 'Z' && Number(threads) === 1,
  };
}

/**
 * A walk through all processes takes a while, and a member that forks and ends again and again can
 * stay out of its sight: listed, but gone before it is looked at, with a child that was not listed.
 * So the walk counts only if no process was made on this machine meanwhile; where others fork much,
 * another try may meet a quiet moment.
 */
function areSpent(groups: readonly number[], sessions: readonly number[]): boolean {
  try {
    for (let tries = 0; tries < 3; tries += 1) {
      const forks = countForks();
      if (forks === undefined || !areMembersSpent(groups, sessions)) return false;
      if (countForks() === forks) return true;
    }
    return false;
  } catch {
    return false;
  }
}

function areMembersSpent(groups: readonly number[], sessions: readonly number[]): boolean {
  const unseen = new Set(groups);
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = readStat(name);
    if (stat === undefined) {
      // Reaped since it was listed, or not for us to know.
      if (existsSync(`/proc/${name}`)) return false;
      continue;
    }
    if (!groups.includes(stat.group) && !sessions.includes(stat.session)) continue;
    if (!stat.isSpent) return false;
    unseen.delete(stat.group);
  }
  return unseen.size === 0;
}

/** Processes and threads made since boot. The kernel counts one as it comes to light. */
function countForks(): string | undefined {
  const count = /^processes (\d+)$/m.exec(readFileSync('/proc/stat', 'latin1'))?.[1];
  // Kernels that only pretend to be Linux say 0 for ever.
  return count === '0' ? undefined : count;
}

/**
 * Mounted with `hidepid` or `subset=pid`, /proc leaves out some or all of what others run.
 * @param mounts `/proc/self/mounts`; of several mounts at one place the last one counts
 */
export function procShowsEverybody(mounts: string): boolean {
  const options = [...mounts.matchAll(/^\S+ \/proc proc (\S+)/gm)].at(-1)?.[1];
  return options !== undefined && !/\b(hidepid|subset)=/.test(options);
}

/**
 * A /proc that was mounted in another pid namespace (`unshare --pid` without `--mount-proc`) shows
 * other processes under our numbers. `NSpid` lists one number for each namespace from that of the
 * mount down to the process's own.
 */
function procShowsOwnNamespace(): boolean {
  const status = attempt(() => readFileSync('/proc/self/status', 'latin1')) ?? '';
  return /^NSpid:\t(.*)$/m.exec(status)?.[1] === String(process.pid);
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
