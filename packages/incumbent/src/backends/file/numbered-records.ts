/**
 * A register made of numbered files: the highest number is its present value. Number n+1 is made by
 * link(2), which only one process can do for a given name *while that name exists*. Names are
 * pruned, so three rules make "one winner for each number" true for ever (the proof and the
 * schedules behind it: docs/design/file-store.md):
 *
 * 1. Pruning goes upwards (pruning.ts): n+1 disappears only after n did, and the last ones never
 *    do. Number 1 does not disappear. It becomes a tombstone before number 2 goes.
 * 2. A writer that linked n+1 then reads n again. If n is still the very file that it read
 *    before, n+1 had not been pruned before, so its link was the first. If not, its file is a
 *    stray: another writer had won that number long ago. The stray stays where it is, until
 *    pruning takes it away.
 * 3. Every file carries the digest of its predecessor. A reader takes n+1 for the newest only if n
 *    is there and has that digest. A stray fails this, because n was gone before it was linked.
 *
 * The stray is not removed by its maker. Many writers that stalled after linking cannot tell a
 * stray from a record that was won and overtaken. They would take the chain apart up to its head.
 */
import { MisuseError, StoreUnavailableError } from '../../base/errors.ts';
import type { ElectionDirectory } from './election-directory.ts';
import type { FileOperations } from './file-operations.ts';
import {
  decodeRecordFile,
  digestOf,
  encodeRecordFile,
  recordNumbers,
  recordPath,
  temporaryPath,
  tombstone,
} from './record-file.ts';

/** One numbered record, as it was read or written. */
export interface Entry {
  readonly number: number;
  readonly bytes: Buffer;
  /** The digest of `bytes`. */
  readonly digest: string;
  readonly body: string;
  readonly path: string;
}

/** The entry that an `append` was decided on. Undefined for the first one. */
export type Predecessor = Pick<Entry, 'number' | 'digest'> | undefined;

/** Each failed look means that others went on meanwhile. */
const maxLooks = 100;

/** Not for concurrent calls: the store runs one after the other. */
export class NumberedRecords {
  readonly #directory: ElectionDirectory;
  readonly #files: FileOperations;
  #newest: Entry | undefined;
  /** True: a link of ours may be visible and not yet on the disk. */
  #syncOwed = false;

  constructor(directory: ElectionDirectory, files: FileOperations) {
    this.#directory = directory;
    this.#files = files;
  }

  /** The highest number that this object knows of. 0 for none. */
  get newestNumber(): number {
    return this.#newest?.number ?? 0;
  }

