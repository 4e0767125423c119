import { join } from 'node:path';
import { RecordDamagedError, RecordTooNewError } from '../../base/errors.ts';
import { decodeLeaseRecord } from '../../record/lease-record.ts';
import { electionPath } from './election-directory.ts';
import { nodeFileOperations } from './file-operations.ts';
import { decodeRecordFile, recordNumber, temporaryOwner, tombstone } from './record-file.ts';
import { asStoreError } from './store-error.ts';

/** The files in the directory of one election. */
export interface ElectionFiles {
  readonly path: string;
  /** False: no candidate has used this election here. */
  readonly exists: boolean;
  /** How many record files there are. */
  readonly records: number;
  /** How many unfinished files there are. Those of dead processes go away by themselves. */
  readonly temporaries: number;
  /** Names that this store does not make. They do no harm. */
  readonly foreign: readonly string[];
  /** Record files that cannot be read as such. Only the newest one stops the election. */
  readonly damaged: readonly DamagedFile[];
}

/** A record file that cannot be read. */
export interface DamagedFile {
  /** True: this file stops the election. */
  readonly isNewest: boolean;
  readonly error: RecordDamagedError | RecordTooNewError;
}

/**
 * Looks at every file of an election, for operators. Changes nothing. Do not base decisions on it:
 * candidates go on writing meanwhile.
 * @param directory the directory that was given to `file()`
 * @throws InvalidOptionError for a name that no directory can have
 * @throws StoreUnavailableError when the directory cannot be read
 */
export async function examineElection(directory: string, election: string): Promise<ElectionFiles> {
  const files = nodeFileOperations;
  const path = electionPath(directory, election);
  try {
    if (!(await files.exists(path))) {
      return { path, exists: false, records: 0, temporaries: 0, foreign: [], damaged: [] };
    }
    const names = await files.list(path);
    const numbers = names.map((name) => recordNumber(name)).filter((each) => each !== undefined);
    const newest = Math.max(...numbers);
    const damaged: DamagedFile[] = [];
    for (const name of [...names].sort()) {
      const number = recordNumber(name);
      if (number === undefined) continue;
      const error = await findDamage(join(path, name), number);
      if (error !== undefined) damaged.push({ isNewest: number === newest, error });
    }
    const temporaries = names.filter((name) => temporaryOwner(name) !== undefined);
    const foreign = names.filter(
      (name) =>
        name !== 'candidates' &&
        recordNumber(name) === undefined &&
        temporaryOwner(name) === undefined,
    );
    return {
      path,
      exists: true,
      records: numbers.length,
      temporaries: temporaries.length,
      foreign: foreign.sort(),
      damaged,
    };
  } catch (error) {
    throw asStoreError(error, path);
  }
}

async function findDamage(path: string, number: number): Promise<DamagedFile['error'] | undefined> {
  try {
    const bytes = await nodeFileOperations.read(path);
    // Pruned meanwhile, or number 1 after the first pruning.
    if (bytes === undefined || (number === 1 && bytes.equals(tombstone))) return undefined;
    decodeLeaseRecord(decodeRecordFile(bytes, number, path).body, path);
    return undefined;
  } catch (error) {
    if (error instanceof RecordDamagedError || error instanceof RecordTooNewError) return error;
    throw error;
  }
}
