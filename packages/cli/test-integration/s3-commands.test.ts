// The command on a stand-in for S3: its work there, and its messages when that fails. The secret is
// in no output.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FakeS3Options, S3Credentials } from '@incumbent/servers';
import { cephDialect, FakeS3, ownerCredentials } from '@incumbent/servers';
import { expect, onTestFinished, test } from 'vitest';
import type { Result } from './support/bin.ts';
import { incumbent, scratch } from './support/bin.ts';

async function start(options: FakeS3Options = {}): Promise<FakeS3> {
  const server = await FakeS3.start(options);
  onTestFinished(() => server.close());
  return server;
}

const urlOf = ({ url }: FakeS3) => `s3://elections/e?endpoint=${url}`;

/** Nothing of the machine's own is looked at. */
const environment = ({ accessKeyId, secretAccessKey }: S3Credentials) => ({
  AWS_ACCESS_KEY_ID: accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
  AWS_EC2_METADATA_DISABLED: 'true',
});

async function on(
  store: string,
  words: readonly string[],
  env: Readonly<Record<string, string>> = environment(ownerCredentials),
): Promise<Result> {
  const [command = '', ...rest] = words;
  const timeout = command === 'run' ? [] : ['--timeout', '30s'];
  const args = [command, '-e', 'x', '--store', store, ...timeout, ...rest];
  const result = await incumbent(args, { env });
  expect(`${result.stdout}${result.stderr}`).not.toContain(ownerCredentials.secretAccessKey);
  return result;
}

const findings = async (server: FakeS3, credentials?: S3Credentials): Promise<Result> =>
  on(
    urlOf(server),
    ['doctor', '--watch-loop', '10ms', '--samples', '3'],
    environment(credentials ?? ownerCredentials),
  );

test('a program runs while its candidate leads, and status shows it', async () => {
  const server = await start();
  const store = urlOf(server);
  const print = `console.log('token ' + process.env.INCUMBENT_TOKEN)`;
  const ran = await on(store, ['run', '--once', '--', process.execPath, '-e', print]);
  expect(ran).toMatchObject({ code: 0 });
  expect(ran.stdout).toContain('token 1');
  expect(ran.stderr).not.toContain('NodeVersionSupportWarning');
  const status = await on(store, ['status']);
  expect(status).toMatchObject({ code: 0, stderr: '' });
  expect(status.stdout).toMatch(/^store +s3:\/\/elections\/e\/\?endpoint=/m);
  expect((await on(store, ['history'])).stdout).toContain('work-finished');
  expect(server.bucket.keys).toEqual(['e/.incumbent-probe', 'e/x']);
  expect(server.unexpected).toEqual([]);
});

test('doctor has ten writers race, and leaves nothing but the probe', async () => {
  const server = await start();
  const result = await findings(server);
  expect(result).toMatchObject({ code: 0, stderr: '' });
  expect(result.stdout).toMatch(
    /^ok +conditions +honoured: of 10 who wrote .* exactly one won, 4 times \(ETags quoted\)$/m,
  );
  expect(result.stdout).toMatch(/^ok +versioning +off/m);
  expect(result.stdout).toMatch(/^note +clock +the clock of the server is/m);
  expect(result.stdout).toMatch(/^note +writes +3 times/m);
  expect(result.stdout).toMatch(/^nothing broken/m);
  expect(server.bucket.keys).toEqual(['e/.incumbent-probe']);
  expect(server.unexpected).toEqual([]);
});

test('doctor on an endpoint that wants no quotes, and one with versions', async () => {
  const server = await start({ dialect: cephDialect });
  server.versioning = true;
  const { stdout } = await findings(server);
  expect(stdout).toContain('exactly one won, 4 times (ETags unquoted)');
  expect(stdout).toMatch(/^warn +versioning +on: each leader leaves 9,600 versions/m);
});

test.each([[['if-match']], [['if-none-match']], [['if-match', 'if-none-match']]] as const)(
  'an endpoint that ignores %j is refused by doctor and by run',
  async (ignores) => {
    const server = await start({ dialect: { ignores } });
    const result = await findings(server);
    expect(result.code).toBe(1);
    expect(result.stdout).toMatch(/^broken +server +this S3 endpoint ignores If-/m);
    expect(result.stdout).toContain('no election can be held on it');
    const ran = await on(urlOf(server), ['run', '--', 'true']);
    expect(ran.code).toBe(69);
    expect(ran.stderr).toContain('this S3 endpoint ignores If-');
  },
);

test('without the right to remove, doctor says that an object stays; without the right to write, which right is missing', async () => {
  const server = await start();
  const some = { accessKeyId: 'SOME', secretAccessKey: 'of-some' };
  server.allow(some, ['s3:GetObject', 's3:PutObject', 's3:ListBucket']);
  const first = await findings(server, some);
  expect(first).toMatchObject({ code: 0 });
  expect(first.stdout).toMatch(/^ok +rights +.* and not remove them/m);
  expect(first.stdout).toMatch(/^ok +conditions +honoured: /m);
  expect(server.bucket.keys).toEqual([
    'e/.incumbent-doctor-race',
    'e/.incumbent-probe',
    'e/incumbent-doctor',
  ]);
  // Again: what it made is there already.
  expect((await findings(server, some)).stdout).toMatch(/^ok +conditions +honoured/m);
  const few = { accessKeyId: 'FEW', secretAccessKey: 'of-few' };
  server.allow(few, ['s3:GetObject', 's3:ListBucket']);
  const second = await findings(server, few);
  expect(second.code).toBe(1);
  expect(second.stdout).toMatch(/^broken +server +.*AccessDenied.*s3:PutObject/m);
});

test('each fault has its message', async () => {
  const server = await start();
  const unreachable = 's3://elections?endpoint=http://127.0.0.1:1';
  for (const [store, words, env] of [
    [`s3://nobodys?endpoint=${server.url}`, /NoSuchBucket \(404\).*make the bucket/],
    [
      urlOf(server),
      /no credentials .*set AWS_ACCESS_KEY_ID/,
      { AWS_EC2_METADATA_DISABLED: 'true' },
    ],
    [
      urlOf(server),
      /SignatureDoesNotMatch/,
      environment({ accessKeyId: 'OWNER', secretAccessKey: 'x' }),
    ],
    [
      unreachable,
      /the S3 bucket elections at http:\/\/127\.0\.0\.1:1 cannot be reached: .*ECONNREFUSED/,
    ],
    [
      urlOf(server).replace('http:', 'https:'),
      /an endpoint that speaks no TLS there wants endpoint=http/,
    ],
  ] as const) {
    const result = await on(store, ['status', '--timeout', '20s'], env);
    expect(result.stderr).toMatch(words);
    expect(result).toMatchObject({ code: 69, stdout: '' });
  }
});

test('doctor judges the lease of object stores where the bucket is away', async () => {
  const result = await on('s3://elections?endpoint=http://127.0.0.1:1', [
    'doctor',
    '--watch-loop',
    '10ms',
  ]);
  expect(result.code).toBe(69);
  expect(result.stdout).toMatch(/^note +timing +lease D 45s/m);
});

test('TLS by an authority of one’s own', async () => {
  const server = await start({ tls: true });
  const ca = join(scratch(), 'ca.pem');
  writeFileSync(ca, server.certificates?.ca.text ?? '');
  const refused = await on(urlOf(server), ['status']);
  expect(refused.stderr).toContain('; tls-ca names whom to trust');
  expect(await on(`${urlOf(server)}&tls-ca=${ca}`, ['status'])).toMatchObject({ code: 0 });
});
