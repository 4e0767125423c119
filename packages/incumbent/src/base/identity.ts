/**
 * What tells one process from another. Nothing here is drawn when the module is loaded, or kept: a
 * copy of the process would have it too (docs/design/identity-and-names.md).
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { startupSnapshot } from 'node:v8';
import { isMainThread, threadId } from 'node:worker_threads';
import { MisuseError } from './errors.ts';

/**
 * Unique for ever: nonces. A copy of a process (CRIU, a clone of a machine) has the state of the
 * random generator too, and would draw the same bytes next. So the clock is mixed in: two copies
 * do not read it in the same nanosecond.
 */
export function uniqueId(): string {
  const bytes = randomBytes(12);
  bytes.writeBigUInt64LE(bytes.readBigUInt64LE() ^ process.hrtime.bigint());
  return bytes.toString('base64url');
}

/** Threads share the process id, and are candidates of their own. */
export function defaultId(): string {
  const ofProcess = `${hostname()}-${process.pid}`;
  return isMainThread ? ofProcess : `${ofProcess}-${threadId}`;
}

/** @throws MisuseError while a startup snapshot is built: each process that starts from it is a copy */
export function refuseSnapshot(): void {
  // Other runtimes have no such thing, and Node 20 says 1 and not true.
  if (!startupSnapshot?.isBuildingSnapshot?.()) return;
  throw new MisuseError(
    'createElection was called while a startup snapshot is built: every process that starts from ' +
      'the snapshot would be the same candidate. Call it in the function that you give to ' +
      'v8.startupSnapshot.setDeserializeMainFunction',
  );
}
