/** What a node has written that the primary lacks: often nothing but PINGs. */
import type { TailCommands } from '../redis/tail.ts';

/** What a tail means for the data. */
export interface TailMeaning {
  /** What was written, as Redis calls it: each name once. */
  readonly writes: readonly string[];
  readonly writeCount: number;
  /** Deleted, as expired keys are. `db` undefined: the stream has not said yet. */
  readonly deleted: readonly {
    readonly db: number | undefined;
    readonly keys: readonly string[];
  }[];
}

/** They change no data. PUBLISH is only heard by who listens at that moment. */
const harmless = new Set(['PING', 'REPLCONF', 'MULTI', 'EXEC', 'PUBLISH', 'SPUBLISH']);

/** Redis tells its replicas of an expired key by one of these. */
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
    // A key that is no text would be asked for by another name.
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
 * @param hasAny of the primary. A key that was deleted here, and is not there either, is no difference.
 * @returns undefined: the primary has all; else what it lacks, in words
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
