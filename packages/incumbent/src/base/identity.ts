/**
 * Names and ids that tell one process from another. Nothing is drawn when the module is loaded, and
 * nothing is kept. A copy of the process would have it too (docs/design/identity-and-names.md).
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { startupSnapshot } from 'node:v8';
import { isMainThread, threadId } from 'node:worker_threads';
import { MisuseError } from './errors.ts';

/**
 * An id that is unique for ever, for nonces. A copy of a process (CRIU, a clone of a machine) has
 * the state of the random generator too. It would draw the same bytes next. So the clock is mixed
 * in: two copies do not read it in the same nanosecond.
 */
export function uniqueId(): string {
  const bytes = randomBytes(12);
  bytes.writeBigUInt64LE(bytes.readBigUInt64LE() ^ process.hrtime.bigint());
  return bytes.toString('base64url');
}

/** Threads share the process id, but each is a candidate of its own. */
export function defaultId(): string {
  const ofProcess = `${hostname()}-${process.pid}`;
  return isMainThread ? ofProcess : `${ofProcess}-${threadId}`;
}

/**
 * @throws MisuseError while a startup snapshot is built: each process that starts from it is a copy
 */
export function refuseSnapshot(): void {
  // Other runtimes have no `startupSnapshot`, and Node 20 answers 1 instead of true.
  if (!startupSnapshot?.isBuildingSnapshot?.()) return;
  throw new MisuseError(
    'createElection was called while a startup snapshot is built: every process that starts from ' +
      'the snapshot would be the same candidate. Call it in the function that you give to ' +
      'v8.startupSnapshot.setDeserializeMainFunction',
  );
}
