import { inParallel } from '../../base/in-parallel.ts';
import { asError } from '../../base/thrown.ts';
import type { LeaseLister, LeasePage, ListedLease } from '../../mechanisms/lease/listing.ts';
import { shardsWithParts } from '../../mechanisms/lease/listing.ts';
import type { Leases, Reading } from '../../mechanisms/lease/store.ts';
import { ElectionDirectory, electionPath, leaseNameOf, leasesPath } from './election-directory.ts';
import { Enlistment } from './enlistment.ts';
import type { FileOperations } from './file-operations.ts';
import { errorCode, nodeFileOperations } from './file-operations.ts';
import { NumberedRecords, versionOf } from './numbered-records.ts';
import { ProcessProof } from './process-proof.ts';
import { recordNumber } from './record-file.ts';
import { decodeEntry } from './store.ts';
import { asStoreError } from './store-error.ts';

const directoriesAPage = 500;
/** Node reads files on four threads. A few more keep them busy. */
const readsAtOnce = 16;

/** A file system of ext4 has this directory, and only root may look into it. */
const rootOnly = 'lost+found';

/** `leases.shards`: the directories of leases have their names. */
export function fileShards(root: string): NonNullable<Leases['shards']> {
  return async () => {
    const directory = leasesPath(root);
    const found = await listDirectory(nodeFileOperations, directory);
    return shardsWithParts(found.flatMap((each) => leaseNameOf(each) ?? []));
  };
}

/** One that is not there is empty. */
async function listDirectory(files: FileOperations, directory: string): Promise<readonly string[]> {
  try {
    return await files.list(directory);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw asStoreError(error, directory);
  }
}

/** The directories below `root` that hold records, or waiting candidates. */
export function fileLister(
  root: string,
  trustsFileSystem: boolean,
  files: FileOperations = nodeFileOperations,
): LeaseLister {
  const proof = new ProcessProof();
  return {
    provesGone: (actors) => proof.provesGone(actors),
    async page(after, wanted, signal): Promise<LeasePage> {
      // A directory tells all of its names at once.
      const names = (after ?? (await namesIn(root))) as readonly string[];
      const look = wanted === 'names' ? named : read;
      const found = await inParallel(names.slice(0, directoriesAPage), readsAtOnce, (name) => {
        signal.throwIfAborted();
        return look(name);
      });
      const rest = names.slice(directoriesAPage);
      return {
        elections: found.filter((each) => each !== undefined),
        next: rest.length === 0 ? undefined : rest,
      };
    },
  };

  async function namesIn(directory: string): Promise<readonly string[]> {
    return (await listDirectory(files, directory)).filter((name) => !name.startsWith('.'));
  }

  /** @returns undefined for what is no directory of ours */
  async function named(name: string): Promise<ListedLease | undefined> {
    const path = pathOf(name);
    if (path === undefined) return undefined;
    const reading = () => ({ record: undefined, version: '' });
    try {
      const inside = await files.list(path);
      if (inside.some((each) => recordNumber(each) !== undefined)) return { name, reading };
      const waits = inside.includes('candidates') && (await waitingIn(path)).length > 0;
      return waits ? { name, reading } : undefined;
    } catch (error) {
      // It may be an election that this user may not look into.
      if (errorCode(error) === 'EACCES' && name !== rootOnly) return { name, reading };
      // No directory, or one that was removed just now.
      return undefined;
    }
  }

  async function read(name: string): Promise<ListedLease | undefined> {
    const path = pathOf(name);
    if (path === undefined) return undefined;
    const directory = new ElectionDirectory(path, files, undefined);
    let reading: () => Reading;
    let isUsed = true;
    try {
      if (!(await directory.attach())) return undefined;
      const entry = await new NumberedRecords(directory, files).read();
      isUsed = entry !== undefined;
      reading = () => ({
        record: entry && decodeEntry(name, entry),
        version: versionOf(entry),
      });
    } catch (error) {
      if (errorCode(error) === 'ENOTDIR' || errorCode(error) === 'ENOENT') return undefined;
      if (errorCode(error) === 'EACCES' && name === rootOnly) return undefined;
      const shown = asError(asStoreError(error, path));
      reading = () => {
        throw shown;
      };
    }
    const waiting = await waitingIn(path).catch(() => []);
    return isUsed || waiting.length > 0 ? { name, waiting, reading } : undefined;
  }

  function waitingIn(path: string): ReturnType<Enlistment['list']> {
    return new Enlistment(path, files, proof, !trustsFileSystem).list(false);
  }

  /** @returns undefined for a name that no election can have */
  function pathOf(name: string): string | undefined {
    try {
      return electionPath(root, name);
    } catch {
      return undefined;
    }
  }
}
