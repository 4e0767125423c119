import { checkTimeout } from './arguments.ts';
import type { Clock } from './clock.ts';
import { ClosedError, ConnectError, SessionError } from './errors.ts';
import { onAbort } from './on-abort.ts';
import type { Session } from './session/session.ts';
import type { State } from './state.ts';
import type { StateListeners } from './state-listeners.ts';

/** The objects that the wait looks at. */
interface Watched {
  readonly session: Session;
  readonly listeners: StateListeners;
  readonly clock: Clock;
  /** For the error. */
  readonly hosts: string;
}

interface Bounds {
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number;
  /** Whether an expired session ends the wait. Otherwise the next session is waited for. */
  readonly rejectExpired: boolean;
}

/** Waits until requests can be sent. Rejects if they never will be, and when a limit is reached. */
export async function untilConnected(
  { session, listeners, clock, hosts }: Watched,
  { signal, timeoutMs, rejectExpired }: Bounds,
): Promise<void> {
  checkTimeout('timeoutMs', timeoutMs);
  signal?.throwIfAborted();
  if (isReady(session.toldState)) return;
  await new Promise<void>((resolve, reject) => {
    const finish = (settle: () => void) => {
      stopListening();
      timer.cancel();
      stopWaiting();
      settle();
    };
    const stopWaiting = onAbort(signal, () => finish(() => reject(signal?.reason)));
    const timer = clock.setTimer(() => {
      const { lastError } = session;
      finish(() => reject(new ConnectError(hosts, timeoutMs, lastError)));
    }, timeoutMs);
    const judge = ({ state, error }: { state: State; error?: Error | undefined }) => {
      if (isReady(state)) finish(resolve);
      else if (state === 'closed') finish(() => reject(new ClosedError()));
      else if (state === 'auth-failed') finish(() => reject(error ?? session.refusal({})));
      else if (state === 'expired' && rejectExpired) {
        const why = 'the session to attach to has expired';
        finish(() => reject(new SessionError('SESSION_EXPIRED', why, { cause: error })));
      }
    };
    const stopListening = listeners.add(judge);
    const state = session.toldState;
    if (state === 'closed' || state === 'auth-failed') judge({ state });
  });
}

function isReady(state: State): boolean {
  return state === 'connected' || state === 'read-only';
}
