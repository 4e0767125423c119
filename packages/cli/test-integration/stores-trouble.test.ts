// Credentials, certificates, and the messages when either is wrong, or when elections cannot be
// held on the server. A password is in every place where one can stand, and in no output.
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  etcdAvailable,
  FakeApiServer,
  pgBouncerAvailable,
  postgresAvailable,
  redisAvailable,
  startEtcd,
  startPgBouncer,
  startPostgres,
  startPostgresStandby,
  startRedis,
} from '@incumbent/servers';
import { createCertificates } from '@incumbent/zookeeper-testing';
import type { TestContext } from 'vitest';
import { expect, onTestFinished, test } from 'vitest';
import type { Result } from './support/bin.ts';
import { incumbent, scratch } from './support/bin.ts';
import { writeKubeconfig } from './support/stores.ts';

const password = 'passw0rd-of-joe';
/** Shows all that an error has. */
const debug = { env: { INCUMBENT_DEBUG: '1' } };
type Place = Parameters<typeof incumbent>[1];

function need(missing: string | undefined, skip: TestContext['skip']): void {
  if (missing === undefined) return;
  if (process.env['CI'] === 'true') throw new Error(missing);
  skip(missing);
}

/** Closed when the test has ended. */
async function using<T extends { close(): Promise<unknown> }>(opening: Promise<T>): Promise<T> {
  const opened = await opening;
  onTestFinished(async () => {
    await opened.close();
  });
  return opened;
}

/** A command on the election `x`, to its end. Its output holds no password. */
async function on(store: string, command: readonly string[], place?: Place): Promise<Result> {
  const [name = '', ...rest] = command;
  const timeout = name === 'run' ? [] : ['--timeout', '30s'];
  const words = [name, '-e', 'x', '--store', store, ...timeout, ...rest];
  const result = await incumbent(words, place);
  expect(`${result.stdout}${result.stderr}`).not.toContain(password);
  return result;
}

async function works(store: string, place?: Place): Promise<void> {
  const result = await on(store, ['status'], place);
  expect(result).toMatchObject({ code: 0, stderr: '' });
  const url = /^store +(.*)$/m.exec(result.stdout)?.[1];
  expect(url).not.toContain(password);
}

async function fails(store: string, words: string | RegExp, place?: Place): Promise<void> {
  const result = await on(store, ['status'], place);
  expect(result.stderr).toMatch(words);
  expect(result).toMatchObject({ code: 69, stdout: '' });
}

async function findings(store: string, place?: Place): Promise<Result> {
  return on(store, ['doctor', '--watch-loop', '10ms', '--samples', '3'], place);
}

function secretFile(text: string): string {
  const path = join(scratch(), 'secret');
  writeFileSync(path, text);
  return path;
}

