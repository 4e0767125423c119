import type { UncleanLeader } from 'incumbent';
import { deriveTiming } from 'incumbent';
import { expect, test } from 'vitest';
import { agentBounds } from '../src/agent/bounds.ts';
import { asProgram, parseCall } from '../src/agent/calls.ts';
import type { FenceMethod } from '../src/agent/fencing.ts';
import { fenceProgram, fenceUntilOne, parseFence, parsePlace } from '../src/agent/fencing.ts';
import { killListenerScript } from '../src/agent/kill-listener.ts';
import { within } from '../src/within.ts';

const target = (...addresses: string[]): UncleanLeader => ({
  id: 'host-7',
  incarnation: 'i',
  addresses,
  metadata: {},
  token: 12n,
});
const context = { env: { PATH: '/bin' }, cwd: '/' };
const ssh = { options: ['Port=2222'], connectTimeoutMs: 15_000 };
const program = (text: string, leader: UncleanLeader) =>
  fenceProgram(parseFence(text), leader, context, ssh);

test.each([
  ['sshfence', { user: undefined, at: undefined }],
  ['sshfence:', { user: undefined, at: undefined }],
  ['sshfence:ops@', { user: 'ops', at: undefined }],
  ['sshfence:ops@db1:5000', { user: 'ops', at: { host: 'db1', port: 5000 } }],
  ['sshfence:db1.example:5000', { user: undefined, at: { host: 'db1.example', port: 5000 } }],
  ['sshfence:ops@[fd00::1]:5000', { user: 'ops', at: { host: 'fd00::1', port: 5000 } }],
])('%s', (text, parts) => {
  expect(parseFence(text)).toEqual({ kind: 'sshfence', text, ...parts });
});

test.each([
  ['ssh', /no method: write sshfence:USER@HOST:PORT/],
  ['shell:', /no command/],
  ['sshfence:ops@db1', /names no HOST:PORT/],
  ['sshfence:ops@db1:0', /names no HOST:PORT/],
  ['sshfence:ops@-oProxyCommand=x:1', /names no HOST:PORT/],
])('refused: %s', (text, message) => {
  expect(() => parseFence(text)).toThrow(message);
});

test('a host that ssh would take for an option is no place', () => {
  expect(parsePlace('-oProxyCommand=touch:22')).toBeUndefined();
  expect(parsePlace('db1:65536')).toBeUndefined();
});

