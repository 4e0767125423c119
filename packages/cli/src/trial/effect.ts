/**
 * The format of the fenced log, which is append-only. Each line is one effect:
 *
 *     TOKEN CANDIDATE GROUP PID NANOSECONDS KIND
 *
 * Each line is one write(2) to a file opened with O_APPEND. So lines are whole, and they stand in
 * the order in which the effects happened.
 */
export interface Effect {
  readonly token: bigint;
  /** Id of the candidate; no white space. */
  readonly candidate: string;
  /** Process group of the program: stands for one start of it. */
  readonly group: number;
  /** The writer: the program itself or a process that it started. */
  readonly pid: number;
  /** CLOCK_MONOTONIC just before the write. All processes of a machine share it. */
  readonly atNs: bigint;
  readonly kind: 'start' | 'beat' | 'stop';
}

const pattern = /^(\d+) (\S+) (\d+) (\d+) (\d+) (start|beat|stop)$/;

export function formatEffect({ token, candidate, group, pid, atNs, kind }: Effect): string {
  return `${token} ${candidate} ${group} ${pid} ${atNs} ${kind}\n`;
}

/** @param line without its line break; undefined: it is no effect */
export function parseEffect(line: string): Effect | undefined {
  const match = pattern.exec(line);
  if (match === null) return undefined;
  const [, token = '', candidate = '', group, pid, atNs = '', kind] = match;
  return {
    token: BigInt(token),
    candidate,
    group: Number(group),
    pid: Number(pid),
    atNs: BigInt(atNs),
    kind: kind as Effect['kind'],
  };
}
