import type { UncleanLeader } from 'incumbent';
import { deriveTiming } from 'incumbent';
import { expect, test } from 'vitest';
import { agentBounds } from '../src/agent/bounds.ts';
import { asProgram, mayHaveEffect, parseCall } from '../src/agent/calls.ts';
import type { FenceMethod } from '../src/agent/fencing.ts';
import {
  fenceProgram,
  fenceUntilOne,
  parseFence,
  parsePlace,
  toldPorts,
} from '../src/agent/fencing.ts';
import { killListenerScript } from '../src/agent/kill-listener.ts';
import type { Machine } from '../src/agent/machine.ts';
import { isOnThis, thisMachine } from '../src/agent/machine.ts';
import { runHeld } from '../src/agent/run-held.ts';
import type { Guard, GuardedProgram } from '../src/guard/index.ts';
import { within } from '../src/within.ts';

const target = (...addresses: string[]): UncleanLeader => ({
  id: 'host-7',
  incarnation: 'i',
  addresses,
  metadata: {},
  token: 12n,
});
const own: Machine = { host: 'host-8', digest: '8'.repeat(32) };
const on = (metadata: Record<string, string>, ...addresses: string[]) => ({
  ...target(...addresses),
  metadata,
});
const context = { env: { PATH: '/bin' }, cwd: '/' };
const ssh = { options: ['Port=2222'], connectTimeoutMs: 15_000 };
const program = (text: string, leader: UncleanLeader) =>
  fenceProgram(parseFence(text, 0), leader, context, ssh, own);

test.each([
  ['sshfence', { user: undefined, at: undefined }],
  ['sshfence:', { user: undefined, at: undefined }],
  ['sshfence:ops@', { user: 'ops', at: undefined }],
  ['sshfence:ops@db1:5000', { user: 'ops', at: { host: 'db1', port: 5000 } }],
  ['sshfence:db1.example:5000', { user: undefined, at: { host: 'db1.example', port: 5000 } }],
  ['sshfence:ops@[fd00::1]:5000', { user: 'ops', at: { host: 'fd00::1', port: 5000 } }],
])('%s', (text, parts) => {
  expect(parseFence(text, 0)).toEqual({ kind: 'sshfence', name: text, ...parts });
});

test.each([
  ['ssh', /no method: write sshfence:USER@HOST:PORT/],
  ['shell:', /no command/],
  ['sshfence:ops@db1', /names no HOST:PORT/],
  ['sshfence:ops@db1:0', /names no HOST:PORT/],
  ['sshfence:ops@-oProxyCommand=x:1', /names no HOST:PORT/],
])('refused: %s', (text, message) => {
  expect(() => parseFence(text, 0)).toThrow(message);
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
      ...[
        '--',
        'db1',
        expect.stringMatching(/^sh -c '[^']*' fence 5000 {2}&& sh -c '[^']*' fence 5001 $/),
      ],
    ],
  });
  // An address on another machine is not one of this process.
  const elsewhere = program('sshfence:ops@', target('db1:5000', 'db2:5001'));
  expect(elsewhere).toMatchObject({
    args: expect.arrayContaining([expect.stringMatching(/fence 5000 $/)]),
  });
  expect(killListenerScript).not.toContain("'");
  // An agent looks whether something listens at the same ports.
  expect(toldPorts(['x', 'db1:5000', 'DB1:5001', 'db2:5002'])).toEqual([5000, 5001]);
  expect(toldPorts([])).toEqual([]);
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

test('sshfence does not believe an address that means every machine', () => {
  for (const host of ['127.0.0.1', 'localhost', '127.9.9.9', '[::1]', '0.0.0.0', '[::]']) {
    const leader = on({ 'service-host': 'host-7' }, `${host}:5000`);
    expect(program('sshfence:ops@', leader), host).toMatchObject({
      unusable: expect.stringMatching(/which here means this machine: give its agent an --address/),
    });
    // Several agents of one machine, as in a test.
    const here = on({ 'service-host': 'host-8' }, `${host}:5000`);
    expect(program('sshfence:ops@', here)).toMatchObject({ program: 'ssh' });
    // A copy of this machine.
    const copy = { 'service-host': 'host-8', 'service-machine': '7'.repeat(32) };
    expect(program('sshfence:ops@', on(copy, `${host}:5000`))).toHaveProperty('unusable');
  }
});

test('sshfence tells the far side which machine it has to be', () => {
  const digest = 'a1'.repeat(16);
  const last = (leader: UncleanLeader) => {
    const made = program('sshfence:ops@', leader);
    return 'args' in made ? made.args.at(-1)!.replace(killListenerScript, '') : made;
  };
  expect(last(on({ 'service-machine': digest }, 'db1:5000'))).toBe(`sh -c '' fence 5000 ${digest}`);
  // It becomes a part of a command.
  expect(last(on({ 'service-machine': '$(reboot)' }, 'db1:5000'))).toBe("sh -c '' fence 5000 ");
});

