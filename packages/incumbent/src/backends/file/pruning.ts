import { join } from 'node:path';
import type { FileOperations } from './file-operations.ts';
import {
  recordNumbers,
  recordPath,
  temporaryOwner,
  temporaryPath,
  tombstone,
} from './record-file.ts';

/** How many of the last records stay. */
export const keptRecords = 64;
/** The winner of a multiple of this prunes. */
export const pruneEvery = 16;

const temporaryLifeMs = 3_600_000;

/**
 * Removes the records up to `newest - kept`, in ascending order, and stops at the first failure.
 * `newest` must have been won. Any number of processes may do this at once, however old their
 * listings. Each removes a number only after it knows that the one below is gone. And a number that
 * was once won and removed never comes back as the same file. A number below all these may be a
 * stray (numbered-records.ts), which this removes as well.
 */
export async function prune(
  directory: string,
  files: FileOperations,
  newest: number,
  kept: number = keptRecords,
): Promise<void> {
  const numbers = recordNumbers(await files.list(directory));
  let gone = 1;
  for (const number of numbers) {
    if (number === 1) continue;
    if (number > newest - kept) break;
    if (number === 2) {
      await bury(directory, files);
    } else if (gone !== number - 1 && (await files.exists(recordPath(directory, number - 1)))) {
      // The listing missed one. Leave it to the next pruning, rather than make a gap below files
      // that are there.
      return;
    }
    await files.remove(recordPath(directory, number));
    gone = number;
  }
}

/**
 * Puts the tombstone in the place of number 1. Number 1 can never be removed, or it could be won
 * again. But it must change: a writer that read it long ago, and links a number 2 that was pruned,
 * would otherwise find it unchanged.
 */
async function bury(directory: string, files: FileOperations): Promise<void> {
  const first = recordPath(directory, 1);
  if ((await files.read(first))?.equals(tombstone)) return;
  const temporary = temporaryPath(directory);
  try {
    await files.create(temporary, tombstone);
    await files.rename(temporary, first);
  } catch (error) {
    await files.remove(temporary).catch(() => {});
    throw error;
  }
  await files.syncDirectory(directory);
}

/** Removes unfinished files of dead processes that are more than an hour older than `newest`. */
export async function removeTemporaries(
  directory: string,
  files: FileOperations,
  newest: number,
  isDead: (pid: number) => boolean,
): Promise<void> {
  const dead = (await files.list(directory)).filter((name) => {
    const owner = temporaryOwner(name);
    return owner !== undefined && isDead(owner);
  });
  if (dead.length === 0) return;
  // By the times of the file system alone: the wall clock may have been stepped.
  const nowMs = await files.modifiedMs(recordPath(directory, newest));
  for (const name of dead) {
    const path = join(directory, name);
    const writtenMs = await files.modifiedMs(path);
    if (nowMs === undefined || writtenMs === undefined) continue;
    if (nowMs - writtenMs > temporaryLifeMs) await files.remove(path);
  }
}
