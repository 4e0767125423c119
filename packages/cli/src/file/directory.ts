/** The directory of a file store: the questions that commands put to it, besides its elections. */
import { randomBytes } from 'node:crypto';
import type { Backend } from 'incumbent';
import { createElection } from 'incumbent';
import { firstMissing, removeElection } from '../doctor/file-store.ts';

/**
 * Makes the directory, as an election in it would. Also makes sure that we may write there, and
 * that no other machine does.
 * @returns the directory created; undefined: it was there
 */
export async function prepareDirectory(
  directory: string,
  backend: Backend,
  signal: AbortSignal,
): Promise<string | undefined> {
  const missing = await firstMissing(directory);
  const name = `incumbent-init-${randomBytes(6).toString('hex')}`;
  const election = createElection({ name, backend });
  try {
    await election.init({ signal });
  } finally {
    await election.close();
    await removeElection(directory, name);
  }
  return missing === undefined ? undefined : `the directory ${directory}`;
}