test('PostgreSQL: passwords, rights, databases', async ({ skip }) => {
  need(postgresAvailable(), skip);
  const directory = scratch();
  // The server is another user than we.
  chmodSync(directory, 0o755);
  const rules = join(directory, 'pg_hba.conf');
  writeFileSync(
    rules,
    'host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n',
  );
  const server = await using(startPostgres({ settings: { hba_file: rules } }));
  await server.sql(`create role joe login password '${password}'`);
  const at = (user: string, query = '') =>
    `postgres://${user}@127.0.0.1:${server.port}/postgres${query}`;
  const given = { env: { PGPASSWORD: password } };

  // Only its owner may make the table, and a look makes none.
  const nothing = await on(at('joe'), ['status'], given);
  expect(nothing).toMatchObject({
    code: 0,
    stderr: 'incumbent: the table "incumbent_election" does not exist (yet)\n',
  });
  const examined = await findings(at('joe'), given);
  expect(examined.stdout).toMatch(/^broken +table +there is no table .*`incumbent init`/m);
  expect(examined.stdout).toMatch(/^note +scratch +nothing is measured/m);
  expect(examined.code).toBe(1);
  const may = [
    'incumbent: there is no table "incumbent_election", and the user "joe" cannot make it: it may not ' +
      'create in the schema "public". Let the owner of the database run',
    `  incumbent schema postgres | psql -h 127.0.0.1 -p ${server.port} -d postgres`,
    'and then, in SQL',
    '  grant select, insert, update on "incumbent_election" to "joe";',
  ].join('\n');
  for (const command of [['init'], ['run', '--', 'true']]) {
    const refused = await on(at('joe'), command, given);
    expect(refused.stderr).toContain(may);
    expect(refused.code).toBe(69);
  }
  // A second one is not to be made by the owner either.
  const apart = await incumbent(['schema', 'postgres', '--table', 'app.incumbent_election']);
  await server.sql(`create schema app; ${apart.stdout}`);
  for (const command of [['init'], ['run', '--', 'true']]) {
    for (const user of ['joe', 'postgres']) {
      const refused = await on(at(user), command, given);
      expect(refused.stderr).toContain('but there is one in the schema "app"');
      expect(refused.stderr).toContain('`?table=app.incumbent_election` in a URL');
      expect(refused.code).toBe(69);
    }
  }
  await server.sql('drop schema app cascade');
  const printed = await incumbent(['schema', 'postgres']);
  await server.sql(`${printed.stdout}; grant select on incumbent_election to joe`);
  const limited = await findings(at('joe'), given);
  expect(limited.stdout).toMatch(
    /^broken +table .*joe may not insert, update: grant insert, update/m,
  );
  await server.sql('grant insert, update on incumbent_election to joe');
  const granted = await findings(at('joe'), given);
  expect(granted.stdout).toMatch(/^ok +table +"incumbent_election" is as it should be; joe may/m);
  // It cannot be removed without the right to delete.
  expect(granted.stdout).toMatch(/^note +scratch +the record of the election "incumbent-doctor"/m);
  expect(granted.code).toBe(0);

  const file = secretFile(`${password}\n`);
  const passFile = secretFile(`127.0.0.1:*:*:joe:${password}\n`);
  chmodSync(passFile, 0o600);
  await Promise.all([
    works(at('joe', `?password=file:${file}`)),
    works(at('joe', '?password=env:SECRET'), { env: { SECRET: password } }),
    works(at('joe'), { env: { PGPASSFILE: passFile } }),
  ]);
  await Promise.all([
    fails(
      at(`joe:${password}x`),
      /does not take our credentials \(password authentication failed/,
      debug,
    ),
    fails(at('joe'), /does not take our credentials .*PGPASSWORD, PGPASSFILE/),
    fails(`postgres://postgres@127.0.0.1:${server.port}/none`, 'database "none" does not exist'),
  ]);
  const run = await on(at(`joe:${password}`), ['run', '--', 'true']);
  expect(run).toMatchObject({ code: 0 });
  expect(run.stderr).toContain(
    `election x on postgres://joe:***@127.0.0.1:${server.port}/postgres\n`,
  );
});

test('PostgreSQL: a standby is no place for elections, and the primary beside it is found', async ({
  skip,
}) => {
  need(postgresAvailable(), skip);
  const primary = await using(startPostgres());
  const standby = await using(startPostgresStandby(primary));
  expect(await on(primary.url, ['init'])).toMatchObject({ code: 0 });
  const examined = await findings(standby.url);
  expect(examined.stdout).toMatch(/^broken +server .*is a read replica \(or not promoted yet\)/m);
  await fails(standby.url, /takes no writes .*read replica/);
  const several = `postgres://postgres@127.0.0.1:${standby.port},127.0.0.1:1,127.0.0.1:${primary.port}/postgres`;
  expect(await on(several, ['run', '--', 'true'])).toMatchObject({ code: 0 });
  expect((await findings(several)).stdout).toMatch(
    /^warn +replicas +1 replica follows, none sync/m,
  );
  await primary.kill();
  const alone = await on(several, ['status', '--timeout', '5s']);
  expect(alone.stderr).toMatch(/cannot be reached(?: within 5s \(--timeout\))?: /);
  expect(alone.code).toBe(69);
  await standby.promote();
  await works(several);
});

test('PostgreSQL: a pooler before it, and TLS', async ({ skip }) => {
  need(postgresAvailable() ?? pgBouncerAvailable(), skip);
  const tls = await createCertificates(join(scratch(), 'tls'));
  const server = await using(startPostgres({ tls }));
  const pooler = await using(startPgBouncer({ server }));
  expect(await on(server.url, ['init'])).toMatchObject({ code: 0 });
  const pooled = await findings(pooler.url);
  expect(pooled.stdout).toMatch(/^warn +wake-ups .*pooler.*listen=false/m);
  expect(pooled.code).toBe(0);
  expect((await findings(`${pooler.url}?listen=false`)).stdout).toMatch(
    /^note +wake-ups +listen=false/m,
  );
  expect(await on(pooler.url, ['run', '--', 'true'])).toMatchObject({ code: 0 });

  const ca = `sslrootcert=${tls.ca.path}`;
  expect((await findings(server.url)).stdout).toMatch(
    /^note +tls .*is not looked at \(sslmode=prefer\)/m,
  );
  const full = await findings(`${server.url}?sslmode=verify-full&${ca}`);
  expect(full.stdout).toMatch(/^ok +tls +the server's certificate and its name are checked/m);
  await Promise.all([
    works(server.url, { env: { PGSSLMODE: 'verify-full', PGSSLROOTCERT: tls.ca.path } }),
    works(`${server.url}?sslmode=verify-ca&${ca}`),
    fails(
      `${server.url}?sslmode=verify-full`,
      /certificate.*; sslrootcert \(PGSSLROOTCERT\) names whom to trust/i,
    ),
    fails(`${pooler.url}?sslmode=require`, /does not support SSL.*sslmode=disable/),
  ]);
  const none = await on(`${server.url}?sslrootcert=/none/ca.pem`, ['status']);
  expect(none.stderr).toContain('the file /none/ca.pem (sslrootcert of --store) cannot be read');
  expect(none.code).toBe(64);
});

test('Redis: passwords, TLS, replicas', async ({ skip }) => {
  need(redisAvailable(), skip);
  const tls = await createCertificates(join(scratch(), 'tls'));
  const [closed, secure, primary] = await Promise.all([
    using(startRedis({ arguments: ['--requirepass', password] })),
    using(startRedis({ tls })),
    using(startRedis({ arguments: ['--maxmemory', '64mb', '--maxmemory-policy', 'allkeys-lru'] })),
  ]);
  const replica = await using(startRedis({ replicaOf: primary }));
  const at = (who: string, query = '') => `redis://${who}127.0.0.1:${closed.port}${query}`;
  const file = secretFile(`${password}\n`);
  await Promise.all([
    works(at(`:${password}@`)),
    works(at('', `?password=file:${file}`)),
    works(at(''), { env: { REDIS_PASSWORD: password, REDISCLI_AUTH: 'another' } }),
  ]);
  await Promise.all([
    fails(at(''), /wants a password .*REDIS_PASSWORD or REDISCLI_AUTH/),
    fails(at(`:${password}x@`), /does not take our credentials \(WRONGPASS/, debug),
    fails(`rediss://127.0.0.1:${primary.port}`, /wants redis:\/\//),
    fails(`redis://127.0.0.1:${secure.port}`, /wants rediss:\/\//),
    fails(secure.url, /certificate.*; tls-ca names whom to trust/),
    works(`${secure.url}?tls-ca=${tls.ca.path}`),
  ]);
  expect(await on(at(`:${password}@`), ['run', '--lease', '2s', '--', 'true'])).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`election x on redis://:***@127.0.0.1:${closed.port}\n`),
  });
  const main = await findings(primary.url);
  expect(main.stdout).toMatch(
    /^warn +replicas .*1 replica, and confirms writes before they have them/m,
  );
  expect(main.stdout).toMatch(/^warn +eviction .*evicts any key .*allkeys-lru/m);
  expect((await findings(`${primary.url}?wait=1`)).stdout).toMatch(/^ok +replicas /m);
  const greedy = await findings(`${primary.url}?wait=2&durable=true`);
  expect(greedy.stdout).toMatch(
    /^broken +replicas .*1 replicas connected, and wait=2 asks for more/m,
  );
  expect(greedy.stdout).toMatch(/^broken +durability .*set appendonly yes and appendfsync always/m);
  const second = await findings(replica.url);
  expect(second.stdout).toMatch(/^broken +role .*is a read-only replica of 127\.0\.0\.1:\d+/m);
});

test('etcd: users, TLS, members that are away', async ({ skip }) => {
  need(etcdAvailable(), skip);
  const [closed, secure] = await Promise.all([
    using(startEtcd()),
    using(startEtcd({ tls: 'require' })),
  ]);
  for (const words of [
    ['user', 'add', `root:${password}`],
    ['user', 'add', `joe:${password}`],
    ['role', 'add', 'elections'],
    ['role', 'grant-permission', 'elections', '--prefix=true', 'readwrite', '/e/'],
    ['user', 'grant-role', 'joe', 'elections'],
    ['user', 'grant-role', 'root', 'root'],
    ['auth', 'enable'],
  ]) {
    await closed.etcdctl(...words);
  }
  const at = (who: string, query = '', root = '/e') =>
    `etcd://${who}${closed.endpoint}${root}${query}`;
  const file = secretFile(`${password}\n`);
  await Promise.all([
    works(at('joe@', `?password=file:${file}`)),
    works(at(''), { env: { ETCDCTL_USER: `joe:${password}` } }),
    fails(at(''), /wants to know users: set ETCDCTL_USER=name:password/),
    fails(at(`joe:${password}x@`), /does not take our credentials: .*ETCDCTL_USER/, debug),
    fails(at(`joe:${password}@`, '', '/other'), /does not let this user do what an election needs/),
  ]);
  expect(await on(at(`joe:${password}@`), ['run', '--', 'true'])).toMatchObject({ code: 0 });
  const examined = await findings(at(`joe:${password}@`));
  expect(examined).toMatchObject({ code: 0, stderr: '' });
  // Its record is gone again, also from where a password is asked for.
  expect(examined.stdout).not.toMatch(/^note +scratch /m);

  const { ca, client } = secure.certificates as NonNullable<typeof secure.certificates>;
  const trust = `tls-ca=${ca.path}`;
  const ours = `tls-cert=${client.certificate.path}&tls-key=${client.key.path}`;
  await Promise.all([
    works(`etcds://${secure.endpoint}?${trust}&${ours}`),
    works(`etcd://${secure.endpoint}?tls=true`, {
      env: {
        ETCDCTL_CACERT: ca.path,
        ETCDCTL_CERT: client.certificate.path,
        ETCDCTL_KEY: client.key.path,
      },
    }),
    fails(`etcds://${secure.endpoint}?${ours}`, /certificate.*; tls-ca names whom to trust/),
    fails(`etcd://${secure.endpoint}`, /wants etcds:\/\//),
    fails(`etcds://${closed.endpoint}?${trust}`, /wants etcd:\/\//),
  ]);
  const partly = await findings(`etcds://127.0.0.1:1,${secure.endpoint}?${trust}&${ours}`);
  expect(partly.stdout).toMatch(
    /^warn +member +does not serve: connect ECONNREFUSED 127\.0\.0\.1:1$/m,
  );
  expect(partly.stdout).toMatch(/^ok +quorum +1 of 2 named members serve, one leader$/m);
  expect(partly.code).toBe(0);
});

test('--lease is the lease of etcd, and contradicts no other', async ({ skip }) => {
  need(etcdAvailable(), skip);
  const server = await using(startEtcd());
  const at = (query: string) => `etcd://${server.endpoint}?election-timeout=100ms${query}`;
  const program = ['--', 'sh', '-c', 'echo "lease $INCUMBENT_LEASE_MS"'];
  const both = on(at('&ttl=5s'), ['run', '--lease', '4s', ...program]);
  const odd = on(at(''), ['run', '--lease', '4500ms', ...program]);
  const [one, other] = await Promise.all([
    on(at(''), ['run', '--lease', '4s', ...program]),
    on(at('&ttl=5s'), ['run', ...program]),
  ]);
  expect(one.stdout).toBe('lease 4000\n');
  expect(other.stdout).toBe('lease 5000\n');
  expect(await both).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('--lease 4s and the ttl=5s of --store differ'),
  });
  expect(await odd).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('is not a whole number of seconds'),
  });
});

