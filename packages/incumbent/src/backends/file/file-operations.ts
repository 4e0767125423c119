import { constants } from 'node:fs';
import { access, link, mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { RecordDamagedError } from '../../base/errors.ts';

/**
 * Every step that the file store takes on a disk. Tests replace it as a whole. They can then stop
 * one process between any two steps, lose data that was not synced, and make any step fail.
 * Rejections are Node's system errors.
 */
export interface FileOperations {
  /**
   * Not an error when it exists. `parents`: makes the directories above it as well. Readable by
   * the owner only.
   */
  makeDirectory(path: string, parents: boolean): Promise<void>;
  identify(path: string): Promise<Identity>;
  /** Not atomic. A name that comes or goes meanwhile may be listed or not. */
  list(directory: string): Promise<readonly string[]>;
  /** Undefined: there is no such file. */
  read(path: string): Promise<Buffer | undefined>;
  exists(path: string): Promise<boolean>;
  modifiedMs(path: string): Promise<number | undefined>;
  /**
   * Makes a new file, and resolves once its content is on the disk. May leave a part of
   * it on failure.
   */
  create(path: string, content: Buffer): Promise<void>;
  /** Gives a file a second name. False: the name is taken, and nothing has changed. */
  link(existing: string, path: string): Promise<boolean>;
  /** Replaces the file that has the new name, in one step. */
  rename(from: string, to: string): Promise<void>;
  /** Not an error when there is no such file. */
  remove(path: string): Promise<void>;
  /** Resolves once the names in the directory are on the disk. */
  syncDirectory(path: string): Promise<void>;
}

/** Which directory a path leads to. */
export interface Identity {
  readonly device: number;
  readonly inode: number;
}

/** Larger than any record. Nothing bigger is read into memory. */
const maxFileBytes = 4 * 1024 * 1024;
const chunkBytes = 16 * 1024;
/** A FIFO under a record's name must not block a thread of Node's pool for ever. */
const readFlags = constants.O_RDONLY | constants.O_NONBLOCK;

/** Asynchronous throughout: a disk that hangs must not stop the event loop that counts belief. */
export const nodeFileOperations: FileOperations = {
  async makeDirectory(path, parents) {
    try {
      await mkdir(path, { recursive: parents, mode: 0o700 });
    } catch (error) {
      if (parents || errorCode(error) !== 'EEXIST') throw error;
    }
  },

  async identify(path) {
    const { dev, ino } = await stat(path);
    return { device: dev, inode: ino };
  },

  async list(directory) {
    return readdir(directory);
  },

  async read(path) {
    const file = await orUndefined(open(path, readFlags));
    if (file === undefined) return undefined;
    try {
      const chunks: Buffer[] = [];
      for (let total = 0; ; ) {
        const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes));
        chunks.push(buffer.subarray(0, bytesRead));
        total += bytesRead;
        // A regular file reads short only at its end.
        if (bytesRead < chunkBytes) return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
        if (total >= maxFileBytes) throw new RecordDamagedError(path, 'far too large');
      }
    } catch (error) {
      if (errorCode(error) === 'EISDIR') throw new RecordDamagedError(path, 'a directory');
      throw error;
    } finally {
      await file.close();
    }
  },

  async exists(path) {
    try {
      await access(path);
      return true;
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return false;
      throw error;
    }
  },

  async modifiedMs(path) {
    return (await orUndefined(stat(path)))?.mtimeMs;
  },

  async create(path, content) {
    // Readable by all users that can enter the directory, and never writable by others.
    const file = await open(path, 'wx', 0o644);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
  },

  async link(existing, path) {
    try {
      await link(existing, path);
      return true;
    } catch (error) {
      if (errorCode(error) === 'EEXIST') return false;
      throw error;
    }
  },

  rename,

  async remove(path) {
    await orUndefined(unlink(path));
  },

  async syncDirectory(path) {
    const directory = await open(path, 'r');
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  },
};

/** `ENOENT` and the like. Undefined for an error that is no system error. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

async function orUndefined<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}
