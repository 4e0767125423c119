import { linkSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { lockForRecorder, openToRead, openToWrite } from '../../src/history/history-file.ts';
import type { Place } from '../../src/history/history-reader.ts';
import { HistoryReader } from '../../src/history/history-reader.ts';
import type { Finding, Shown } from '../../src/history/history-writer.ts';
import { HistoryWriter } from '../../src/history/history-writer.ts';
import type { KnownTerm } from '../../src/history/known-term.ts';
import { recordedRows } from '../../src/history/recorded-rows.ts';
import { loadSqlite } from '../../src/history/sqlite.ts';

const sqlite = loadSqlite('/');
const day = 86_400_000;
const vacant: Shown = {
  ...{ state: 'vacant', token: null, leader: null, incarnation: null, ready: false, why: null },
};

function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), 'incumbent-history-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return join(directory, 'history.db');
}

/** A recorder's part of the file; another one of the same path is a recorder that was started again. */
function writerOf(path: string, keepMs = 90 * day) {
  const database = openToWrite(path, sqlite);
  let isOpen = true;
  const close = () => {
    if (isOpen) database.close();
    isOpen = false;
  };
  onTestFinished(close);
  return { writer: new HistoryWriter(database, keepMs), database, close };
}

function readerOf(path: string): HistoryReader {
  const reader = new HistoryReader(path, sqlite);
  onTestFinished(() => reader.close());
  return reader;
}

function term(token: number | bigint, more: Partial<KnownTerm> = {}): KnownTerm {
  const at = Number(token) * 10;
  const end = { toUnixMs: at + 8, why: 'resigned' };
  return { token: String(token), incarnation: `i${token}`, id: 'a', fromUnixMs: at, end, ...more };
}

function finding(terms: readonly KnownTerm[], more: Partial<Finding> = {}): Finding {
  return { store: 1, election: 'e', atUnixMs: 1_000, shown: vacant, terms, ...more };
}

const rowsOf = (path: string, name = 'e') => {
  const reader = readerOf(path);
  return reader.terms(reader.election(name, undefined), 0, 1_000).terms;
};

test('partial knowledge in any order, over restarts, ends in the same rows, and none twice', () => {
  const pieces = [1, 2, 3].flatMap((token) => [
    term(token, { end: null }),
    term(token, { end: { toUnixMs: token * 10 + 9, why: 'unclean' } }),
    term(token),
  ]);
  fc.assert(
    fc.property(
      fc.shuffledSubarray([...pieces, ...pieces], { minLength: 2 * pieces.length }),
      fc.integer({ min: 1, max: 5 }),
      (told, size) => {
        const path = scratch();
        for (let at = 0; at < told.length; at += size) {
          const { writer, close } = writerOf(path);
          writer.store('test:');
          writer.write([finding(told.slice(at, at + size))]);
          close();
        }
        expect(rowsOf(path)).toEqual([term(3), term(2), term(1)]);
      },
    ),
    { numRuns: 20 },
  );
});

test('a state is on file once, however often it is seen, and over a restart', () => {
  const path = scratch();
  const led: Shown = { ...vacant, state: 'led', token: '1', leader: 'a', incarnation: 'i1' };
  const unknown: Shown = { ...vacant, state: 'unknown', why: 'no answer in 3 s' };
  for (const run of [0, 1]) {
    const { writer, close } = writerOf(path);
    writer.store('test:');
    for (const [at, shown] of [
      led,
      led,
      unknown,
      { ...unknown, why: 'no answer in 4 s' },
      led,
    ].entries()) {
      writer.write([finding([], { shown, atUnixMs: 10 * run + at })]);
    }
    close();
  }
  const reader = readerOf(path);
  const changes = reader.changes(reader.election('e', 'test:'), 0);
  expect(changes.map(({ atUnixMs, state }) => [atUnixMs, state])).toEqual([
    [0, 'led'],
    [2, 'unknown'],
    [4, 'led'],
    [12, 'unknown'],
    [14, 'led'],
  ]);
});

