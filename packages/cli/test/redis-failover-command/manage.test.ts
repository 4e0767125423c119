// The output of `manage`: its log, its signals, its health and its metrics. The manager is a fake.
import { expect, test } from 'vitest';
import type { NodeStatus } from '../../../redis-failover/src/manager/events.ts';
import type { FakeManager } from './fake-manager.ts';
import { tableOf } from './fake-manager.ts';
import { Running } from './invoke.ts';

const base = ['manage', '-n', 'a:1,b:2', '-z', 'h', '--id', 'm1'];

interface Managed {
  readonly running: Running;
  readonly manager: FakeManager;
  lines(): readonly Record<string, unknown>[];
}

async function manage(...argv: string[]): Promise<Managed> {
  const managers: FakeManager[] = [];
  const table = tableOf((manager) => managers.push(manager));
  const env = { INCUMBENT_REDIS_PASSWORD: 's3cret' };
  const running = new Running([...base, ...argv], { table, env });
  await running.printed(/started|watching/);
  const lines = () =>
    running.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
  return { running, manager: managers[0] as FakeManager, lines };
}

async function managedAt(): Promise<Managed & { readonly url: string }> {
  const managed = await manage('--listen', '127.0.0.1:0');
  const url = managed.lines()[0]?.['listen'];
  return { ...managed, url: String(url) };
}

function node(address: string, change: Partial<NodeStatus> = {}): NodeStatus {
  return {
    address,
    state: 'available',
    latencyMs: 1.5,
    failures: 0,
    error: undefined,
    judged: undefined,
    ...change,
  };
}

test('one JSON object a line, with level, time, manager, event and a sentence', async () => {
  const { running, manager, lines } = await manage();
  manager.tell({ type: 'elected', token: 12n });
  manager.tell({ type: 'step', step: 'revoke', node: 'a:1', afterMs: 1.23 });
  manager.tell({ type: 'moved', from: 'a:1', to: 'b:2', term: 4, reason: 'down', tookMs: 1100.4 });
  manager.tell({ type: 'move-failed', reason: 'request', error: new Error('no candidate') });
  manager.tell({
    type: 'judged',
    node: 'a:1',
    state: 'unavailable',
    availableTo: 1,
    unavailableTo: 2,
  });
  manager.tell({ type: 'trouble', trouble: { code: 'NO_PRIMARY', message: 'none is a primary' } });
  manager.tell({ type: 'recovered' });
  running.signal('SIGTERM');
  expect((await running.result).code).toBe(0);
  const [begun, started, ...rest] = lines();
  expect(begun).toMatchObject({ level: 'info', event: 'begun', manager: 'm1', version: /./ });
  expect(Date.parse(String(begun?.['time']))).toBeGreaterThan(0);
  expect(started).toMatchObject({ event: 'started', nodes: ['a:1', 'b:2'] });
  expect(rest).toMatchObject([
    { level: 'info', event: 'elected', token: '12', msg: 'elected (token 12)' },
    { event: 'step', step: 'revoke', node: 'a:1', afterMs: 1 },
    { level: 'warn', event: 'moved', to: 'b:2', term: 4, reason: 'down', tookMs: 1100 },
    { level: 'error', event: 'move-failed', error: 'no candidate' },
    { level: 'warn', msg: 'a:1 is down: 2 of 3 managers do not reach it' },
    { level: 'error', event: 'trouble', code: 'NO_PRIMARY', msg: 'none is a primary' },
    { level: 'info', event: 'recovered' },
    { level: 'info', event: 'stopped' },
  ]);
  expect(running.stdout).not.toContain('s3cret');
  expect(running.stderr).toBe('');
});

test('of what is seen of a node, only a change of state or of failures is a line', async () => {
  const { running, manager, lines } = await manage();
  const error = Object.assign(new Error('a:1 does not answer'), { code: 'NODE_UNREACHABLE' });
  for (const sight of [
    node('a:1'),
    node('a:1', { latencyMs: 9 }),
    node('a:1', { failures: 1, error }),
    node('a:1', { failures: 2, error }),
    node('a:1', { state: 'unavailable', failures: 3, error }),
    node('a:1'),
  ]) {
    manager.tell({ type: 'sight', sight });
  }
  running.signal('SIGTERM');
  await running.result;
  expect(lines().filter(({ event }) => event === 'sight')).toMatchObject([
    { level: 'info', msg: 'a:1 answers in 1.5ms', latencyMs: 1.5 },
    { level: 'warn', msg: 'a:1 does not answer', errorCode: 'NODE_UNREACHABLE' },
    { level: 'warn', msg: 'a:1 does not answer (failure 2 in a row)' },
    {
      level: 'warn',
      msg: 'a:1 is unavailable from here: a:1 does not answer',
      state: 'unavailable',
    },
    { level: 'info', msg: 'a:1 answers in 1.5ms' },
  ]);
});

test('--log-format pretty is for people, and --log-level keeps the rest away', async () => {
  const { running, manager } = await manage('--log-format', 'pretty');
  manager.tell({ type: 'elected', token: 12n });
  running.signal('SIGINT');
  expect((await running.result).stdout).toMatch(/^\S+Z INFO {2}elected \(token 12\)$/m);
  const managers: FakeManager[] = [];
  const table = tableOf((each) => managers.push(each));
  const quiet = new Running([...base, '--log-level', 'error'], { table });
  while (managers.length === 0) await new Promise((resolve) => setImmediate(resolve));
  quiet.signal('SIGTERM');
  expect((await quiet.result).stdout).toBe('');
});

