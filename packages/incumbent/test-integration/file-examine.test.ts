import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { examineElection, file } from '../src/backends/file/index.ts';
import { createElection } from '../src/index.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'incumbent-examine-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
});

/** An election with some records, of which the newest is `records[0]`. */
async function heldElection(): Promise<{ path: string; records: string[] }> {
  const election = createElection({ name: 'jobs', backend: file(directory) });
  const term = await election.campaign();
  for (const mark of ['a', 'b', 'c']) await term.proclaim({ metadata: { mark } });
  await term[Symbol.asyncDispose]();
  await election.close();
  const path = join(directory, 'jobs');
  const records = readdirSync(path).filter((name) => /^\d+$/.test(name));
  return { path, records: records.sort().reverse() };
}

test('an election that nobody has held is not there, and looking does not make it', async () => {
  expect(await examineElection(directory, 'jobs')).toMatchObject({ exists: false, records: 0 });
  expect(readdirSync(directory)).toEqual([]);
});

test('an election in order has records, and nothing foreign or damaged', async () => {
  const { records } = await heldElection();
  expect(await examineElection(directory, 'jobs')).toEqual({
    path: join(directory, 'jobs'),
    exists: true,
    records: records.length,
    temporaries: 0,
    foreign: [],
    damaged: [],
  });
});

test('foreign names are told apart from unfinished files', async () => {
  const { path } = await heldElection();
  writeFileSync(join(path, 'notes.txt'), '');
  writeFileSync(join(path, `.tmp-${process.pid}-0123456789abcdef`), '');
  expect(await examineElection(directory, 'jobs')).toMatchObject({
    temporaries: 1,
    foreign: ['notes.txt'],
    damaged: [],
  });
});

test('a damaged record is named, and whether it stops the election', async () => {
  const { path, records } = await heldElection();
  const [newest = '', , older = ''] = records;
  writeFileSync(join(path, older), 'garbage');
  writeFileSync(join(path, newest), '');
  const { damaged } = await examineElection(directory, 'jobs');
  expect(damaged.map(({ isNewest, error }) => [isNewest, error.code, error.message])).toEqual([
    [false, 'RECORD_DAMAGED', expect.stringContaining(older)],
    [true, 'RECORD_DAMAGED', expect.stringContaining(newest)],
  ]);
});

test('a record of a newer version is named as such', async () => {
  const { path, records } = await heldElection();
  writeFileSync(join(path, records[0] ?? ''), '{"format":99}\n');
  const { damaged } = await examineElection(directory, 'jobs');
  expect(damaged).toMatchObject([{ isNewest: true, error: { code: 'RECORD_TOO_NEW' } }]);
});

test('a name that leads out of the store is refused', async () => {
  await expect(examineElection(directory, '../jobs')).rejects.toThrow('must not contain "/"');
});
