// `incumbent run` on ZooKeeper: the guarantees for a program that runs only while it leads, and the
// faults of a comparable program built on Curator. The ids W1, W2 … in the titles name those
// faults.
import { createHash } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { startProxy, startServer } from '@incumbent/zookeeper-testing';
import { expect } from 'vitest';
import type { Lab, RunProcess, RunSettings } from './support/run-process.ts';
import { checkOneAtATime, living, test, until } from './support/run-process.ts';
import { needServers, sharedServer } from './support/zookeeper.ts';

needServers();
const server = sharedServer();

/** For tests that do not wait for its end; no load of the machine ends it. */
const sessionMs = 20_000;
/** For tests that wait for its end: long enough for a machine that is busy. */
const short = { lease: '8s' };
const family = 'leader,child,grandchild';

let elections = 0;

/** An election of its own for one test. */
function onServer(settings: RunSettings = {}): RunSettings {
  elections += 1;
  const election = `run-${elections}`;
  return { store: server().connectionString, election, lease: `${sessionMs}ms`, ...settings };
}

/** A leads with a family that ignores signals at work, B waits. */
async function leaderAndFollower(
  lab: Lab,
  settings: RunSettings,
  options: readonly string[] = [],
): Promise<{ a: RunProcess; b: RunProcess; group: number; token: bigint }> {
  const a = lab.run('A', lab.worker(family, 'deaf'), { ...settings, options });
  const { pid: group, token } = await a.started();
  await lab.works(token);
  const b = lab.run('B', lab.worker(family), settings);
  await b.event('waiting');
  return { a, b, group, token };
}

/** B leads after A, and no process of A's program was there when B's began. */
async function takesOver(lab: Lab, b: RunProcess, group: number, token: bigint): Promise<bigint> {
  const next = await b.started();
  expect(living(group)).toEqual([]);
  expect(next.token).toBeGreaterThan(token);
  await lab.works(next.token);
  checkOneAtATime(lab.stamps());
  return next.token;
}

// --- W3, W4, WB5, WB7: from the win to the end of the program ---

test.concurrent.for([
  ['exit 0', 0],
  ['exit 3', 3],
  ['kill -KILL $$', 128 + 9],
] as const)(
  'W4, WB5: after `%s` the seat is given up, a peer is elected, and our exit code is %i',
  async ([script, code], { lab }) => {
    const settings = onServer();
    const wait = `until test -e go; do sleep 0.05; done; ${script}`;
    const a = lab.run('A', ['sh', '-c', wait], settings);
    const { token } = await a.started();
    const b = lab.run('B', ['true'], settings);
    await b.event('waiting');
    lab.write('go', '');
    expect(await a.ends()).toEqual({ code, signal: null });
    // WB6: every end has a reason of its own.
    expect(await a.event('ended')).toMatchObject({ reason: 'work-finished', released: true });
    const next = await b.started();
    expect(next.token).toBeGreaterThan(token);
    expect(await b.ends()).toEqual({ code: 0, signal: null });
    // A clean end is not waited for.
    expect(b.all('taking-over')).toEqual([]);
  },
);

test.concurrent('WB5: a program that crashes is started again after a pause, and only where that is asked for', async ({
  lab,
}) => {
  const settings = onServer({ options: ['--restart', 'on-failure'] });
  const script = 'if test -e once; then exit 0; fi; touch once; exit 9';
  const a = lab.run('A', ['sh', '-c', script], settings);
  expect(await a.ends()).toEqual({ code: 0, signal: null });
  expect(a.all('restarting')).toMatchObject([{ code: 9, backoffMs: 1_000 }]);
  const [first, second] = a.all('started');
  expect(BigInt(second!.token!)).toBeGreaterThan(BigInt(first!.token!));
});

test.concurrent('W3: a program that cannot be started any more gives the seat up', async ({
  lab,
}) => {
  const settings = onServer();
  const script = lab.write('job', '#!/bin/sh\nsleep 1000\n', 0o755);
  const first = lab.run('FIRST', lab.worker(), settings);
  await first.started();
  const a = lab.run('A', [script], settings);
  await a.event('waiting');
  rmSync(script);
  first.kill('SIGTERM');
  expect(await a.ends()).toEqual({ code: 127, signal: null });
  expect(await a.event('cannot-start')).toMatchObject({ code: 'CANNOT_START' });
  expect(await a.event('ended')).toMatchObject({ reason: 'work-failed', released: true });
  expect(await lab.run('B', ['true'], settings).ends()).toEqual({ code: 0, signal: null });
});

