import { dirname, join, resolve } from 'node:path';
import { checkElectionName } from '../../base/candidate.ts';
import { InvalidOptionError, StoreUnavailableError } from '../../base/errors.ts';
import type { FileOperations, Identity } from './file-operations.ts';
import { errorCode } from './file-operations.ts';
import type { FileSystemProbe } from './filesystem-check.ts';
import { refuseSharedFileSystem } from './filesystem-check.ts';

/** `<root>/<election>`: one directory for each election. */
export class ElectionDirectory {
  readonly path: string;
  readonly #files: FileOperations;
  /** Undefined: the caller vouches that only this machine writes the file system. */
  readonly #probe: FileSystemProbe | undefined;
  #identity: Identity | undefined;
  #settled = false;

  constructor(path: string, files: FileOperations, probe: FileSystemProbe | undefined) {
    this.path = path;
    this.#files = files;
    this.#probe = probe;
  }

  get isOpen(): boolean {
    return this.#identity !== undefined;
  }

  /**
   * Makes the directory, once. A directory that is gone later is not made again: in an empty one
   * the tokens would start from 1.
   */
  async open(): Promise<void> {
    if (this.#identity !== undefined) return;
    if (this.#probe !== undefined) {
      let existing = this.path;
      while (existing !== dirname(existing) && !(await this.#files.exists(existing))) {
        existing = dirname(existing);
      }
      await refuseSharedFileSystem(existing, this.#probe);
    }
    await this.#files.makeDirectory(this.path, true);
    this.#identity = await this.#files.identify(this.path);
  }

  /**
   * As `open`, for a look: makes nothing.
   * @returns false when there is no such directory
   */
  async attach(): Promise<boolean> {
    try {
      this.#identity ??= await this.#files.identify(this.path);
      return true;
    } catch (error) {
      if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return false;
      throw error;
    }
  }

  /** @throws when the path leads to another directory than at first, or to none */
  async verify(): Promise<void> {
    const { device, inode } = await this.#files.identify(this.path);
    const opened = this.#identity;
    if (opened?.device === device && opened.inode === inode) return;
    throw new StoreUnavailableError(
      `${this.path} is another directory than the one this process began with: put that one back ` +
        '(is its file system mounted?), or restart all candidates if it was replaced on purpose',
    );
  }

  /**
   * Syncs the names of the directory and of those above it to the disk, once, before anything is
   * won in it. The process that made them may have died before that.
   */
  async settle(): Promise<void> {
    if (this.#settled) return;
    const { device } = await this.#files.identify(this.path);
    for (let path = this.path; dirname(path) !== path; ) {
      path = dirname(path);
      try {
        if ((await this.#files.identify(path)).device !== device) break;
        await this.#files.syncDirectory(path);
      } catch (error) {
        // We may read the directories that we or other candidates made. The rest has been
        // there for long.
        if (errorCode(error) !== 'EACCES') throw error;
      }
    }
    this.#settled = true;
  }
}

/**
 * The directory with the records of `election`. Nothing is touched.
 * @throws InvalidOptionError for a name that no directory can have
 */
export function electionPath(root: unknown, election: string): string {
  if (typeof root !== 'string' || root === '' || root.includes('\0')) {
    throw new InvalidOptionError('the file store needs the path of a directory');
  }
  checkElectionDirectoryName(election);
  return join(resolve(root), election);
}

/** No election has this name, because it would be hidden. */
const leasesDirectory = '.leases';

/** The directory with the records of a lease, such as `devices/3`. Its name has no slash. */
export function leasePath(root: string, name: string): string {
  const flat = checkElectionName(name).replaceAll(/[%/\\]/g, (each) => encodeURIComponent(each));
  return join(leasesPath(root), `_${flat}`);
}

/** The directory of all leases. */
export function leasesPath(root: string): string {
  return join(resolve(root), leasesDirectory);
}

/** The name of the lease with that directory. Undefined: it is not ours. */
export function leaseNameOf(directory: string): string | undefined {
  try {
    return decodeURIComponent(/^_(.+)/s.exec(directory)?.[1] ?? '') || undefined;
  } catch {
    return undefined;
  }
}

/** @throws InvalidOptionError for a name that would lead elsewhere, or be hidden */
export function checkElectionDirectoryName(election: string): void {
  checkElectionName(election);
  const refused = /[/\\]/.test(election)
    ? 'must not contain "/" or "\\"'
    : election.startsWith('.')
      ? 'must not start with "."'
      : undefined;
  if (refused !== undefined) {
    throw new InvalidOptionError(
      `the election name ${JSON.stringify(election)} ${refused}: the file store makes a directory ` +
        'of that name',
    );
  }
}
