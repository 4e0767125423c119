/** An election that no candidate uses, to measure a store on. */
import { randomBytes } from 'node:crypto';
import type { Backend } from 'incumbent';
import type { OpenStore } from '../context.ts';
import { fileStoreFindings, firstMissing, removeElection, removeEmpty } from './file-store.ts';
import type { Finding } from './finding.ts';

export interface Scratch {
  /** Of the election. */
  readonly name: string;
  readonly backend: Backend;
  /** Findings that may keep the election from being made. */
  lookFirst?(election: string | undefined, signal: AbortSignal): Promise<readonly Finding[]>;
  /** Findings about the store itself; asked for once the election has been made. */
  look(election: string | undefined, signal: AbortSignal): Promise<readonly Finding[]>;
  /** Absent: it cannot be removed. */
  remove?(signal: AbortSignal): Promise<void>;
}

/** There is no election to measure on, and why. */
export interface Unmeasured {
  readonly unmeasured: string;
  /** Elections of others can be looked at. */
  readonly mayLook: boolean;
}

/** To be called before anything is made. */
export async function scratchOn(
  store: OpenStore,
  signal: AbortSignal,
): Promise<Scratch | Unmeasured> {
  const { directory, servers, backend } = store;
  // An election that can be removed again has a name of its own. Where it cannot, the name is
  // always the same.
  const unique = `incumbent-doctor-${randomBytes(6).toString('hex')}`;
  if (directory !== undefined) return onFiles(unique, directory, backend);
  if (servers !== undefined) return servers.scratch(unique, signal);
  return { name: 'incumbent-doctor', backend, look: async () => [] };
}

async function onFiles(name: string, directory: string, backend: Backend): Promise<Scratch> {
  const made = await firstMissing(directory);
  return {
    name,
    backend,
    async look(election) {
      const found = await fileStoreFindings(directory, election);
      if (made === undefined) return found;
      const missing: Finding = {
        check: 'store',
        level: 'warn',
        message: `the directory ${directory} did not exist: nobody has used it, or another one is meant`,
        data: { directory },
      };
      return [missing, ...found];
    },
    async remove() {
      await removeElection(directory, name);
      if (made !== undefined) await removeEmpty(directory, made);
    },
  };
}
