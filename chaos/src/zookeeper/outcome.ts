import {
  ConnectionLossError,
  RequestTimeoutError,
  SessionError,
  ZooKeeperError,
} from '@incumbent/zookeeper';

/** How a call ended. */
export type Outcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: unknown };

/** The knowledge of a writer: it happened; it did not and never will; it may have, or may still. */
export type Fate = 'done' | 'refused' | 'in doubt';

export function fateOf(outcome: Outcome<unknown>): Fate {
  if (outcome.ok) return 'done';
  const { error } = outcome;
  if (error instanceof ConnectionLossError || error instanceof RequestTimeoutError) {
    return error.maybeApplied ? 'in doubt' : 'refused';
  }
  // An aborted call rejects with the reason of its signal, whatever had been sent.
  return error instanceof ZooKeeperError ? 'refused' : 'in doubt';
}

/** True for errors that the faults may cause in any call, and that are not the call's own. */
export function isTrouble(error: unknown): boolean {
  return (
    error instanceof ConnectionLossError ||
    error instanceof RequestTimeoutError ||
    (error instanceof SessionError && error.code === 'SESSION_EXPIRED')
  );
}

export function describe(error: unknown): string {
  if (error instanceof ZooKeeperError) return `${error.name} ${error.code}: ${error.message}`;
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
