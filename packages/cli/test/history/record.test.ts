import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Backend } from 'incumbent';
import { createElection } from 'incumbent';
import { memory } from 'incumbent/memory';
import { expect, onTestFinished, test } from 'vitest';
import { invoke, jsonLines, Running } from '../support/invoke.ts';

function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), 'incumbent-record-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return join(directory, 'history.db');
}

/** Leads once, and resigns. */
async function lead(backend: Backend, name: string, id: string): Promise<void> {
  const election = createElection({ name, backend, candidate: { id } });
  const term = await election.campaign();
  await term[Symbol.asyncDispose]();
  await election.close();
}

/** Records until all that the store keeps is on file. */
async function recordOnce(backend: Backend, path: string, store = {}): Promise<void> {
  const recorder = new Running(['record', '--to', path, '--json'], { backend, store });
  await recorder.printed(/"event":"read"/);
  recorder.signal('SIGTERM');
  const { code, stderr } = await recorder.result;
  expect({ code, stderr }).toEqual({ code: 143, stderr: '' });
  expect(recorder.handlers).toBe(0);
}

test('terms that the store has dropped stay on file, and those from before the recorder are there', async () => {
  const backend = memory();
  const path = scratch();
  await lead(backend, 'nightly', 'first');
  await recordOnce(backend, path);
  for (let at = 0; at < 50; at += 1) await lead(backend, 'nightly', 'later');
  await lead(backend, 'other', 'else');
  const kept = await invoke(['history', '-e', 'nightly', '--json'], { backend });
  expect(jsonLines(kept.stdout).map(({ id }) => id)).not.toContain('first');
  await recordOnce(backend, path);
  const { code, stdout, stderr } = await invoke(
    ['history', '-e', 'nightly', '--from', path, '--json'],
    { openStore: () => Promise.reject(new Error('no store is asked')) },
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const terms = jsonLines(stdout);
  expect(terms.map(({ token }) => token)).toEqual(
    Array.from({ length: 51 }, (_, at) => String(at + 1)),
  );
  expect(terms[0]).toMatchObject({ id: 'first', why: 'resigned', gapBeforeMs: null });
  // The same as the store says.
  expect(terms.slice(2)).toEqual(jsonLines(kept.stdout).slice(1));
});

test('a term that begins and ends under the recorder is on file, with the changes of state', async () => {
  const backend = memory();
  const path = scratch();
  const recorder = new Running(['record', '--to', path, '--json'], { backend });
  await recorder.printed(/"event":"read"/);
  await lead(backend, 'nightly', 'a');
  const history = () => invoke(['history', '-e', 'nightly', '--from', path]);
  await expect.poll(async () => (await history()).stdout, { timeout: 60_000 }).toMatch(/resigned/);
  recorder.signal('SIGINT');
  expect((await recorder.result).code).toBe(130);
});

test.each([
  [['record', '--to', 'h.db', '--keep', '90'], '--keep "90" is not a duration: write 90d'],
  [['record', '--to', 'h.db', '--keep', '1s'], '--keep 1s: give 1m or more'],
  [['record', '--to', '/no/such/h.db'], 'its directory must exist'],
  [['record', '--to', 'h.db', '--store', 'a', '--store', 'a'], '--store test: is given twice'],
  [['history', '-e', 'x', '--since', '3d'], 'give --from, or leave it out'],
  [['history', '-e', 'x', '--from', '/no/h.db', '--since', 'long'], '--since "long" is not'],
  [['history', '-e', 'x', '--from', '/no/h.db'], '`incumbent record --to /no/h.db` makes it'],
  [['history', '-e', 'x', '--from', '/no/h.db', '--timeout', '3s'], 'cannot be used with'],
  [
    ['dashboard', '--store', 'file:/s', '--history', '/no/h.db'],
    '`incumbent record --to /no/h.db` makes it',
  ],
])('%j is refused', async (argv, words) => {
  const { code, stdout, stderr } = await invoke(argv);
  expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  expect(stderr).toContain(words);
});

test('an election that goes while no recorder runs is gone, and its last term does not lead', async () => {
  const backend = memory();
  const path = scratch();
  const other = createElection({ name: 'other', backend });
  const election = createElection({ name: 'nightly', backend, candidate: { id: 'a' } });
  const terms = [await election.campaign(), await other.campaign()];
  await recordOnce(backend, path);
  const history = async (name: string) =>
    (await invoke(['history', '-e', name, '--from', path], { backend })).stdout;
  expect(await history('nightly')).toMatch(/leads/);
  const survey = async function* (options: Parameters<typeof backend.survey>[0]) {
    for await (const each of backend.survey(options)) if (each.name !== 'nightly') yield each;
  };
  await recordOnce({ ...backend, open: backend.open.bind(backend), survey }, path);
  expect(await history('nightly')).toMatch(/not-recorded/);
  expect(await history('other')).toMatch(/leads/);
  for (const term of terms) await term[Symbol.asyncDispose]();
  await Promise.all([election.close(), other.close()]);
});

test('a store of the file is found by the URL with its password, which is not shown', async () => {
  const backend = memory();
  const path = scratch();
  await lead(backend, 'nightly', 'a');
  const url = 'postgres://user:***@db.example:5432/incumbent';
  const recorder = new Running(['record', '--to', path, '--json'], { backend, store: { url } });
  await recorder.printed(/"event":"read"/);
  recorder.signal('SIGTERM');
  await recorder.result;
  const history = (store: string) =>
    invoke(['history', '-e', 'nightly', '--from', path, '--store', store]);
  const { code, stdout } = await history('postgres://user:s3cret@db.example/incumbent');
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringMatching(/resigned/) });
  const { stderr } = await history('postgres://user:s3cret@other.example/incumbent');
  expect(stderr).toContain('of the store postgres://user:***@other.example:5432/incumbent, but of');
  expect(stderr).not.toContain('s3cret');
});