test('only the same id on the same machine is an agent before us', () => {
  expect(isOnThis(own, { 'service-host': 'host-8' })).toBe(true);
  expect(isOnThis(own, { 'service-host': 'host-8', 'service-machine': own.digest! })).toBe(true);
  expect(isOnThis(own, { 'service-host': 'host-8', 'service-machine': '7'.repeat(32) })).toBe(
    false,
  );
  expect(isOnThis(own, { 'service-host': 'host-7' })).toBe(false);
  expect(thisMachine(() => '\n').digest).toBeUndefined();
  expect(thisMachine(() => 'abc\n').digest).toMatch(/^[0-9a-f]{32}$/);
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
  const attempt = async ({ name }: FenceMethod) => {
    tried.push(name);
    if (name === 'shell (--fence 1)') throw new Error('exit code 1');
  };
  const { name } = await fenceUntilOne(methods, attempt, forever);
  expect(name).toBe('shell (--fence 2)');
  expect(tried).toEqual(['shell (--fence 1)', 'shell (--fence 2)']);
});

test('if none succeeds the takeover fails, and the error says why of each', async () => {
  const attempt = async () => {
    throw new Error('exit code 1');
  };
  // A command may have a password in it, so it is named by its place.
  await expect(fenceUntilOne(methods, attempt, forever)).rejects.toThrow(
    'shell (--fence 1): exit code 1; shell (--fence 2): exit code 1; ' +
      'shell (--fence 3): exit code 1',
  );
});

test('a takeover that has ended tries no further method', async () => {
  const stop = new AbortController();
  const tried: string[] = [];
  const attempt = async ({ name }: FenceMethod) => {
    tried.push(name);
    stop.abort(new Error('the term is over'));
    throw new Error('killed');
  };
  await expect(fenceUntilOne(methods, attempt, stop.signal)).rejects.toThrow('the term is over');
  expect(tried).toEqual(['shell (--fence 1)']);
});

test('a call is a command, or a URL of this machine', () => {
  expect(parseCall('--health', 'curl -f http://db1/ok')).toMatchObject({ kind: 'shell' });
  for (const url of ['http://127.0.0.1:80/ok', 'http://localhost:1/', 'http://[::1]:1/x']) {
    expect(parseCall('--health', url)).toMatchObject({ kind: 'http', option: '--health' });
  }
  expect(() => parseCall('--health', 'http://db1/ok')).toThrow(
    /^--health "http:\/\/db1\/ok" is not an http:\/\/ URL on/,
  );
  expect(() => parseCall('--health', 'https://127.0.0.1/ok')).toThrow(/not an http:\/\/ URL on/);
  expect(() => parseCall('--health', 'http://')).toThrow(/is not a URL/);
  expect(() => parseCall('--become-active', ' ')).toThrow(/^--become-active is empty/);
  const refused = () => parseCall('--health', 'http://ann:s3cret@127.0.0.1/');
  expect(refused).toThrow(/^--health: a user or a password in the URL would show in logs/);
  expect(refused).not.toThrow(/s3cret/);
});

test('a request becomes a program of its own, which the guard can kill', () => {
  const url = 'http://127.0.0.1:1/up?key=s3cret';
  const env = { PATH: '/bin', NODE_OPTIONS: '--inspect' };
  // All users of the machine can read arguments.
  expect(asProgram(parseCall('--become-active', url), { env, cwd: '/' })).toEqual({
    program: process.execPath,
    args: [expect.stringMatching(/guard\/http-call\.cjs$/)],
    env: { PATH: '/bin', INCUMBENT_CALL_URL: url },
    cwd: '/',
  });
});

test.each([
  ['a refusal', { code: 1, signal: null, because: 'itself' }, false],
  ['a command that was not found', { code: 127, signal: null, because: 'itself' }, false],
  ['one that does not know', { code: 75, signal: null, because: 'itself' }, true],
  ['KILL by the kernel', { code: null, signal: 'SIGKILL', because: 'itself' }, true],
  ['the same, as a shell says it', { code: 137, signal: null, because: 'itself' }, true],
  ['the end of timeout(1)', { code: 124, signal: null, because: 'itself' }, true],
  ['ssh without its connection', { code: 255, signal: null, because: 'itself' }, true],
  ['a command that we have cut off', { code: 1, signal: null, because: 'stopped' }, true],
] as const)('whether become-active may still have its effect after %s', (_, exit, expected) => {
  expect(mayHaveEffect(exit)).toBe(expected);
});

test('a command that does not die of KILL holds nobody up, and the next one gets another guard', async () => {
  const stop = new AbortController();
  let told = 0;
  const program: GuardedProgram = {
    pid: 1,
    exited: new Promise(() => {}),
    gone: new Promise(() => {}),
    go: async () => stop.abort(new Error('it took too long')),
    stop: () => {
      told += 1;
    },
    signal: () => {},
  };
  let replaced = 0;
  const keeper = {
    get: async () => ({ prepare: async () => program }) as unknown as Guard,
    replace: () => {
      replaced += 1;
    },
  };
  const spec = { program: 'sudo', args: [], env: {}, cwd: '/' };
  await expect(runHeld(keeper, spec, stop.signal, 1)).rejects.toThrow(/does not die of KILL/);
  expect({ told, replaced }).toEqual({ told: 1, replaced: 1 });
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
    takeoverDelayMs: 500,
  };
  const { pollEveryMs: poll, operationTimeoutMs: op, renewEveryMs: renew } = timing;
  const runsOut = 10_000 * 1.05 + poll + 3 * op;
  const fence = 500 + 3_000 + 2 * (4_000 + 2_000);
  const takeover = runsOut + fence + 5_000 + op;
  const ways = { hasProcess: false, onSession: false };
  expect(agentBounds(timing, own, ways)).toEqual({
    agentLostMs: Math.ceil(takeover),
    fenceFailsOnceMs: Math.ceil(takeover + 3 * op + poll + 1_000 + fence),
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
