import { createRequire } from 'node:module';
import { guardFile } from './guard-file.ts';
import { monotonicMs } from './protocol.ts';

// When the guard is lost, we do the same to a group as the guard, and on Linux to the session of
// that number.
interface GuardModule {
  signalGroup(group: number, name: NodeJS.Signals): void;
  groupIsGone(group: number, lookForZombies: boolean): boolean;
}
const guardModule = createRequire(import.meta.url)(guardFile) as GuardModule;

export const signalGroup: GuardModule['signalGroup'] = guardModule.signalGroup;
export const groupIsGone: GuardModule['groupIsGone'] = guardModule.groupIsGone;

/**
 * KILLs the group, with its session, and resolves when none of its processes can act. Has no bound
 * in time.
 */
export async function killGroup(group: number): Promise<void> {
  signalGroup(group, 'SIGKILL');
  for (let delayMs = 1; !groupIsGone(group, delayMs > 2); delayMs = Math.min(2 * delayMs, 200)) {
    const askedMs = monotonicMs();
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    // Once more, for a fork that was under way. Not after a stall: by then another group may have
    // the number.
    if (monotonicMs() - askedMs < delayMs + 1_000) signalGroup(group, 'SIGKILL');
  }
}
