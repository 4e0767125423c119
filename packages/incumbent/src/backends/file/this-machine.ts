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

/** Facts for proofs of death. All of them are read synchronously, and are cheap. */
export interface Machine {
  /**
   * Changes with every boot of the machine. '' where it is not known, and nothing can be proved.
   */
  readonly boot: string;
  /** The namespace in which process ids mean the same as to us. '' where it is not known. */
  readonly pidNamespace: string;
  /** The namespace in which start times mean the same as to us. '' where the kernel has none. */
  readonly timeNamespace: string;
  /** False where one boot may have several ids. */
  readonly bootIsExact: boolean;
  /** True only if kill(2) says that there is no such process, or for -n no process in group n. */
  isAbsent(target: number): boolean;
  /** Undefined when it cannot be read. */
  process(pid: number): ProcessState | undefined;
  /** True when `areSpent` can see which processes are in a session. */
  readonly hasSessions: boolean;
  /**
   * True only if each group has members, and no process of these groups and sessions can act any
   * more. Costs a walk through all processes, so ask it last.
   */
  areSpent(groups: readonly number[], sessions: readonly number[]): boolean;
}

export interface ProcessState {
  /** In clock ticks since boot. */
  readonly startTime: string;
  /**
   * The process has ended and only waits for its parent to take notice: a zombie whose threads have
   * all ended. Where process 1 reaps orphans slowly, or never, the dead stay listed like this.
   */
  readonly isSpent: boolean;
}

function isAbsent(target: number): boolean {
  try {
    process.kill(target, 0);
    return false;
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
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
 * Without /proc there are no start times and no namespaces. Only an absent process is dead, and a
 * number that is in use again leaves a doubt. The host name stands for the boot, because macOS
 * tells an unprivileged program no boot id. A process of an earlier boot is dead if its number is
 * not in use.
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
 * Fields of proc_pid_stat(5): state 3, process group 5, session 6, number of threads 20, start time
 * 22. Field 2 is the program's name in parentheses. It may itself contain spaces and parentheses,
 * but nothing after it does.
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
  // The leader of a thread group may be a zombie while other threads live on. A count of 0 means
  // that they could not be counted. One of them may become the leader by execve(2) just then.
  return {
    startTime,
    group: Number(group),
    session: Number(session),
    isSpent: state === 'Z' && Number(threads) === 1,
  };
}

/**
 * A walk through all processes takes a while. A member that forks and ends again and again can stay
 * out of its sight. It is listed, but gone before it is looked at, with a child that was not
 * listed. So the walk counts only if no process was made on this machine meanwhile. Where others
 * fork much, another try may meet a quiet moment.
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
      // Reaped since it was listed, or we must not read it.
      if (existsSync(`/proc/${name}`)) return false;
      continue;
    }
    if (!groups.includes(stat.group) && !sessions.includes(stat.session)) continue;
    if (!stat.isSpent) return false;
    unseen.delete(stat.group);
  }
  return unseen.size === 0;
}

/** Processes and threads made since boot. The kernel counts a process when it becomes visible. */
function countForks(): string | undefined {
  const count = /^processes (\d+)$/m.exec(readFileSync('/proc/stat', 'latin1'))?.[1];
  // Kernels that only pretend to be Linux say 0 for ever.
  return count === '0' ? undefined : count;
}

/**
 * True unless /proc is mounted with `hidepid` or `subset=pid`. Then it leaves out some or all
 * processes of other users.
 * @param mounts `/proc/self/mounts`. Of several mounts at one place the last one counts
 */
export function procShowsEverybody(mounts: string): boolean {
  const options = [...mounts.matchAll(/^\S+ \/proc proc (\S+)/gm)].at(-1)?.[1];
  return options !== undefined && !/\b(hidepid|subset)=/.test(options);
}

/**
 * A /proc that was mounted in another pid namespace (`unshare --pid` without `--mount-proc`) shows
 * other processes under our numbers. `NSpid` lists one number for each namespace, from that of the
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