  /**
   * The newest entry. Undefined when there is none. An earlier `append` of this object may have
   * linked an entry without knowing its fate. That entry is on the disk before it is returned here.
   */
  async read(): Promise<Entry | undefined> {
    if (this.#syncOwed) await this.#sync();
    const known = this.#newest;
    if (known !== undefined) {
      if (await this.#isStillNewest(known)) return known;
      // Nearly always the log is one entry further.
      const next = await this.#acceptAsNewest(known.number + 1);
      if (next !== undefined) return this.#remember(next);
    }
    for (let look = 0; look < maxLooks; look += 1) {
      const top = recordNumbers(await this.#files.list(this.#directory.path)).at(-1);
      await this.#directory.verify();
      if (top === undefined) {
        // Number 1 stays for ever. Without it there are no records, or an operator removed them.
        if (await this.#files.exists(this.#path(1))) continue;
        this.#newest = undefined;
        return undefined;
      }
      const entry = await this.#acceptAsNewest(top);
      if (entry !== undefined) return this.#remember(entry);
    }
    throw new StoreUnavailableError(
      `${this.#directory.path} has no newest record that continues the one before it: either ` +
        `${maxLooks} looks were each overtaken by others, or records were removed or changed by ` +
        'hand; stop all candidates of this election, then put the files back',
    );
  }

  /**
   * Adds the entry after `expected`. Rejects when it is unknown whether this was added.
   * @returns undefined when another writer has added one, perhaps long ago
   */
  async append(
    expected: Predecessor,
    body: string,
    signal: AbortSignal,
  ): Promise<Entry | undefined> {
    const number = (expected?.number ?? 0) + 1;
    const path = this.#path(number);
    if (await this.#files.exists(path)) return undefined;
    const bytes = encodeRecordFile({ number, previous: expected?.digest ?? null, body });
    await this.#directory.settle();
    if (!(await this.#linkNew(path, bytes, signal))) return undefined;
    if (expected !== undefined && !(await this.#isUnchanged(expected))) return undefined;
    await this.#sync();
    this.#newest = { number, bytes, digest: digestOf(bytes), body, path };
    return this.#newest;
  }

  /**
   * Makes `path` with this content, as a whole or not at all.
   * @returns false when there is one already
   */
  async #linkNew(path: string, bytes: Buffer, signal: AbortSignal): Promise<boolean> {
    const temporary = temporaryPath(this.#directory.path);
    const wasOwed = this.#syncOwed;
    try {
      // Synced before it gets a number, so a record is never torn, even by a power cut.
      await this.#files.create(temporary, bytes);
      signal.throwIfAborted();
      this.#syncOwed = true;
      const linked = await this.#files.link(temporary, path);
      if (!linked) this.#syncOwed = wasOwed;
      return linked;
    } finally {
      // A file that cannot be removed now is removed by pruning.
      await this.#files.remove(temporary).catch(() => {});
    }
  }

  async #sync(): Promise<void> {
    await this.#files.syncDirectory(this.#directory.path);
    this.#syncOwed = false;
  }

  #path(number: number): string {
    return recordPath(this.#directory.path, number);
  }

  /**
   * Compares the bytes, and not inode and times, because both come again. On ext4 a new file may
   * get the same inode number at once, and its times tick every few ms.
   */
  async #isUnchanged({ number, digest }: Pick<Entry, 'number' | 'digest'>): Promise<boolean> {
    const bytes = await this.#files.read(this.#path(number));
    return bytes !== undefined && digestOf(bytes) === digest;
  }

  /** The order matters: n is there *after* n+1 was not, so n+1 had not been pruned. */
  async #isStillNewest({ number, bytes, path }: Entry): Promise<boolean> {
    if (await this.#files.exists(this.#path(number + 1))) return false;
    return (await this.#files.read(path))?.equals(bytes) === true;
  }

  /**
   * The entry of this number if it is the newest. Undefined if another look is needed. It is
   * true because of the order of three steps: (a) read n, (b) n+1 is absent, (c) n−1 is the one
   * that n continues.
   *
   * As n−1 is there at (c), n was not pruned by then, so it was there at (b). So n+1 was not pruned
   * by then either, and at (b) it did not exist yet. And a stray n would have been linked before
   * (a), when n−1 was gone already.
   */
  async #acceptAsNewest(number: number): Promise<Entry | undefined> {
    const path = this.#path(number);
    const bytes = await this.#files.read(path);
    if (bytes === undefined || (number === 1 && bytes.equals(tombstone))) return undefined;
    if (await this.#files.exists(this.#path(number + 1))) return undefined;
    const entry = { number, bytes, digest: digestOf(bytes), path };
    let file: ReturnType<typeof decodeRecordFile>;
    try {
      file = decodeRecordFile(bytes, number, path);
    } catch (error) {
      // Only the newest one may stop an election.
      if (await this.#isUnchanged(entry)) throw error;
      return undefined;
    }
    const accepted = { ...entry, body: file.body };
    if (file.previous === null) return (await this.#isUnchanged(entry)) ? accepted : undefined;
    const before = { number: number - 1, digest: file.previous };
    return (await this.#isUnchanged(before)) ? accepted : undefined;
  }

  #remember(entry: Entry): Entry {
    const known = this.#newest;
    if (
      known !== undefined &&
      (entry.number < known.number ||
        (entry.number === known.number && entry.digest !== known.digest))
    ) {
      throw new StoreUnavailableError(
        `${this.#directory.path} went back from record ${known.number} to another record ` +
          `${entry.number}: an older copy was put there, or records were removed; put the right ` +
          'ones back, or restart this process if it was done on purpose',
      );
    }
    this.#newest = entry;
    return entry;
  }
}

/** The version of a register that has no entry. */
export const noVersion = '0';

export function versionOf(entry: Entry | undefined): string {
  return entry === undefined ? noVersion : `${entry.number}-${entry.digest}`;
}

/** The entry that `versionOf` was made from. */
export function parseVersion(version: unknown): Predecessor {
  if (version === noVersion) return undefined;
  const match = typeof version === 'string' ? /^([1-9]\d{0,15})-(.{43})$/.exec(version) : null;
  if (match?.[1] === undefined || match[2] === undefined) {
    throw new MisuseError(`${String(version)} is no version of a file store`);
  }
  return { number: Number(match[1]), digest: match[2] };
}