test.concurrent('W1, W3: what is not found is not campaigned for, and the server is not asked', async ({
  lab,
}) => {
  const settings = onServer({ store: 'zk://127.0.0.1:1' });
  const run = lab.run('A', ['no-such-program-anywhere'], { ...settings, json: false });
  expect(await run.ends()).toEqual({ code: 127, signal: null });
});

test.concurrent('WB7: election, candidate, lease and token are in the environment of the program', async ({
  lab,
}) => {
  const settings = onServer();
  const run = lab.run('B', ['env'], settings);
  await run.ends();
  const { token } = await run.started();
  const lines = run.stdout.split('\n').filter((line) => line.startsWith('INCUMBENT_'));
  expect(lines.filter((line) => !line.startsWith('INCUMBENT_TEST_')).sort()).toEqual([
    'INCUMBENT_CANDIDATE=B',
    `INCUMBENT_ELECTION=${settings.election}`,
    `INCUMBENT_LEASE_MS=${sessionMs}`,
    `INCUMBENT_TOKEN=${token}`,
  ]);
});

test.concurrent('WB3: 20 MB on stdout pass through unharmed, and the term goes on', async ({
  lab,
}) => {
  const script = `
    const fs = require('node:fs');
    const { createHash, randomBytes } = require('node:crypto');
    const hash = createHash('sha256');
    const block = randomBytes(1 << 20);
    for (let i = 0; i < 20; i += 1) {
      block.writeUInt32LE(i, i);
      hash.update(block);
      for (let at = 0; at < block.length; ) at += fs.writeSync(1, block, at);
    }
    fs.writeFileSync(process.argv[1], hash.digest('hex'));`;
  const written = lab.path('hash');
  const program = [process.execPath, '-e', script, written];
  const run = lab.run('A', program, { ...onServer(), rawStdout: true });
  const hash = createHash('sha256');
  for await (const chunk of run.child.stdout as Readable) hash.update(chunk as Buffer);
  expect(await run.ends()).toEqual({ code: 0, signal: null });
  expect(hash.digest('hex')).toBe(readFileSync(written, 'utf8'));
  expect(run.all('ended')).toMatchObject([{ reason: 'work-finished' }]);
});

// --- WB1, WB2, WB4: how a program ends that does not want to ---

test.concurrent('WB1, WB2: a program that ignores TERM is killed with all it started before the seat is given up', async ({
  lab,
}) => {
  const settings = onServer();
  const { a, b, group, token } = await leaderAndFollower(lab, settings, ['--stop-timeout', '1s']);
  a.kill('SIGTERM');
  await lab.works(token, 'SIGTERM');
  await takesOver(lab, b, group, token);
  expect(await a.ends()).toEqual({ code: 128 + 9, signal: null });
  expect(await a.event('ended')).toMatchObject({ reason: 'withdrawn', released: true });
});

test.concurrent('WB4: when the supervisor is killed its program dies with all it started, before the successor’s starts', async ({
  lab,
}) => {
  const settings = onServer(short);
  const a = lab.run('A', lab.worker(family, 'deaf'), settings);
  const { pid: group, token } = await a.started();
  await lab.works(token);
  const hook = 'echo "$INCUMBENT_PREDECESSOR $INCUMBENT_PREDECESSOR_TOKEN" >> fenced';
  const options = ['--on-unclean', hook];
  const b = lab.run('B', lab.worker(family), { ...settings, options });
  await b.event('waiting');
  a.kill('SIGKILL');
  await takesOver(lab, b, group, token);
  // It ended unclean: the next leader knows the leader before it, and fences first.
  expect(await b.event('taking-over')).toMatchObject({ unfenced: ['A'] });
  expect(readFileSync(lab.path('fenced'), 'utf8')).toBe(`A ${token}\n`);
  const order = b.events.map(({ event }) => event);
  expect(order.indexOf('fencing')).toBeLessThan(order.indexOf('leading'));
});

test.concurrent('WB4: when the supervisor is frozen for longer than its session the same, and thawed it campaigns again in another', async ({
  lab,
}) => {
  const { a, b, group, token } = await leaderAndFollower(lab, onServer(short));
  a.kill('SIGSTOP');
  const second = await takesOver(lab, b, group, token);
  a.kill('SIGCONT');
  await a.event('waiting', 2);
  expect(a.all('ended')).toMatchObject([{ token: String(token), released: false }]);
  b.kill('SIGTERM');
  const third = await a.started(2);
  expect(third.token).toBeGreaterThan(second);
  await lab.works(third.token);
  checkOneAtATime(lab.stamps());
});

