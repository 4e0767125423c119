// The command on a stand-in for Cloud Storage: its work there, and its messages when that fails.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FakeGcs } from '@incumbent/servers';
import { expect, onTestFinished, test } from 'vitest';
import type { Result } from './support/bin.ts';
import { incumbent, scratch } from './support/bin.ts';

async function start(): Promise<FakeGcs> {
  const server = await FakeGcs.start();
  onTestFinished(() => server.close());
  return server;
}

const urlOf = ({ url }: FakeGcs) => `gs://elections/e?endpoint=${url}&writes-per-second=50`;

async function on(store: string, words: readonly string[]): Promise<Result> {
  const [command = '', ...rest] = words;
  const timeout = command === 'run' ? [] : ['--timeout', '30s'];
  return incumbent([command, '-e', 'x', '--store', store, ...timeout, ...rest], {});
}

const findings = (server: FakeGcs) =>
  on(urlOf(server), ['doctor', '--watch-loop', '10ms', '--samples', '3']);

test('a program runs while its candidate leads, and status shows it', async () => {
  const server = await start();
  const store = urlOf(server);
  const print = `console.log('token ' + process.env.INCUMBENT_TOKEN)`;
  const ran = await on(store, ['run', '--once', '--', process.execPath, '-e', print]);
  expect(ran).toMatchObject({ code: 0 });
  expect(ran.stdout).toContain('token 1');
  const status = await on(store, ['status']);
  expect(status).toMatchObject({ code: 0, stderr: '' });
  expect(status.stdout).toMatch(/^store +gs:\/\/elections\/e\/\?endpoint=/m);
  expect((await on(store, ['history'])).stdout).toContain('work-finished');
  expect(server.bucket.names).toEqual(['e/x']);
});

test('doctor has ten writers race, and leaves nothing', async () => {
  const server = await start();
  const result = await findings(server);
  expect(result).toMatchObject({ code: 0, stderr: '' });
  expect(result.stdout).toMatch(
    /^ok +conditions +honoured: of 10 who wrote .* exactly one won, 4 times$/m,
  );
  expect(result.stdout).toMatch(/^ok +rights +we may read, write and replace/m);
  expect(result.stdout).toMatch(/^ok +bucket +it keeps nothing/m);
  expect(result.stdout).toMatch(/^note +clock +the clock of the server is/m);
  expect(result.stdout).toMatch(/^note +writes +3 times/m);
  expect(result.stdout).toMatch(/^nothing broken/m);
  expect(server.bucket.names).toEqual([]);
});

test('doctor tells what a bucket keeps, and what the account lacks', async () => {
  const server = await start();
  server.bucket.versioning = true;
  server.bucket.softDeleteSeconds = 604_800;
  const kept = await findings(server);
  expect(kept.code).toBe(0);
  expect(kept.stdout).toMatch(/^warn +bucket +it keeps old versions: each leader leaves 9,600/m);
  expect(kept.stdout).toMatch(/^warn +bucket +it keeps what was replaced for 7d \(soft delete\)/m);
  expect(kept.stdout).toContain('buckets update gs://elections --clear-soft-delete');
  server.allowed = new Set(['storage.objects.get', 'storage.objects.create']);
  const lacking = await findings(server);
  expect(lacking.code).toBe(1);
  expect(lacking.stdout).toMatch(
    /^broken +rights +we lack storage\.objects\.delete: the role roles/m,
  );
  expect(lacking.stdout).toMatch(/^note +bucket +its settings are not known/m);
  expect(server.bucket.names).toEqual([]);
});

test('a bucket that keeps objects from being replaced is no place for an election', async () => {
  const server = await start();
  server.bucket.retentionSeconds = 3_600;
  const { code, stdout } = await on(urlOf(server), ['doctor', '--watch-loop', '10ms']);
  expect(code).not.toBe(0);
  expect(stdout).toMatch(/^broken +bucket +it keeps every object from being replaced/m);
});

test('doctor judges the lease of object stores where the bucket is away', async () => {
  const store = 'gs://elections?endpoint=http://127.0.0.1:1';
  const result = await on(store, ['doctor', '--watch-loop', '10ms']);
  expect(result.code).toBe(69);
  expect(result.stdout).toMatch(/^note +timing +lease D 45s/m);
});

test('each fault has its message', async () => {
  const server = await start();
  const noKey = join(scratch(), 'key.json');
  writeFileSync(noKey, '{');
  for (const [store, words] of [
    [`gs://nobodys?endpoint=${server.url}`, /specified bucket does not exist.*make the bucket/],
    [
      'gs://elections?endpoint=http://127.0.0.1:1',
      /the bucket elections of Cloud Storage at http:\/\/127\.0\.0\.1:1 cannot be reached: .*ECONNREFUSED/,
    ],
    [`gs://elections?key-file=${noKey}`, /the key-file .*key\.json cannot be used/],
  ] as const) {
    const result = await on(store, ['status', '--timeout', '20s']);
    expect(result.stderr).toMatch(words);
    expect(result).toMatchObject({ code: 69, stdout: '' });
  }
});