test('what is older than --keep goes in batches, and does not come back from the store', () => {
  const path = scratch();
  const { writer } = writerOf(path, 1_000);
  writer.store('test:');
  const many = Array.from({ length: 2_500 }, (_, at) =>
    term(at + 1, { fromUnixMs: 0, end: { toUnixMs: 1, why: 'resigned' } }),
  );
  const young = [term(3_000, { end: null }), term(3_001, { end: null, fromUnixMs: 10 })];
  writer.write([finding([...many, ...young], { atUnixMs: 500 })]);
  writer.write([
    finding([], { election: 'gone', atUnixMs: 500, shown: { ...vacant, state: 'gone' } }),
  ]);
  expect(rowsOf(path)).toHaveLength(1_000);
  let batches = 0;
  while (writer.prune(2_000)) batches += 1;
  expect(batches).toBe(2);
  // Of these nobody knows the end: the last of them may lead.
  expect(rowsOf(path).map(({ token }) => token)).toEqual(['3001', '3000']);
  expect(writer.prune(40_000)).toBe(false);
  expect(rowsOf(path).map(({ token }) => token)).toEqual(['3001']);
  expect(() => rowsOf(path, 'gone')).toThrow(/no election "gone"; it records test:/);
  writer.write([finding(many.slice(0, 50), { atUnixMs: 40_000 })]);
  expect(rowsOf(path)).toHaveLength(1);
});

test('a term without an end goes when its election has been gone for as long as terms are kept', () => {
  const path = scratch();
  const { writer } = writerOf(path, 1_000);
  writer.store('test:');
  const led: Shown = { ...vacant, state: 'led', token: '7', leader: 'a', incarnation: 'i7' };
  writer.write([finding([term(7, { end: null })], { atUnixMs: 100, shown: led })]);
  writer.prune(4_000);
  expect(rowsOf(path)).toHaveLength(1);
  writer.write([finding([], { atUnixMs: 5_000, shown: { ...vacant, state: 'gone' } })]);
  writer.prune(5_500);
  expect(rowsOf(path)).toHaveLength(1);
  writer.prune(7_000);
  expect(() => rowsOf(path)).toThrow(/no election "e"/);
});

test('10,000 terms are read in pages, from the newest, with the gap before each', () => {
  const path = scratch();
  const { writer } = writerOf(path);
  writer.store('test:');
  const all = Array.from({ length: 10_000 }, (_, at) => term(at + 1));
  writer.write([finding([...all, term(2n ** 70n, { fromUnixMs: 100_010, end: null })])]);
  const reader = readerOf(path);
  const election = reader.election('e', undefined);
  const tokens: string[] = [];
  let place: Place | undefined;
  do {
    const { rows, next } = recordedRows(reader, election, 0, 700, place);
    tokens.push(...rows.map(({ token }) => String(token)).reverse());
    const gaps = new Set(rows.map(({ gapBeforeMs }) => gapBeforeMs));
    expect([...gaps].filter((gap) => gap !== 2 && gap !== null)).toEqual([]);
    expect(gaps.has(null)).toBe(next === undefined);
    place = next;
  } while (place !== undefined);
  expect(tokens).toEqual([String(2n ** 70n), ...all.map(({ token }) => token).reverse()]);
  const recent = recordedRows(reader, election, 99_988, 700);
  expect(recent.rows.map(({ token, why }) => [token, why])).toEqual([
    ['9998', 'resigned'],
    ['9999', 'resigned'],
    ['10000', 'resigned'],
    [String(2n ** 70n), 'not-recorded'],
  ]);
  expect(recent.next).toBeUndefined();
});

test('a reader sees what the recorder has just written, and cannot write', () => {
  const path = scratch();
  const { writer } = writerOf(path);
  writer.store('one:');
  writer.store('two:');
  writer.write([finding([term(1)])]);
  const reader = readerOf(path);
  const election = reader.election('e', undefined);
  expect(reader.terms(election, 0, 10).terms).toEqual([term(1)]);
  writer.write([finding([term(2)]), finding([term(5)], { store: 2 })]);
  expect(reader.terms(election, 0, 10).terms).toEqual([term(2), term(1)]);
  expect(() => reader.election('e', undefined)).toThrow('give --store, one of one:, two:');
  expect(reader.election('e', 'two:')).not.toBe(election);
  expect(() => reader.election('e', 'three:')).toThrow('of the store three:, but of one:, two:');
  const other = openToRead(path, sqlite);
  onTestFinished(() => other.close());
  expect(() => other.exec('DELETE FROM terms')).toThrow(/readonly/);
});

