/** Elections in a directory: no server, any number of processes of one machine. */
import { isAbsolute } from 'node:path';
import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import type { Backend, Scope } from '../../core/contest.ts';
import { leaseBackend } from '../../mechanisms/lease/backend.ts';
import { leasePath } from './election-directory.ts';
import { fileLister, fileShards } from './lister.ts';
import { openFileLeaseStore } from './store.ts';

export { type DamagedFile, type ElectionFiles, examineElection } from './examine.ts';

/** A check for a resource on the same machine. */
export interface FileGuard {
  /** The token of the term. */
  readonly token: bigint;
  /**
   * Reads the record: true once a newer term has been elected. A term that begins between this
   * answer and the effect is not noticed. A resource that remembers the highest token it has seen
   * is safe from that.
   * @throws StoreUnavailableError when the directory cannot be read
   */
  superseded(): Promise<boolean>;
}

/** The options of `file`. */
export interface FileOptions {
  /**
   * Uses the directory although its file system is refused (network file systems, FUSE).
   * Default false. Set it only if link(2) is exclusive and durable there, and all candidates
   * run on this machine.
   */
  readonly trustFileSystem?: boolean;
}

const known: Readonly<Record<keyof FileOptions, true>> = { trustFileSystem: true };

/**
 * A backend that holds elections in a directory, for the processes of one machine. The file system
 * is checked at the first use: `StoreUnsuitableError` if other machines may write to it.
 * @param directory an absolute path, made when it is missing. All processes that compete name
 * the same one
 * @throws InvalidOptionError for a relative path
 */
export function file(directory: string, options: FileOptions = {}): Backend<FileGuard> {
  if (typeof directory !== 'string' || !isAbsolute(directory) || directory.includes('\0')) {
    throw new InvalidOptionError(
      `the directory must be an absolute path, not ${describeValue(directory)}: relative paths ` +
        'would elect one leader per working directory',
    );
  }
  checkNames('file()', options, known);
  const { trustFileSystem = false } = options;
  if (typeof trustFileSystem !== 'boolean') {
    throw new InvalidOptionError(
      `trustFileSystem must be true or false, not ${describeValue(trustFileSystem)}`,
    );
  }
  const open = ({ election, onTrouble }: Scope, pathOf?: typeof leasePath) =>
    openFileLeaseStore(directory, election, { trustFileSystem, onTrouble }, pathOf);
  const backend = leaseBackend<FileGuard>({
    kind: 'file',
    description: `file:${directory}`,
    openStore: (scope) => open(scope),
    leases: { open: (scope) => open(scope, leasePath), shards: fileShards(directory) },
    list: fileLister(directory, trustFileSystem),
    guard: (_scope, store, token) => ({
      token,
      async superseded() {
        const { record } = await store.read(new AbortController().signal);
        return (record?.token ?? 0n) > token;
      },
    }),
  });
  const madeBy = { module: import.meta.url, name: 'file', args: [directory, options] };
  return { ...backend, madeBy };
}