test('Kubernetes: tokens, rights, kubeconfigs', async () => {
  const server = await using(FakeApiServer.start());
  const tokens = {
    joe: password,
    reader: 'the-reader',
    one: 'the-one',
    nobody: `${password}-of-nobody`,
  };
  for (const [user, token] of Object.entries(tokens)) {
    if (user !== 'nobody') server.accounts.addToken(token, user);
  }
  server.accounts.allow('joe', { verbs: ['get', 'create', 'update'] });
  server.accounts.allow('reader', { verbs: ['get', 'watch'] });
  server.accounts.allow(
    'one',
    { verbs: ['get', 'update', 'watch'], names: ['x'] },
    { verbs: ['create'] },
  );
  const config = writeKubeconfig(scratch(), server, tokens);
  const at = (context: string) => `k8s://?kubeconfig=${config}&context=${context}`;
  await Promise.all([
    works(`k8s://other?kubeconfig=${config}`),
    works('k8s://', { env: { KUBECONFIG: config } }),
    fails(
      at('nobody'),
      /does not know us by the kubeconfig .*, context nobody \(401: Unauthorized\)/,
      debug,
    ),
  ]);
  expect(await on(at('joe'), ['run', '--', 'true'])).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`election x on k8s://other?kubeconfig=${config}&context=joe\n`),
  });
  const reading = await on(at('reader'), ['run', '--', 'true']);
  expect(reading.stderr).toMatch(/needs the verb "update" .*`incumbent schema kubernetes`/);
  expect(reading.code).toBe(69);
  expect((await findings(at('reader'))).stdout).toMatch(
    /^broken +rights +we may not create, update .*`incumbent schema kubernetes --namespace other`/m,
  );
  const polling = await findings(at('joe'));
  expect(polling.stdout).toMatch(/^warn +rights +we may not watch .*found by polling/m);
  expect(polling.stdout).toMatch(/^note +clock +not known: .*no right to delete one/m);
  // Of a Role for one election nothing more is asked for.
  const one = await findings(at('one'));
  expect(one.stdout).toMatch(/^ok +rights /m);
  expect(one.stdout).toMatch(
    /^note +scratch +nothing is measured: we may not make a Lease of our own/m,
  );
  expect(one.code).toBe(0);

  const damaged = secretFile(`users: [{ name: joe, token: ${password}`);
  for (const [store, words] of [
    [at('none'), /the kubeconfig has no context "none"; it has "joe", "reader", "one", "nobody"/],
    [
      'k8s://ops?kubeconfig=/none/config',
      /the kubeconfig \/none\/config of --store cannot be read/,
    ],
    [`k8s://ops?kubeconfig=${damaged}`, /is no YAML \([A-Z_]+\)/],
    ['k8s://ops?in-cluster=true', /runs in no Pod of Kubernetes/],
  ] as const) {
    const result = await on(store, ['status']);
    expect(result.stderr).toMatch(words);
    expect([64, 69]).toContain(result.code);
  }
});