test('a batch that fails leaves nothing behind', () => {
  const path = scratch();
  const { writer } = writerOf(path);
  writer.store('test:');
  const bad = term(2, { fromUnixMs: null as unknown as number });
  expect(() => writer.write([finding([term(1), bad])])).toThrow(/NOT NULL/);
  writer.write([finding([term(3)])]);
  expect(rowsOf(path)).toEqual([term(3)]);
});

test('the cause of a failure is told, also when SQLite has rolled back by itself', () => {
  const { database } = writerOf(scratch());
  const full = {
    prepare: database.prepare.bind(database),
    exec(sql: string) {
      database.exec(sql === 'COMMIT' ? 'ROLLBACK' : sql);
      if (sql === 'COMMIT') throw new Error('database or disk is full');
    },
    close: () => {},
  };
  const writer = new HistoryWriter(full, day);
  writer.store('test:');
  expect(() => writer.write([finding([term(1)])])).toThrow('database or disk is full');
});

test('a second recorder of a file is refused, until the first one is gone', () => {
  const path = scratch();
  const lock = lockForRecorder(path, sqlite);
  expect(() => lockForRecorder(path, sqlite)).toThrow(
    `another \`incumbent record\` writes to ${path}: end it first, or give another --to`,
  );
  lock.close();
  lockForRecorder(path, sqlite).close();
});

test('a second recorder is refused by whatever name it has the file', () => {
  const path = scratch();
  const directory = dirname(path);
  symlinkSync(directory, join(directory, 'here'));
  symlinkSync('history.db', join(directory, 'link.db'));
  const names = [path, join(directory, 'here', 'history.db'), join(directory, 'link.db')];
  for (const isMade of [false, true]) {
    if (isMade) openToWrite(path, sqlite).close();
    for (const name of names) {
      const lock = lockForRecorder(name, sqlite);
      for (const other of names) {
        expect(() => lockForRecorder(other, sqlite)).toThrow('another `incumbent record` writes');
      }
      lock.close();
    }
  }
  linkSync(path, join(directory, 'hard.db'));
  expect(() => lockForRecorder(path, sqlite)).toThrow(`${path} has 2 names (hard links)`);
  symlinkSync('round.db', join(directory, 'round.db'));
  expect(() => lockForRecorder(join(directory, 'round.db'), sqlite)).toThrow(/round\.db.*ELOOP/);
});

test('files that are no history are left alone, and named', () => {
  const text = scratch();
  writeFileSync(text, 'a text that is long enough to be no header of a database'.repeat(20));
  expect(() => openToWrite(text, sqlite)).toThrow(`${text} is not a file of SQLite`);
  const other = scratch();
  const database = new sqlite.DatabaseSync(other, {});
  database.exec('CREATE TABLE theirs (a)');
  database.close();
  expect(() => openToWrite(other, sqlite)).toThrow(`${other} is the database of another program`);
  const newer = scratch();
  const ours = openToWrite(newer, sqlite);
  ours.exec('PRAGMA user_version = 9');
  ours.close();
  expect(() => openToRead(newer, sqlite)).toThrow('made by a newer release (version 9');
  const none = scratch();
  expect(() => openToRead(none, sqlite)).toThrow('`incumbent record --to');
  expect(() => openToWrite(join(none, 'no', 'directory'), sqlite)).toThrow(
    'its directory must exist',
  );
});

test('without SQLite, the message says how to install it', () => {
  const load = (builtIns: Parameters<typeof loadSqlite>[1]) =>
    loadSqlite('/nowhere', builtIns, 'file:///nowhere/');
  expect(() => load(() => undefined)).toThrow(
    /neither in \/nowhere nor beside this command: npm install @photostructure\/sqlite(@1)?$/,
  );
  expect(load(() => sqlite)).toBe(sqlite);
});