test('sshfence goes to the address that the leader told, with the options of the user first', () => {
  expect(program('sshfence:ops@', target('db1:5000', 'db1:5001'))).toMatchObject({
    program: 'ssh',
    args: [
      ...['-o', 'Port=2222', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=15', '-l', 'ops'],
      ...['--', 'db1', expect.stringMatching(/^exec sh -c '[^']*' fence 5000$/)],
    ],
  });
  expect(killListenerScript).not.toContain("'");
});

test('a method for one service fences no other, and no leader that told no address', () => {
  const text = 'sshfence:ops@db1:5000';
  expect(program(text, target('db1:5000'))).toMatchObject({ program: 'ssh' });
  expect(program(text, target('DB1:5000'))).toMatchObject({ program: 'ssh' });
  expect(program(text, target('db2:5000'))).toEqual({
    unusable: 'it is for db1:5000, and "host-7" told db2:5000',
  });
  expect(program(text, target())).toMatchObject({ unusable: expect.stringMatching(/no address$/) });
  expect(program('sshfence:ops@', target('somewhere'))).toMatchObject({
    unusable: expect.stringMatching(/no address of the form HOST:PORT/),
  });
});

test('shell: the target is in the environment', () => {
  expect(program('shell:./power off', target('db1:5000', 'x'))).toEqual({
    program: '/bin/sh',
    args: ['-c', './power off'],
    cwd: '/',
    env: {
      PATH: '/bin',
      INCUMBENT_TARGET_ID: 'host-7',
      INCUMBENT_TARGET_TOKEN: '12',
      INCUMBENT_TARGET_ADDRESS: 'db1:5000',
      INCUMBENT_TARGET_ADDRESSES: 'db1:5000 x',
      INCUMBENT_TARGET_HOST: 'db1',
      INCUMBENT_TARGET_PORT: '5000',
    },
  });
});

const methods = ['shell:one', 'shell:two', 'shell:three'].map(parseFence);
const forever = new AbortController().signal;

test('methods are tried in order, until the first that succeeds', async () => {
  const tried: string[] = [];
  const attempt = async ({ text }: FenceMethod) => {
    tried.push(text);
    if (text === 'shell:one') throw new Error('exit code 1');
  };
  expect((await fenceUntilOne(methods, target(), attempt, forever)).text).toBe('shell:two');
  expect(tried).toEqual(['shell:one', 'shell:two']);
});

test('if none succeeds the takeover fails, and the error says why of each', async () => {
  const attempt = async ({ text }: FenceMethod) => {
    throw new Error(`${text.length}`);
  };
  await expect(fenceUntilOne(methods, target(), attempt, forever)).rejects.toThrow(
    '"host-7" could not be fenced: shell:one: 9; shell:two: 9; shell:three: 11',
  );
  await expect(fenceUntilOne([], target(), attempt, forever)).rejects.toThrow(/no --fence/);
});

test('a takeover that has ended tries no further method', async () => {
  const stop = new AbortController();
  const tried: string[] = [];
  const attempt = async ({ text }: FenceMethod) => {
    tried.push(text);
    stop.abort(new Error('the term is over'));
    throw new Error('killed');
  };
  await expect(fenceUntilOne(methods, target(), attempt, stop.signal)).rejects.toThrow(
    'the term is over',
  );
  expect(tried).toEqual(['shell:one']);
});

test('a call is a command, or a URL of this machine', () => {
  expect(parseCall('--health', 'curl -f http://db1/ok')).toMatchObject({ kind: 'shell' });
  for (const url of ['http://127.0.0.1:80/ok', 'http://localhost:1/', 'http://[::1]:1/x']) {
    expect(parseCall('--health', url)).toMatchObject({ kind: 'http', option: '--health' });
  }
  expect(() => parseCall('--health', 'http://db1/ok')).toThrow(
    /^--health "http:\/\/db1\/ok" is not a URL of this machine/,
  );
  expect(() => parseCall('--health', 'https://127.0.0.1/ok')).toThrow(/not a URL of this machine/);
  expect(() => parseCall('--health', 'http://')).toThrow(/is not a URL/);
  expect(() => parseCall('--become-active', ' ')).toThrow(/^--become-active is empty/);
});

test('a request becomes a program of its own, which the guard can kill', () => {
  const call = parseCall('--become-active', 'http://127.0.0.1:1/up');
  expect(asProgram(call, context)).toMatchObject({
    program: process.execPath,
    args: [expect.stringMatching(/guard\/http-call\.cjs$/), 'http://127.0.0.1:1/up'],
  });
});

test('a job that takes too long is aborted, and is over before the caller goes on', async () => {
  let ended = false;
  const job = (signal: AbortSignal) =>
    new Promise<void>((_, reject) =>
      signal.addEventListener('abort', () => {
        ended = true;
        reject(new Error('killed'));
      }),
    );
  await expect(within(10, '--become-standby', forever, job)).rejects.toThrow(
    '--become-standby took longer than 10ms',
  );
  expect(ended).toBe(true);
});

test('the bounds are the sums of their parts', () => {
  const timing = deriveTiming({ lease: '10s' });
  const own = {
    healthEveryMs: 1_000,
    healthTimeoutMs: 2_000,
    healthFailures: 2,
    activeTimeoutMs: 5_000,
    standbyTimeoutMs: 3_000,
    fenceTimeoutMs: 4_000,
    fenceMethods: 2,
  };
  const { pollEveryMs: poll, operationTimeoutMs: op, renewEveryMs: renew } = timing;
  const runsOut = 10_000 * 1.05 + poll + 3 * op;
  const takeover = runsOut + 2 * 4_000 + 3_000 + 2_000 + 5_000 + op;
  const ways = { hasProcess: false, onSession: false };
  expect(agentBounds(timing, own, ways)).toEqual({
    agentLostMs: Math.ceil(takeover),
    serviceLostMs: Math.ceil(2 * 3_000 + 3_000 + takeover),
    failoverMs: Math.ceil(renew + op + 3_000 + takeover),
    killedWithinMs: undefined,
  });
  const guarded = agentBounds(timing, own, { ...ways, hasProcess: true });
  expect(guarded.killedWithinMs).toBe(timing.beliefMs);
  expect(guarded.failoverMs).toBeLessThan(agentBounds(timing, own, ways).failoverMs);
  const onSession = agentBounds(timing, own, { ...ways, onSession: true });
  expect(onSession.agentLostMs).toBe(Math.ceil(takeover + timing.beliefMs));
});