test('TERM and INT stop it, HUP does not, and the second one ends the process at once', async () => {
  const { running, lines } = await manage();
  running.signal('SIGHUP');
  expect(lines().at(-1)).toMatchObject({ event: 'ignored' });
  running.signal('SIGTERM');
  running.signal('SIGINT');
  expect(running.exits).toEqual([130]);
  expect((await running.result).code).toBe(0);
  expect(running.handlers).toBe(0);
});

test('a manager that fails is told of on both, and ends the command', async () => {
  const { running, manager } = await manage();
  const error = Object.assign(new Error('credentials refused'), {
    code: 'AUTH_FAILED',
    retryable: false,
  });
  manager.fail(error);
  const { code, stdout, stderr } = await running.result;
  expect(code).toBe(3);
  expect(stderr).toBe(
    'incumbent-redis: ZooKeeper: credentials refused; look at INCUMBENT_ZK_AUTH and INCUMBENT_ZK_SASL\n',
  );
  expect(stdout).toContain('"event":"failed"');
});

test('/healthz says that it lives, /readyz whether it does its part, and why not', async () => {
  const { running, manager, url } = await managedAt();
  const get = async (path: string) => {
    const response = await fetch(url + path);
    return { code: response.status, text: await response.text() };
  };
  const ready = async () => {
    const { code, text } = await get('/readyz');
    return [code, JSON.parse(text).code] as const;
  };
  expect(await get('/healthz')).toEqual({ code: 200, text: 'ok\n' });
  expect(await ready()).toEqual([503, 'ZOOKEEPER_AWAY']);
  manager.set({ zookeeper: 'connected' });
  expect(await ready()).toEqual([503, 'STARTING']);
  manager.set({ state: 'waiting', requiredManagers: 2, managers: 1 });
  expect(await ready()).toEqual([503, 'TOO_FEW_MANAGERS']);
  manager.set({ managers: 2, primary: null });
  expect(await ready()).toEqual([503, 'NO_PRIMARY']);
  manager.set({ primary: 'a:1', term: 3 });
  expect(await ready()).toEqual([200, undefined]);
  const trouble = { code: 'MULTIPLE_PRIMARIES', message: 'a:1 and b:2 are primaries' } as const;
  manager.set({ trouble });
  const { text } = await get('/readyz');
  expect(JSON.parse(text)).toMatchObject({
    ready: false,
    ...trouble,
    manager: 'm1',
    state: 'waiting',
    primary: 'a:1',
    term: 3,
    managers: 2,
    requiredManagers: 2,
    nodes: [{ address: 'a:1' }, { address: 'b:2' }],
  });
  expect(text).not.toContain('s3cret');
  expect((await get('/')).code).toBe(404);
  expect((await fetch(`${url}/readyz`, { method: 'POST' })).status).toBe(405);
  running.signal('SIGTERM');
  await running.result;
  await expect(fetch(url)).rejects.toThrow();
});

test('/metrics', async () => {
  const { running, manager, url } = await managedAt();
  manager.set({
    state: 'leading',
    zookeeper: 'connected',
    primary: 'a:1',
    term: 7,
    managers: 3,
    nodes: [
      node('a:1', { judged: 'available' }),
      node('b:2', {
        state: 'unavailable',
        judged: 'unavailable',
        failures: 3,
        latencyMs: undefined,
      }),
    ],
  });
  manager.tell({ type: 'moved', from: 'b:2', to: 'a:1', term: 7, reason: 'down', tookMs: 1250 });
  manager.tell({ type: 'move-failed', reason: 'request', error: new Error('no') });
  const response = await fetch(`${url}/metrics`);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
  const text = await response.text();
  const samples = text.split('\n').filter((line) => line.startsWith('incumbent_redis_'));
  expect(samples).toEqual(
    expect.arrayContaining([
      'incumbent_redis_leading 1',
      'incumbent_redis_ready 1',
      'incumbent_redis_zookeeper_connected 1',
      'incumbent_redis_managers 3',
      'incumbent_redis_managers_required 1',
      'incumbent_redis_primary_term 7',
      'incumbent_redis_node_up{node="a:1"} 1',
      'incumbent_redis_node_up{node="b:2"} 0',
      'incumbent_redis_node_judged_up{node="b:2"} 0',
      'incumbent_redis_node_primary{node="a:1"} 1',
      'incumbent_redis_node_primary{node="b:2"} 0',
      'incumbent_redis_node_failures{node="b:2"} 3',
      'incumbent_redis_node_latency_seconds{node="a:1"} 0.0015',
      'incumbent_redis_failovers_total{outcome="done",reason="down"} 1',
      'incumbent_redis_failovers_total{outcome="failed",reason="request"} 1',
      'incumbent_redis_failovers_total{outcome="failed",reason="down"} 0',
      'incumbent_redis_last_failover_seconds 1.25',
    ]),
  );
  // Unknown values are left out.
  expect(text).not.toContain('node_latency_seconds{node="b:2"}');
  expect(text).not.toMatch(/^incumbent_redis_trouble[ {]/m);
  expect(text).toMatch(/^process_start_time_seconds /m);
  manager.set({ trouble: { code: 'NO_CANDIDATE', message: 'nobody' }, term: undefined });
  const later = await (await fetch(`${url}/metrics`)).text();
  expect(later).toContain('incumbent_redis_trouble{code="NO_CANDIDATE"} 1');
  expect(later).not.toMatch(/^incumbent_redis_primary_term /m);
  running.signal('SIGTERM');
  await running.result;
});

test('a port that is taken is no usage error', async () => {
  const { running, url } = await managedAt();
  const table = tableOf(() => {});
  const second = new Running([...base, '--listen', new URL(url).host], { table });
  const { code, stderr } = await second.result;
  expect(code).toBe(1);
  expect(stderr).toContain('somebody listens there already');
  running.signal('SIGTERM');
  await running.result;
});
