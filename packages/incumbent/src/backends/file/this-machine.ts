import { closeSync, openSync, readFileSync, readlinkSync, readSync } from 'node:fs';
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
  /** In clock ticks since boot; undefined when it cannot be read. */
  startTime(pid: number): string | undefined;
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
  return {
    boot: attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()) ?? '',
    pidNamespace,
    timeNamespace: attempt(() => readlinkSync('/proc/self/ns/time')) ?? '',
    bootIsExact: true,
    isAbsent,
    startTime: (pid) => (seesOwnPids ? readStartTime(pid) : undefined),
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
    startTime: () => undefined,
  };
}

/** Nothing can be proved. */
const otherMachine: Machine = {
  boot: '',
  pidNamespace: '',
  timeNamespace: '',
  bootIsExact: false,
  isAbsent: () => false,
  startTime: () => undefined,
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

function readStartTime(pid: number): string | undefined {
  try {
    const file = openSync(`/proc/${pid}/stat`, 'r');
    try {
      return startTimeIn(statBuffer.subarray(0, readSync(file, statBuffer, 0, 1024, 0)));
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
}

/**
 * Field 22 of proc_pid_stat(5). Field 2 is the program's name in parentheses and may itself contain
 * spaces and parentheses, but nothing after it does.
 */
export function startTimeIn(stat: Buffer): string | undefined {
  const afterName = stat.lastIndexOf(0x29);
  if (afterName < 0) return undefined;
  const fields = stat.toString('latin1', afterName + 2).split(' ', 21);
  const startTime = fields[19];
  // Complete only if something follows it.
  return startTime !== undefined && /^\d+$/.test(startTime) && fields.length > 20
    ? startTime
    : undefined;
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
