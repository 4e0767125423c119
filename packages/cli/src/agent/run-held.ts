import type { ProgramExit, ProgramSpec } from '../guard/index.ts';
import type { GuardKeeper } from '../run/guard-keeper.ts';
import { runGuarded } from '../run/leadership.ts';
import { killMs } from './bounds.ts';

/** A command that has got KILL, and does not end. */
export class StuckError extends Error {
  override readonly name: string = 'StuckError';
}

/**
 * Runs a command under the guard, as `runGuarded` does. A process of another user, such as one of
 * `sudo`, does not die of our KILL. Nothing waits for it longer: it is left to its guard, and the next
 * command gets another one.
 * @param signal kills it
 * @throws StuckError; GuardError when it could not be started
 */
export async function runHeld(
  keeper: Pick<GuardKeeper, 'get' | 'replace'>,
  spec: ProgramSpec,
  signal: AbortSignal,
  afterMs: number = killMs,
): Promise<ProgramExit> {
  const running = runGuarded(keeper, spec, signal);
  running.catch(() => {});
  let timer: NodeJS.Timeout | undefined;
  let begin: () => void = () => {};
  const stuck = new Promise<never>((_, reject) => {
    const giveUp = () => {
      keeper.replace();
      reject(new StuckError('a process of the command does not die of KILL'));
    };
    begin = () => {
      timer = setTimeout(giveUp, afterMs);
    };
    signal.addEventListener('abort', begin, { once: true });
  });
  try {
    return await Promise.race([running, stuck]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', begin);
  }
}