test.concurrent('WB4: HUP, USR1 and USR2 reach the program, and an operator’s wish ends its term in order', async ({
  lab,
}) => {
  const settings = onServer();
  const a = lab.run('A', lab.worker('leader,child'), settings);
  const { token } = await a.started();
  await lab.works(token);
  a.kill('SIGUSR1');
  await lab.works(token, 'SIGUSR1');
  const { election = '', store = '' } = settings;
  expect(await lab.cli('vacate', '-e', election, '--store', store)).toMatchObject({ code: 0 });
  expect(await a.event('ended')).toMatchObject({ reason: 'vacated', released: true });
  const again = await a.started(2);
  expect(again.token).toBeGreaterThan(token);
  expect(lab.work(token).map(({ what }) => what)).toContain('SIGTERM');
});

test.concurrent('a waiting candidate that is told to end leaves no place behind, and --try does not wait', async ({
  lab,
}) => {
  const settings = onServer();
  const { election = '', store = '' } = settings;
  const a = lab.run('A', lab.worker(), settings);
  await a.started();
  const b = lab.run('B', lab.worker(), settings);
  await b.event('waiting');
  const listed = async () => (await lab.cli('candidates', '-e', election, '--store', store)).stdout;
  await until('B is in the queue', async () => (await listed()).includes('waiting  B'));
  b.kill('SIGTERM');
  expect(await b.ends()).toEqual({ code: 143, signal: null });
  expect(await listed()).not.toContain('B');
  const c = lab.run('C', ['true'], { ...settings, options: ['--try'] });
  expect(await c.ends()).toEqual({ code: 1, signal: null });
  expect(await c.event('not-elected')).toBeDefined();
  expect(await listed()).not.toContain('C');
  expect(a.all('ended')).toEqual([]);
});

// --- W2, W5: the connection ---

test.concurrent('W5: a short loss of the connection ends no term, unless that is wished for; then it leads again (W2)', async ({
  lab,
}) => {
  const proxy = await startProxy(server());
  try {
    const at = (parameters: string) =>
      onServer({ store: `${proxy.connectionString}${parameters}` });
    const holds = lab.run('HOLDS', lab.worker(), at(''));
    const steps = lab.run('STEPS', lab.worker(), at('?on-disconnect=step-down'));
    const once = lab.run('ONCE', lab.worker(), {
      ...at('?on-disconnect=step-down'),
      options: ['--once'],
    });
    const held = await holds.started();
    await lab.works(held.token);
    const first = await steps.started();
    await once.started();
    proxy.cut();
    for (const run of [holds, steps, once]) await run.event('disconnected');
    await proxy.pass();
    expect(await once.ends()).toEqual({ code: 75, signal: null });
    expect(await steps.event('ended')).toMatchObject({ reason: 'disconnected' });
    const second = await steps.started(2);
    expect(second.token).toBeGreaterThan(first.token);
    expect(await holds.event('connected')).toMatchObject({ newSession: false });
    expect(holds.all('started')).toHaveLength(1);
    expect(holds.all('ended')).toEqual([]);
    holds.kill('SIGTERM');
    expect(await holds.ends()).toEqual({ code: 7, signal: null });
    expect(await holds.event('ended')).toMatchObject({ reason: 'withdrawn', released: true });
  } finally {
    await proxy.close();
  }
});

test.concurrent('W5, W2: a server that stands still for longer than the session: the program ends before, and leads again in a new session', async ({
  lab,
}) => {
  const own = await startServer();
  try {
    const settings = onServer({ store: own.connectionString, ...short });
    const a = lab.run('A', lab.worker('leader,child', 'deaf'), settings);
    const { pid: group, token } = await a.started();
    await lab.works(token);
    await own.freeze();
    expect(await a.event('ended')).toMatchObject({ token: String(token), released: false });
    expect(living(group)).toEqual([]);
    await a.event('session-expired');
    own.thaw();
    expect(await a.event('connected')).toMatchObject({ newSession: true });
    const again = await a.started(2);
    expect(again.token).toBeGreaterThan(token);
    await lab.works(again.token);
    checkOneAtATime(lab.stamps());
    // Gone while it leads and for good: the program still ends in time, and so does everything else.
    await own.kill();
    await until('the program has ended', () => living(again.pid).length === 0);
    a.kill('SIGTERM');
    expect(await a.ends()).toMatchObject({ signal: null });
  } finally {
    await own.close();
  }
});

test.concurrent('a server that is away at the start: 69, with its name and the reason', async ({
  lab,
}) => {
  const run = lab.run('A', ['true'], onServer({ store: 'zk://127.0.0.1:1', json: false }));
  expect(await run.ends()).toEqual({ code: 69, signal: null });
  expect(run.stderr).toBe(
    'incumbent: no session with ZooKeeper within 10s: connect ECONNREFUSED 127.0.0.1:1\n',
  );
});
