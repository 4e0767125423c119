/** For these the fake server is not enough: TLS, SASL, and a real server's answers to `srvr`. */

import type { TestServer } from '@incumbent/zookeeper-testing';
import { serverAvailable, startServer } from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { jsonLines, Program } from './program.ts';

const missing = process.env['CI'] === 'true' ? undefined : serverAvailable({ tls: {} });
let server: TestServer;

beforeAll(async () => {
  if (missing !== undefined) return;
  server = await startServer({ tls: { clientAuth: 'need' }, sasl: { users: { alice: 'secret' } } });
});
afterAll(() => server?.close());

test('srvr and sessions go over TLS with certificates of both sides', async (context) => {
  context.skip(missing !== undefined, missing);
  const { ca, client } = server.certificates!;
  const tls = [
    ...['--tls-ca', ca.path, '--tls-cert', client.certificate.path],
    ...['--tls-key', client.key.path],
  ];
  const run = (...args: string[]) => new Program(server.secureConnectionString!, args).result;
  const [srvr, created, distrusted, nameless] = await Promise.all([
    run(...tls, 'srvr', '--json', '--timeout', '20s'),
    run(...tls, 'create', '/tls', 'over TLS'),
    run('ls', '/', '--timeout', '1s'),
    run(...tls, '--tls-servername', 'elsewhere', 'srvr', '--timeout', '1s'),
  ]);
  expect(jsonLines(srvr.stdout)).toMatchObject([
    {
      ...{ mode: 'standalone', version: expect.stringMatching(/^3\.\d+\.\d+$/), error: null },
      ...{ connections: expect.any(Number), outstanding: expect.any(Number) },
      ...{
        nodes: expect.any(Number),
        latencyMs: [expect.any(Number), expect.any(Number), expect.any(Number)],
      },
      zxid: expect.stringMatching(/^0x[0-9a-f]+$/),
    },
  ]);
  expect(created).toEqual({ code: 0, stdout: '/tls\n', stderr: '' });
  expect(distrusted).toMatchObject({ code: 69, stdout: '' });
  expect(distrusted.stderr.split('\n')).toHaveLength(2);
  expect(nameless).toMatchObject({ code: 69, stderr: '' });
  expect(nameless.stdout).toContain('elsewhere');
});

test('SASL logs in, by an option or the environment; a wrong password ends with 77', async (context) => {
  context.skip(missing !== undefined, missing);
  const run = (args: string[], env: Record<string, string> = {}) =>
    new Program(server.connectionString, args, { env }).result;
  const [option, environment, wrong] = await Promise.all([
    run(['--sasl', 'alice:secret', 'whoami', '--json']),
    run(['whoami'], { INCUMBENT_ZK_SASL: 'alice:secret' }),
    run(['--sasl', 'alice:wrong', 'ls', '/']),
  ]);
  expect(jsonLines(option.stdout)).toContainEqual({ scheme: 'sasl', user: 'alice' });
  expect(environment.stdout).toMatch(/^sasl +alice$/m);
  expect(wrong).toMatchObject({ code: 77, stdout: '' });
  expect(wrong.stderr).toMatch(/^incumbent-zk: .*; look at --auth and --sasl\n$/);
});

test('what the fake is told, a real server is told too', async (context) => {
  context.skip(missing !== undefined, missing);
  const run = (...args: string[]) => new Program(server.connectionString, args).result;
  const watcher = new Program(server.connectionString, ['watch', '-R', '/r', '--count', '5']);
  await watcher.printed(/watching/);
  expect(await run('create', '-p', '/r/s', 'data')).toMatchObject({ code: 0, stdout: '/r/s\n' });
  expect(await run('create', '--ttl', '1h', '/r/t')).toMatchObject({ code: 0 });
  expect(await run('tree', '--data', '/r')).toMatchObject({
    stdout: '/r  = null\n├── s  = "data"\n└── t  = null\n',
  });
  expect(await run('config')).toMatchObject({ code: 0 });
  expect(await run('rm', '-r', '/r')).toMatchObject({ stdout: 'deleted /r and 2 below it\n' });
  const { code, stdout } = await watcher.result;
  expect(code).toBe(0);
  expect(stdout.match(/ (created|deleted) /g)).toHaveLength(5);
});
