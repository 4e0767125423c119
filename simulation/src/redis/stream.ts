/** The stream of writes that a primary sends to its replicas, and offsets count in. */

/** One command, or one transaction: a replica has applied it as a whole or not at all. */
export interface Entry {
  /** How much the offset grows by it. */
  readonly bytes: number;
  /** Lengths of the pieces in which it is put into the buffer (`replicationFeedSlaves`). */
  readonly pieces: readonly number[];
  readonly commands: readonly (readonly string[])[];
}

/** @param commands more than one are a transaction (`propagatePendingCommands` of server.c) */
export function entryOf(commands: readonly (readonly string[])[]): Entry {
  const all = commands.length > 1 ? [['MULTI'], ...commands, ['EXEC']] : commands;
  const pieces = all.flatMap(piecesOf);
  return { bytes: pieces.reduce((sum, length) => sum + length, 0), pieces, commands };
}

export const pingEntry: Entry = entryOf([['PING']]);
export const getAckEntry: Entry = entryOf([['REPLCONF', 'GETACK', '*']]);
export const selectEntry: Entry = entryOf([['SELECT', '0']]);

/** `*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`, piece by piece. */
function piecesOf(parts: readonly string[]): number[] {
  return [
    lineLength(parts.length),
    ...parts.flatMap((part) => {
      const length = Buffer.byteLength(part);
      return [lineLength(length), length, 2];
    }),
  ];
}

/** `*2\r\n` or `$3\r\n`. */
function lineLength(count: number): number {
  return String(count).length + 3;
}
