import { constants, setPriority } from 'node:os';

/**
 * For `--background`: whoever started this program closes its standard input when nothing else is to be
 * disturbed any more.
 */
export function untilInputEnds(): AbortSignal {
  const end = new AbortController();
  const { stdin } = process;
  stdin.once('end', () => end.abort());
  stdin.once('error', () => end.abort());
  stdin.resume();
  // It does not keep the program alive.
  (stdin as { unref?(): void }).unref?.();
  return end.signal;
}

/** Linux does it for this thread alone, others for the whole process. */
export function runInBackground(): void {
  setPriority(constants.priority.PRIORITY_LOW);
}
