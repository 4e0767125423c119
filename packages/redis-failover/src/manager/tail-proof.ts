/** Finds out what a node has written that the primary lacks. Often that is nothing but PINGs. */
import type { TailCommands } from '../redis/tail.ts';

/** The meaning of the end of a stream for the data. */
export interface TailMeaning {
  /** The names of the commands that write, each once. */
  readonly writes: readonly string[];
  readonly writeCount: number;
  /**
   * Deleted keys; expired ones look the same. `db` is undefined before the stream names a database.
   */
  readonly deleted: readonly {
    readonly db: number | undefined;
    readonly keys: readonly string[];
  }[];
}

/** Commands that change no data. A PUBLISH reaches only those that listen at that moment. */
const harmless = new Set(['PING', 'REPLCONF', 'MULTI', 'EXEC', 'PUBLISH', 'SPUBLISH']);

/** Redis sends one of these to its replicas when a key expires. */
const deletions = new Set(['DEL', 'UNLINK']);

export function meaningOf(commands: TailCommands): TailMeaning {
  const writes = new Set<string>();
  let writeCount = 0;
  const deleted: { db: number | undefined; keys: string[] }[] = [];
  let db: number | undefined;
  for (const [name = Buffer.alloc(0), ...parts] of commands) {
    const command = name.toString('latin1').toUpperCase();
    if (harmless.has(command)) continue;
    if (command === 'SELECT') {
      db = Number(parts[0]?.toString('latin1'));
      continue;
    }
    const keys = parts.map((part) => part.toString());
    // A key that is no valid UTF-8 could not be looked up by its name.
    const isText = parts.every((part, at) => Buffer.from(keys[at] ?? '').equals(part));
    if (deletions.has(command) && isText) {
      deleted.push({ db, keys });
      continue;
    }
    writes.add(command);
    writeCount += 1;
  }
  return { writes: [...writes], writeCount, deleted };
}

/**
 * @param hasAny whether the primary has one of the keys. A key that was deleted here and is missing
 *   there makes no difference
 * @returns what the primary lacks, in words; undefined if it has everything
 */
export async function lackedOf(
  { writes, writeCount, deleted }: TailMeaning,
  hasAny: (db: number | undefined, keys: readonly string[]) => Promise<boolean>,
): Promise<string | undefined> {
  if (writeCount > 0) return `${writeCount} writes (${writes.slice(0, 5).join(', ')})`;
  for (const { db, keys } of deleted) {
    if (await hasAny(db, keys)) {
      return 'a deletion, or the end of a key that expired, of a key that the primary has';
    }
  }
  return undefined;
}
