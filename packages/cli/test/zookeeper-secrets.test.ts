import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { CommandError } from '../src/failure.ts';
import { readSecrets, readTls } from '../src/zookeeper/secrets.ts';
import { UnusableZooKeeperError } from '../src/zookeeper/unusable.ts';
import { parseZooKeeperUrl } from '../src/zookeeper/url.ts';

const secret = 's3cret';

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'incumbent-secrets-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

const read = (query: string, env: Record<string, string> = {}, cwd = '/') =>
  readSecrets(parseZooKeeperUrl(`zk://h?${query}`, '--store'), { env, cwd });

async function refusal(promise: Promise<unknown>): Promise<CommandError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof CommandError)) throw new Error(`not refused: ${String(error)}`);
  return error;
}

test('credentials of all places count, in order; the sasl of the URL wins', async () => {
  const cwd = directory();
  writeFileSync(join(cwd, 'auth'), 'digest:c:3\r\n\nx509:CN=d:e\n');
  writeFileSync(join(cwd, 'sasl'), 'joe:pass:word\n');
  const env = {
    INCUMBENT_ZK_AUTH: 'digest:a:1',
    INCUMBENT_ZK_SASL: 'else:x',
    MORE: 'digest:b:2\n',
  };
  const query = 'auth=env:MORE&auth=file:auth&auth=digest:e:4&sasl=file:sasl';
  expect(await read(query, env, cwd)).toEqual({
    auth: [
      { scheme: 'digest', credentials: 'a:1' },
      { scheme: 'digest', credentials: 'b:2' },
      { scheme: 'digest', credentials: 'c:3' },
      { scheme: 'x509', credentials: 'CN=d:e' },
      { scheme: 'digest', credentials: 'e:4' },
    ],
    sasl: { username: 'joe', password: 'pass:word' },
  });
  expect(await read('', { INCUMBENT_ZK_SASL: 'joe:x', INCUMBENT_ZK_AUTH: '' })).toEqual({
    auth: [],
    sasl: { username: 'joe', password: 'x' },
  });
  expect(await read('')).toEqual({ auth: [] });
});

test.each([
  ['auth=env:GONE', {}, 'the variable GONE (auth of --store) is not set'],
  ['auth=env:EMPTY', { EMPTY: '' }, 'the variable EMPTY (auth of --store) is not set'],
  ['auth=env:A', { A: secret }, 'the variable A is not SCHEME:CREDENTIALS'],
  [
    '',
    { INCUMBENT_ZK_AUTH: `digest:a:b\n${secret}` },
    'INCUMBENT_ZK_AUTH is not SCHEME:CREDENTIALS',
  ],
  ['sasl=env:S', { S: `${secret}` }, 'the variable S is not USER:PASSWORD'],
  [
    '',
    { INCUMBENT_ZK_SASL: `joe:${secret}\nmore` },
    'the variable INCUMBENT_ZK_SASL is not USER:PASSWORD',
  ],
  [
    'auth=file:/nowhere/at/all',
    {},
    'the file /nowhere/at/all (auth of --store) cannot be read: ENOENT',
  ],
] as const)('%s with %j is refused, and no secret repeated', async (query, env, words) => {
  const error = await refusal(read(query, env));
  expect(error).toMatchObject({ code: 'BAD_CREDENTIALS', exitCode: 64 });
  expect(error.message).toContain(words);
  expect(error.message).not.toContain(secret);
});

test('an error that is shown with all that it has shows no secret', () => {
  const location = parseZooKeeperUrl(`zk://h?auth=digest:joe:${secret}`, '--store');
  const known = { location, servers: [], askedTimeoutMs: 1_000 };
  const error = new UnusableZooKeeperError('STORE_UNAVAILABLE', 'no', known);
  expect(location.parameters.auth).toHaveLength(1);
  expect(error.known).toMatchObject({ origin: '--store', limits: { sessionTimeoutMs: 1_000 } });
  expect(error.findings()).toMatchObject([{ check: 'quorum', level: 'broken' }]);
  expect(inspect(error, { depth: null, showHidden: true })).not.toContain(secret);
  expect(JSON.stringify(error)).not.toContain(secret);
});

test('TLS takes the contents of the files, and only with zks:', async () => {
  const cwd = directory();
  for (const name of ['ca', 'cert', 'key']) writeFileSync(join(cwd, `${name}.pem`), `the ${name}`);
  const at = (url: string, env = {}) =>
    readTls(parseZooKeeperUrl(url, 'INCUMBENT_STORE'), { env, cwd });
  const url = 'zks://h?tls-ca=ca.pem&tls-cert=cert.pem&tls-key=key.pem&tls-servername=zk';
  expect(await at(url, { INCUMBENT_ZK_TLS_PASSPHRASE: secret })).toEqual({
    ca: 'the ca',
    cert: 'the cert',
    key: 'the key',
    passphrase: secret,
    servername: 'zk',
  });
  expect(await at('zks://h')).toEqual({});
  expect(await at('zk://h')).toBeUndefined();
  expect((await refusal(at('zks://h?tls-ca=none.pem'))).message).toContain(
    'the file none.pem (tls-ca of INCUMBENT_STORE) cannot be read: ENOENT',
  );
});