test('two recorders of one file: the second one is refused, and the first goes on', async () => {
  const backend = memory();
  const path = scratch();
  const first = new Running(['record', '--to', path, '--json'], { backend });
  await first.printed(/"event":"read"/);
  const second = await invoke(['record', '--to', path], { backend });
  expect(second).toMatchObject({ code: 1, stdout: '' });
  expect(second.stderr).toContain(`another \`incumbent record\` writes to ${path}`);
  first.signal('SIGTERM');
  await first.result;
  await recordOnce(backend, path);
});

test('the dashboard answers with the terms of the file, in pages, and names what is wrong', async () => {
  const backend = memory();
  const path = scratch();
  await lead(backend, 'a/b ü', 'host-7');
  const store = { url: 'file:/s' };
  await recordOnce(backend, path, store);
  const options = ['--store', 'file:/s', '--history', path, '--listen', '127.0.0.1:0', '--json'];
  const page = new Running(['dashboard', ...options], { backend, store });
  await page.printed(/"serving"/);
  const [{ url }] = jsonLines(page.stdout) as [{ url: string }];
  const ask = async (query: Readonly<Record<string, string>>) => {
    const response = await fetch(new URL(`/history?${new URLSearchParams(query)}`, url));
    return { status: response.status, ...((await response.json()) as object) };
  };
  expect(await ask({ store: '0', election: 'a/b ü', since: '0' })).toMatchObject({
    status: 200,
    next: null,
    terms: [{ token: '1', id: 'host-7', why: 'resigned', gapBeforeMs: null }],
  });
  const before = await ask({ store: '0', election: 'a/b ü', since: '0', before: '1 1 ' });
  expect(before).toEqual({ status: 200, next: null, terms: [] });
  expect(await ask({ store: '3', election: 'x', since: '0' })).toEqual({
    status: 409,
    error: 'there is no store 3',
  });
  expect(await ask({ store: '0', election: 'x', since: '-1' })).toMatchObject({ status: 409 });
  expect(await ask({ store: '0', election: 'x', since: '0' })).toMatchObject({
    error: expect.stringContaining('no election "x"'),
  });
  page.signal('SIGTERM');
  await page.result;
});
