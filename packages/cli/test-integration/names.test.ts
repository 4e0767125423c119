// The elections of each store. A misspelt one: the names that are suggested, and the objects that `init` and
// `run` make.
import { readdirSync } from 'node:fs';
import {
  FakeGcs,
  FakeS3,
  ownerCredentials,
  postgresAvailable,
  startPostgres,
} from '@incumbent/servers';
import { serverAvailable } from '@incumbent/zookeeper-testing';
import { expect, onTestFinished, test } from 'vitest';
import { incumbent, jsonLines, scratch } from './support/bin.ts';
import { kinds, sharedStores } from './support/stores.ts';
import { sharedServer } from './support/zookeeper.ts';

const store = sharedStores();
const zooKeeper = sharedServer();
const zooKeeperMissing = serverAvailable();

/**
 * A candidate has led `nightly` and is gone. `list` shows that. Then a command asks for another name.
 */
async function misspelt(
  url: string,
  lease: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const at = ['--store', url];
  const ran = await incumbent(
    ['run', '-e', 'nightly', ...at, '--lease', lease, '--', process.execPath, '-e', ''],
    { env },
  );
  expect(ran).toMatchObject({ code: 0 });
  const listed = await incumbent(['list', '--json', ...at, '--timeout', '60s'], { env });
  expect(listed).toMatchObject({ code: 0, stderr: '' });
  expect(jsonLines(listed.stdout).filter(({ election }) => election === 'nightly')).toMatchObject([
    { state: 'vacant', leader: null, previous: { why: 'work-finished' } },
  ]);
  const looked = await incumbent(['status', '-e', 'nigthly', ...at, '--timeout', '60s'], { env });
  expect(looked).toMatchObject({ code: 0 });
  expect(looked.stdout).toContain('vacant');
  return looked.stderr;
}

for (const { name, missing, lease } of kinds) {
  test(`${name}: a misspelt election is told with the one that is meant`, async ({ skip }) => {
    if (missing !== undefined) skip(missing);
    // Redis waits that long. A busy machine needs seconds to start a program, which needs its lease.
    expect(await misspelt(store(name).url, name === 'etcd' ? lease : '5s')).toContain(
      'did you mean "nightly"?',
    );
  });
}

test('a directory: a misspelt election is told with the one that is meant', async () => {
  const directory = scratch();
  const meant = 'does not exist (yet); did you mean "nightly"?\n';
  expect(await misspelt(`file:${directory}`, '2s')).toContain(meant);
  const [note] = jsonLines(
    (await incumbent(['status', '-e', 'x', '--json', '--store', `file:${directory}`])).stderr,
  );
  expect(note).toMatchObject({
    note: { message: expect.stringContaining('; there is "nightly"') },
  });
});

test('S3: a misspelt election is told with the one that is meant', async () => {
  const server = await FakeS3.start();
  onTestFinished(() => server.close());
  const { accessKeyId, secretAccessKey } = ownerCredentials;
  const env = {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_EC2_METADATA_DISABLED: 'true',
  };
  const url = `s3://elections/e?endpoint=${server.url}`;
  expect(await misspelt(url, '10s', env)).toContain('did you mean "nightly"?');
});

test('Cloud Storage: a misspelt election is told with the one that is meant', async () => {
  const server = await FakeGcs.start();
  onTestFinished(() => server.close());
  const url = `gs://elections/e?endpoint=${server.url}&writes-per-second=50`;
  expect(await misspelt(url, '10s')).toContain('did you mean "nightly"?');
});

test('ZooKeeper: a misspelt election is told with the one that is meant', async ({ skip }) => {
  if (zooKeeperMissing !== undefined) skip(zooKeeperMissing);
  const url = `${zooKeeper().connectionString}/names`;
  // It makes the chroot, and the node above the elections.
  expect(await incumbent(['init', '--store', url])).toEqual({
    code: 0,
    stdout: `made the chroot /names and the node /incumbent: elections can be held on ${url}\n`,
    stderr: '',
  });
  expect((await incumbent(['init', '--store', url])).stdout).toContain('nothing is missing on zk:');
  expect(await misspelt(url, '4s')).toContain('does not exist (yet); did you mean "nightly"?\n');
});

test('a directory: init makes it, and leaves nothing in it', async () => {
  const directory = `${scratch()}/a/b`;
  const init = () => incumbent(['init', '--store', `file:${directory}`]);
  expect(await init()).toEqual({
    code: 0,
    stdout: `made the directory ${directory}: elections can be held on file:${directory}\n`,
    stderr: '',
  });
  expect((await init()).stdout).toContain('nothing is missing on file:');
  expect(readdirSync(directory)).toEqual([]);
});

test('PostgreSQL: run makes the table, and says so; so does init without an election', async ({
  skip,
}) => {
  const missing = postgresAvailable();
  if (missing !== undefined) skip(missing);
  const server = await startPostgres();
  onTestFinished(() => server.close());
  const at = ['--store', server.url];
  const run = ['run', '-e', 'x', ...at, '--lease', '4s', '--', process.execPath, '-e', ''];
  const ran = await incumbent(run);
  expect(ran.code).toBe(0);
  expect(ran.stderr).toContain('incumbent: made the table "incumbent_election", which was missing');
  expect((await incumbent(run)).stderr).not.toContain('made');
  const init = ['init', '--json', '--store', `${server.url}?table=mine`];
  expect(jsonLines((await incumbent(init)).stdout)).toMatchObject([{ made: 'the table "mine"' }]);
  expect(jsonLines((await incumbent(init)).stdout)).toMatchObject([{ made: null }]);
});

test('a candidate that begins another election is told that one of nearly its name has been led', async () => {
  const at = ['--store', `file:${scratch()}`];
  const run = (election: string) =>
    incumbent(['run', '-e', election, ...at, '--', process.execPath, '-e', '']);
  expect((await run('nightly')).stderr).not.toContain('did you mean');
  expect((await run('nigthly')).stderr).toContain(
    'this store has no record of a leader of election "nigthly"; did you mean "nightly"?\n',
  );
  // Now it has been led itself.
  expect((await run('nigthly')).stderr).not.toContain('did you mean');
});
