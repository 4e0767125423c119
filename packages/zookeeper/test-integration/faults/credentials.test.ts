import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCertificates } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import type { ConnectError } from '../../src/index.ts';
import { AuthError, acl } from '../../src/index.ts';
import { expiredClientCertificate } from '../support/expired-certificate.ts';
import { refusedConnect } from '../support/refused-connect.ts';
import { needServers, scoped, sharedServer } from '../support/scope.ts';
import { nextState, refusal, settling } from '../support/waiting.ts';

describe.concurrent('SASL', () => {
  needServers();
  const server = sharedServer({ sasl: { users: { joe: 'secret' }, required: true } });
  const options = { sessionTimeoutMs: 20_000 };

  it(
    'the right password gives a session that is that user, also after a reconnect',
    scoped(async (scope) => {
      const proxy = await scope.proxy(server());
      const sasl = { username: 'joe', password: 'secret' };
      const client = await scope.connect(proxy.connectionString, { ...options, sasl });
      await client.create('/of-joe', 'x', { acl: [acl.sasl('joe')] });
      const session = client.session?.id;
      const [suspended, connected] = [
        nextState(client, 'suspended'),
        nextState(client, 'connected'),
      ];
      proxy.cut();
      await suspended;
      const queued = settling(client.get('/of-joe'));
      await proxy.pass();
      await connected;
      expect((await queued).value?.text).toBe('x');
      expect(client.session?.id).toBe(session);
      expect((await client.whoAmI()).identities).toContainEqual({ scheme: 'sasl', user: 'joe' });
    }),
  );

  it.each([
    ['a wrong password', { username: 'joe', password: 'wrong' }],
    // Not with the password of joe: if 3.8 knows no such user, it compares with the password of the
    // last user.
    ['a user that nobody knows', { username: 'jane', password: 'other' }],
  ])('%s: auth-failed, and calls reject', (_, sasl) =>
    scoped(async (scope) => {
      const client = scope.create(server().connectionString, { ...options, sasl });
      const failed = nextState(client, 'auth-failed');
      const get = refusal(client.get('/'));
      expect((await failed).error).toBeInstanceOf(AuthError);
      expect(await get).toMatchObject({ code: 'AUTH_FAILED' });
      const error = await refusal(client.connected());
      expect(error).toMatchObject({ code: 'AUTH_FAILED' });
      expect(error.message).not.toContain(sasl.password);
      expect(client.counters.attempts).toBe(1);
    })(),
  );

  it(
    'no credentials where they are required: the call says so',
    scoped(async (scope) => {
      const client = scope.create(server().connectionString, options);
      expect(await refusal(client.get('/'))).toMatchObject({ code: 'SASL_REQUIRED' });
    }),
  );
});

describe.concurrent('TLS', () => {
  needServers();
  const server = sharedServer({ tls: { clientAuth: 'need' } });

  async function refused(tls: Readonly<Record<string, string>>): Promise<ConnectError> {
    const error = await refusedConnect(server().secureConnectionString!, { tls });
    expect(error.cause).toBeInstanceOf(Error);
    expect(error.message).toContain((error.cause as Error).message);
    return error;
  }

  const trust = () => {
    const { ca, client } = server().certificates!;
    return { ca: ca.text, key: client.key.text, cert: client.certificate.text };
  };

  it(
    'the right certificates give a session',
    scoped(async (scope) => {
      const options = { sessionTimeoutMs: 20_000, tls: trust() };
      const client = await scope.connect(server().secureConnectionString!, options);
      expect((await client.get('/')).zxid).toBeGreaterThanOrEqual(0n);
    }),
  );

  it(
    'an authority that did not sign for the server',
    scoped(async (scope) => {
      const folder = await mkdtemp(join(tmpdir(), 'zookeeper-other-ca-'));
      scope.finally(() => rm(folder, { recursive: true, force: true }));
      const other = await createCertificates(folder);
      const error = await refused({ ...trust(), ca: other.ca.text });
      expect(error.message).toMatch(/certificate|issuer/);
    }),
  );

  it(
    'a name that the certificate is not made out to',
    scoped(async (_scope) => {
      const error = await refused({ ...trust(), servername: 'elsewhere.example' });
      expect(error.message).toContain('elsewhere.example');
    }),
  );

  it(
    'no certificate of the client where one is needed',
    scoped(async (_scope) => {
      const error = await refused({ ca: trust().ca });
      expect(error.message).toMatch(/certificate/);
    }),
  );

  it(
    'an expired certificate of the client',
    scoped(async (_scope) => {
      const cert = await expiredClientCertificate(server().certificates!);
      const error = await refused({ ...trust(), cert });
      expect(error.message).toMatch(/certificate/);
    }),
  );

  it(
    'a client without TLS at the secure port, and one with TLS at the plain port',
    scoped(async () => {
      const { host, port, securePort } = server();
      await Promise.all([
        refusedConnect(`zk://${host}:${securePort}`),
        refusedConnect(`zks://${host}:${port}`, { tls: trust() }),
      ]);
    }),
  );
});
