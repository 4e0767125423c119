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
  /**
   * True only if the group has members and none of them can act any more. Costs a walk through all
   * processes: to be asked last.
   */
  isGroupSpent(group: number): boolean;
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

/** Read once: none of it changes while a process lives. */
export function linuxMachine(): Machine {
  const pidNamespace = attempt(() => readlinkSync('/proc/self/ns/pid')) ?? '';
  const seesOwnPids = procShowsOwnNamespace();
  const seesAll = seesOwnPids && procShowsEverybody();
  return {
    boot: attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()) ?? '',
    pidNamespace,
    timeNamespace: attempt(() => readlinkSync('/proc/self/ns/time')) ?? '',
    bootIsExact: true,
    isAbsent,
    process: (pid) => (seesOwnPids ? readProcess(pid) : undefined),
    isGroupSpent: (group) => seesAll && isGroupSpent(group),
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
    isGroupSpent: () => false,
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
  isGroupSpent: () => false,
};

let cached: Machine | undefined;

export function thisMachine(): Machine {
  cached ??=
    process.platform === 'linux'
      ? linuxMachine()
      : process.platform === 'darwin'
        ? darwinMachine()
        : otherMachine;
  return cached;
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
}

function readProcess(pid: number): ProcessState | undefined {
  return readStat(pid);
}

/**
 * Fields of proc_pid_stat(5): state 3, process group 5, number of threads 20, start time 22. Field 2
 * is the program's name in parentheses and may itself contain spaces and parentheses, but nothing
 * after it does.
 */
export function parseStat(stat: Buffer): ProcessStat | undefined {
  const afterName = stat.lastIndexOf(0x29);
  if (afterName < 0) return undefined;
  const fields = stat.toString('latin1', afterName + 2).split(' ', 21);
  const [state, , group, threads, startTime] = [0, 1, 2, 17, 19].map((index) => fields[index]);
  // Complete only if something follows it.
  if (startTime === undefined || !/^\d+$/.test(startTime) || fields.length <= 20) return undefined;
  // The leader of a thread group may be a zombie while other threads live on. 0 means that they
  // could not be counted, as when one of them becomes the leader by execve(2) just then.
  return { startTime, group: Number(group), isSpent: state === 'Z' && Number(threads) === 1 };
}

/**
 * A walk through all processes takes a while, and a member that forks and ends again and again can
 * stay out of its sight: listed, but gone before it is looked at, with a child that was not listed.
 * So the walk counts only if no process was made on this machine meanwhile.
 */
function isGroupSpent(group: number): boolean {
  try {
    const forks = countForks();
    return forks !== undefined && areMembersSpent(group) && countForks() === forks;
  } catch {
    return false;
  }
}

function areMembersSpent(group: number): boolean {
  let members = 0;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = readStat(name);
    if (stat === undefined) {
      // Reaped since it was listed, or not for us to know.
      if (existsSync(`/proc/${name}`)) return false;
      continue;
    }
    if (stat.group !== group) continue;
    if (!stat.isSpent) return false;
    members += 1;
  }
  return members > 0;
}

/** Processes and threads made since boot. The kernel counts one as it comes to light. */
function countForks(): string | undefined {
  const count = /^processes (\d+)$/m.exec(readFileSync('/proc/stat', 'latin1'))?.[1];
  // Kernels that only pretend to be Linux say 0 for ever.
  return count === '0' ? undefined : count;
}

/** Mounted with `hidepid` or `subset=pid`, /proc leaves out some or all of what others run. */
function procShowsEverybody(): boolean {
  const mounts = attempt(() => readFileSync('/proc/self/mounts', 'latin1')) ?? '';
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
