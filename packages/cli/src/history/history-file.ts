/** The file of a history: its tables, and how it is opened. */
import { lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { CommandError, exitCodes } from '../failure.ts';
import type { Database, Row, Sqlite } from './sqlite.ts';
import { isResult } from './sqlite.ts';

/** "incm": files of other programs have another one, and are left alone. */
const applicationId = 0x69_6e_63_6d;
const version = 1;
/** A reader that folds the log back may hold the file for a moment. */
const busyMs = 5_000;

/**
 * Tokens are text: they can be longer than 64 bits. Times are REAL: a record can hold any number.
 * The gaps between terms are not kept, for they follow from the terms.
 */
const tables = `
CREATE TABLE stores (
  id INTEGER PRIMARY KEY,
  url TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE elections (
  id INTEGER PRIMARY KEY,
  store INTEGER NOT NULL REFERENCES stores (id),
  name TEXT NOT NULL,
  UNIQUE (store, name)
) STRICT;
CREATE TABLE terms (
  election INTEGER NOT NULL REFERENCES elections (id),
  token TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  leader TEXT NOT NULL,
  from_unix_ms REAL NOT NULL,
  to_unix_ms REAL,
  why TEXT,
  PRIMARY KEY (election, token, incarnation)
) STRICT;
CREATE INDEX terms_in_order ON terms (election, from_unix_ms, length(token), token, incarnation);
CREATE INDEX terms_by_end ON terms (to_unix_ms);
CREATE TABLE changes (
  id INTEGER PRIMARY KEY,
  election INTEGER NOT NULL REFERENCES elections (id),
  at_unix_ms REAL NOT NULL,
  state TEXT NOT NULL,
  token TEXT,
  leader TEXT,
  incarnation TEXT,
  ready INTEGER NOT NULL,
  why TEXT
) STRICT;
CREATE INDEX changes_in_order ON changes (election, id);
CREATE INDEX changes_by_time ON changes (at_unix_ms);
`;

export class HistoryError extends CommandError {
  override readonly name: string = 'HistoryError';
  constructor(message: string, options?: ErrorOptions, exitCode: number = exitCodes.usage) {
    super('HISTORY_UNUSABLE', exitCode, message, options);
  }
}

/**
 * Opens the file to be written, and makes it where it is missing.
 *
 * In WAL mode a reader and the writer do not wait for each other. With `synchronous = NORMAL` a killed
 * process loses nothing that was committed. A power cut can lose the last moments, and the store tells
 * those again.
 * @throws HistoryError
 */
export function openToWrite(path: string, sqlite: Sqlite): Database {
  return opened(path, sqlite, false, (database) => {
    if (isNew(database)) {
      database.exec('PRAGMA journal_mode = WAL');
      database.exec(
        `BEGIN IMMEDIATE;${tables}PRAGMA application_id = ${applicationId};` +
          `PRAGMA user_version = ${version};COMMIT`,
      );
    }
    requireOurs(path, database);
    database.exec('PRAGMA synchronous = NORMAL');
  });
}

/**
 * Opens it beside a recorder that writes.
 * @throws HistoryError
 */
export function openToRead(path: string, sqlite: Sqlite): Database {
  return opened(path, sqlite, true, (database) => requireOurs(path, database));
}

function opened(
  path: string,
  { DatabaseSync }: Sqlite,
  readOnly: boolean,
  prepare: (database: Database) => void,
): Database {
  let database: Database | undefined;
  try {
    database = new DatabaseSync(path, { readOnly, timeout: busyMs });
    prepare(database);
    return database;
  } catch (error) {
    database?.close();
    throw error instanceof HistoryError ? error : unusable(path, readOnly, error);
  }
}

function unusable(path: string, readOnly: boolean, error: unknown): HistoryError {
  const cause = { cause: error };
  if (isResult(error, 'notADatabase')) {
    return new HistoryError(`${path} is not a file of SQLite: give another path`, cause);
  }
  if (isResult(error, 'cannotOpen')) {
    return new HistoryError(
      readOnly
        ? `${path} cannot be opened: \`incumbent record --to ${path}\` makes it; a reader needs the right to ` +
            'write in its directory'
        : `${path} cannot be opened or made: its directory must exist, and you must be able to write there`,
      cause,
    );
  }
  return new HistoryError(`${path}: ${error instanceof Error ? error.message : error}`, cause);
}

/**
 * Holds the file for one recorder. SQLite holds the lock by the operating system, which lifts it when the
 * process ends, however it ends.
 * @throws HistoryError when another recorder has it
 */
export function lockForRecorder(path: string, { DatabaseSync }: Sqlite): Database {
  const lock = `${onlyNameOf(path)}.recorder`;
  let database: Database | undefined;
  try {
    database = new DatabaseSync(lock, { timeout: 0 });
    database.exec('BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database?.close();
    if (!isResult(error, 'busy')) throw unusable(lock, false, error);
    throw new HistoryError(
      `another \`incumbent record\` writes to ${path}: end it first, or give another --to`,
      { cause: error },
      exitCodes.no,
    );
  }
}

/**
 * Two names of one file must not give two locks.
 * @returns the path without symbolic links
 * @throws HistoryError when the file has another name that cannot be found
 */
function onlyNameOf(path: string): string {
  const real = realPathOf(path);
  const found = statSync(real, { throwIfNoEntry: false });
  if (found?.isFile() && found.nlink > 1) {
    throw new HistoryError(
      `${path} has ${found.nlink} names (hard links), and another recorder may write to it by another one: ` +
        'remove the others, or give another --to',
    );
  }
  return real;
}

/** Of a file that may be missing. SQLite finds all else that is wrong with the path. */
function realPathOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    const code = Object(error).code;
    if (code === 'ELOOP') throw unusable(path, false, error);
    if (code !== 'ENOENT' || dirname(path) === path) return path;
  }
  // SQLite makes the file where the link leads.
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink();
  const directory = realPathOf(dirname(path));
  return isLink
    ? realPathOf(resolve(directory, readlinkSync(path)))
    : join(directory, basename(path));
}

function isNew(database: Database): boolean {
  const count = database.prepare('SELECT count(*) AS count FROM sqlite_schema').get();
  return count?.['count'] === 0 && pragma(database, 'application_id') === 0;
}

function requireOurs(path: string, database: Database): void {
  if (pragma(database, 'application_id') !== applicationId) {
    throw new HistoryError(`${path} is the database of another program: give another path`);
  }
  const found = pragma(database, 'user_version');
  if (found !== version) {
    throw new HistoryError(
      `${path} was made by a newer release (version ${found} of its tables; this one knows ${version}): ` +
        'update @incumbent/cli, or give another path',
    );
  }
}

function pragma(database: Database, name: string): number {
  return Number((database.prepare(`PRAGMA ${name}`).get() as Row | undefined)?.[name]);
}
