/**
 * The names of the files in an election directory, and the content of a numbered record file:
 *
 *     {"format":1,"number":17,"id":"<random>","previous":"<digest of file 16>"}\n
 *     <the record>
 *
 * Number 1 has `"previous":null`. When number 2 is about to be pruned, number 1 becomes the
 * tombstone `{"format":1,"number":1,"tombstone":true}\n`. It keeps the number taken for ever.
 */
import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { RecordDamagedError, RecordTooNewError } from '../../base/errors.ts';

/** The newest format of the first line that this version reads, and the one that it writes. */
export const fileFormat = 1;

const nameDigits = 16;

export interface RecordFile {
  readonly number: number;
  /** The digest of the file with the number before. Null for number 1. */
  readonly previous: string | null;
  readonly body: string;
}

export function recordPath(directory: string, number: number): string {
  return join(directory, String(number).padStart(nameDigits, '0'));
}

/** The number of a record file. Undefined for every other name. */
export function recordNumber(name: string): number | undefined {
  if (name.length !== nameDigits || !/^\d+$/.test(name)) return undefined;
  const number = Number(name);
  return number > 0 && Number.isSafeInteger(number) ? number : undefined;
}

/** The numbers among these names, ascending. */
export function recordNumbers(names: readonly string[]): readonly number[] {
  return names
    .map(recordNumber)
    .filter((number) => number !== undefined)
    .sort((a, b) => a - b);
}

/** A name that no other process uses, for a file that is not finished. */
export function temporaryPath(directory: string): string {
  return join(directory, `.tmp-${process.pid}-${randomBytes(8).toString('hex')}`);
}

/** The process that made a temporary file. Undefined for every other name. */
export function temporaryOwner(name: string): number | undefined {
  const match = /^\.tmp-([1-9]\d{0,9})-[0-9a-f]{16}$/.exec(name);
  return match ? Number(match[1]) : undefined;
}

/**
 * No two calls give the same bytes, even for the same body. The same attempt made twice must not
 * make two files that look like one.
 */
export function encodeRecordFile({ number, previous, body }: RecordFile): Buffer {
  const id = randomBytes(16).toString('hex');
  return Buffer.from(`${JSON.stringify({ format: fileFormat, number, id, previous })}\n${body}`);
}

export const tombstone: Buffer = Buffer.from(
  `${JSON.stringify({ format: fileFormat, number: 1, tombstone: true })}\n`,
);

/** Identifies a file by its bytes. */
export function digestOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('base64url');
}

/** @throws RecordDamagedError, RecordTooNewError */
export function decodeRecordFile(bytes: Buffer, number: number, path: string): RecordFile {
  const text = bytes.toString('utf8');
  const end = text.indexOf('\n');
  let parsed: unknown;
  try {
    parsed = JSON.parse(text.slice(0, Math.max(end, 0)));
  } catch (error) {
    throw new RecordDamagedError(path, 'its first line is no JSON', { cause: error });
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new RecordDamagedError(path, 'its first line is no object');
  }
  const fields: Record<string, unknown> = { ...parsed };
  const format = fields['format'];
  if (typeof format !== 'number') throw new RecordDamagedError(path, 'it names no format');
  if (format > fileFormat) throw new RecordTooNewError(path, format, fileFormat);
  if (format !== fileFormat) throw new RecordDamagedError(path, `format ${format}`);
  if (fields['number'] !== number) {
    throw new RecordDamagedError(path, `it was made as number ${String(fields['number'])}`);
  }
  const previous = fields['previous'];
  if (number === 1 ? previous !== null : typeof previous !== 'string') {
    throw new RecordDamagedError(path, 'it does not say what came before it');
  }
  return { number, previous: previous as string | null, body: text.slice(end + 1) };
}
