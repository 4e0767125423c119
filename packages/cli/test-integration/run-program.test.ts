// The program and its candidate: the program's environment, its end, and the signals that are
// forwarded to it.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { expect } from 'vitest';
import {
  checkOneAtATime,
  hasTerminals,
  monotonicMs,
  terminalsNeed,
  test,
  until,
} from './support/run-process.ts';

const shell = (script: string, ...args: string[]) => ['sh', '-c', script, 'sh', ...args];

// --- its end is ours ---

test.concurrent.for([
  ['exit 0', 0],
  ['exit 3', 3],
  ['exit 255', 255],
  ['kill -TERM $$', 128 + 15],
  ['kill -KILL $$', 128 + 9],
] as const)(
  'the exit code of the program is ours: after `%s` it is %i, and nothing is left behind',
  async ([script, code], { lab }) => {
    const run = lab.run('A', shell(script));
    expect(await run.ends()).toEqual({ code, signal: null });
    expect(await run.event('ended')).toMatchObject({ reason: 'work-finished', released: true });
    expect(lab.record()).toMatchObject({ token: 1n, history: [{ id: 'A', why: 'work-finished' }] });
    expect(lab.record()).not.toHaveProperty('holding');
    expect(lab.survivors()).toEqual([]);
  },
);

test.concurrent('processes that the program leaves behind are gone before the seat is given back', async ({
  lab,
}) => {
  const leave = '"$@" & until grep -q ready "$0"; do sleep 0.02; done; exit 5';
  const orphans = lab.worker('leader,child', 'deaf');
  const a = lab.run('A', ['sh', '-c', leave, lab.write('log', ''), ...orphans]);
  await a.started();
  const b = lab.run('B', lab.worker());
  expect(await a.ends()).toEqual({ code: 5, signal: null });
  const { token } = await b.started();
  await lab.works(token);
  checkOneAtATime(lab.stamps());
});

// --- a program that cannot start ---

test.concurrent('a program that is not found: 127, and the store is not touched', async ({
  lab,
}) => {
  const run = lab.run('A', ['no-such-program-anywhere'], { json: false });
  expect(await run.ends()).toEqual({ code: 127, signal: null });
  expect(run.stderr).toContain('cannot run "no-such-program-anywhere": not found in PATH');
  expect(existsSync(lab.store)).toBe(false);
  expect(lab.survivors()).toEqual([]);
});

// --- the guard starts before the command line is judged ---

test.concurrent('a wrong option leaves no guard behind', async ({ lab }) => {
  const wrong = ['--no-settle', '--health-every=1s', '--ready-timeout=1s', '--events-fd=99'];
  const runs = wrong.map((option) => lab.run('A', ['true'], { options: [option], json: false }));
  for (const run of runs) expect(await run.ends()).toEqual({ code: 64, signal: null });
  expect(lab.survivors()).toEqual([]);
  expect(existsSync(lab.store)).toBe(false);
});

test.concurrent('a guard that still starts ends with its supervisor', async ({ lab }) => {
  const run = lab.run('A', ['true']);
  await until('the guard is started', () => run.guardPid !== undefined);
  run.kill('SIGKILL');
  await until('the guard is gone', () => lab.survivors().length === 0);
});

test.concurrent('a program that cannot be executed: 126, and the store is not touched', async ({
  lab,
}) => {
  const text = lab.write('text', 'no program');
  const script = lab.write('script', '#!/no/such/interpreter\n', 0o755);
  const runs = [text, script, lab.directory].map((program) =>
    lab.run('A', [program], { json: false }),
  );
  for (const run of runs) expect(await run.ends()).toEqual({ code: 126, signal: null });
  expect(runs[0]!.stderr).toContain(`cannot run ${text}: permission denied`);
  expect(runs[1]!.stderr).toContain(`cannot run ${script}: its interpreter /no/such/interpreter`);
  expect(runs[2]!.stderr).toContain(`cannot run ${lab.directory}: it is a directory`);
  expect(existsSync(lab.store)).toBe(false);
});

test.concurrent('a program that vanished while its candidate waited: the seat is given up, then backed off from', async ({
  lab,
}) => {
  const script = lab.write('job', '#!/bin/sh\nsleep 1000\n', 0o755);
  const first = lab.run('FIRST', lab.worker());
  await first.started();
  const a = lab.run('A', [script], { options: ['--restart', 'on-failure'] });
  const once = lab.run('ONCE', [script], {
    election: 'other',
    options: ['--health', 'test -e go'],
  });
  await a.event('waiting');
  await once.event('unhealthy');
  rmSync(script);
  lab.write('go', '');
  first.kill('SIGTERM');
  expect(await a.event('cannot-start')).toMatchObject({ code: 'CANNOT_START' });
  expect(await a.event('ended')).toMatchObject({ reason: 'work-failed', released: true });
  expect(await a.event('restarting')).toMatchObject({ code: 127, backoffMs: 1_000 });
  // Its seat is free for others.
  const b = lab.run('B', lab.worker());
  await b.started();
  b.kill('SIGTERM');
  expect(await a.event('restarting', 2)).toMatchObject({ code: 127, backoffMs: 2_000 });
  a.kill('SIGTERM');
  await a.ends();
  expect(a.all('started')).toEqual([]);
  // Without --restart it is the end.
  expect(await once.ends()).toEqual({ code: 127, signal: null });
  expect(once.all('ended')).toMatchObject([{ reason: 'work-failed', released: true }]);
});

// --- its environment ---

test.concurrent('the program reads nothing: its stdin is /dev/null', async ({ lab }) => {
  const run = lab.run('A', shell('cat; echo end'), { stdio: ['pipe', 'pipe', 'pipe'] });
  run.child.stdin!.on('error', () => {}).write('not for the program');
  expect(await run.ends()).toEqual({ code: 0, signal: null });
  expect(run.stdout).toBe('end\n');
});

test.concurrent('--stdin: the program reads what we are given', async ({ lab }) => {
  const options = ['--stdin'];
  const run = lab.run('A', ['cat'], { options, stdio: ['pipe', 'pipe', 'pipe'] });
  run.child.stdin!.end('for the program');
  expect(await run.ends()).toEqual({ code: 0, signal: null });
  expect(run.stdout).toBe('for the program');
});

test.concurrent('the environment of the program: ours, with the candidate, election and token', async ({
  lab,
}) => {
  await lab.run('A', ['true']).ends();
  const env = { SOME: 'value', NODE_OPTIONS: '--no-warnings', INCUMBENT_TOKEN: 'another' };
  const run = lab.run('B', ['env'], { env, lease: '5s' });
  await run.ends();
  const lines = run.stdout.trimEnd().split('\n');
  expect(lines.filter((line) => /^(INCUMBENT_|SOME=|NODE_OPTIONS=)/.test(line)).sort()).toEqual([
    'INCUMBENT_CANDIDATE=B',
    'INCUMBENT_ELECTION=work',
    'INCUMBENT_LEASE_MS=5000',
    expect.stringContaining('INCUMBENT_TEST_LAB='),
    'INCUMBENT_TOKEN=2',
    'NODE_OPTIONS=--no-warnings',
    'SOME=value',
  ]);
});

test.concurrent('100 MB on stdout pass through unharmed, and the term goes on', async ({ lab }) => {
  const script = `
    const fs = require('node:fs');
    const { createHash, randomBytes } = require('node:crypto');
    const hash = createHash('sha256');
    const block = randomBytes(1 << 20);
    for (let i = 0; i < 100; i += 1) {
      block.writeUInt32LE(i, i);
      hash.update(block);
      for (let at = 0; at < block.length; ) at += fs.writeSync(1, block, at);
    }
    fs.writeFileSync(process.argv[1], hash.digest('hex'));`;
  const written = lab.path('hash');
  const run = lab.run('A', [process.execPath, '-e', script, written], { rawStdout: true });
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of run.child.stdout as Readable) {
    bytes += (chunk as Buffer).length;
    hash.update(chunk as Buffer);
  }
  expect(bytes).toBe(100 << 20);
  expect(await run.ends()).toEqual({ code: 0, signal: null });
  expect(hash.digest('hex')).toBe(readFileSync(written, 'utf8'));
  expect(run.all('ended')).toMatchObject([{ reason: 'work-finished' }]);
});

// --- signals ---

test.concurrent.for(['SIGTERM', 'SIGINT'] as const)(
  '%s reaches the program, which may take its time: renewed meanwhile, and released only after it',
  async (name, { lab }) => {
    const release = lab.path('release');
    const a = lab.run('A', lab.worker('leader', `linger=${release}`), { lease: '4s' });
    const { token } = await a.started();
    await lab.works(token);
    const b = lab.run('B', lab.worker(), { lease: '4s' });
    await b.event('waiting');
    a.kill(name);
    const { monotonicMs: toldMs } = await lab.works(token, name);
    await until('a lease is over', () => monotonicMs() > toldMs + 4_000);
    expect(lab.record()).toMatchObject({ token, holding: { candidate: { id: 'A' } } });
    expect(b.all('leading')).toEqual([]);
    lab.write('release', '');
    const next = await b.started();
    await lab.works(next.token);
    checkOneAtATime(lab.stamps());
    expect(await a.ends()).toEqual({ code: 7, signal: null });
    expect(a.all('ended')).toMatchObject([{ reason: 'withdrawn', released: true }]);
    // Told once, however it was told.
    expect(lab.work(token).filter(({ what }) => what.startsWith('SIG'))).toHaveLength(1);
  },
);

test.concurrent('a program that ignores TERM and INT is killed at the end of --stop-timeout', async ({
  lab,
}) => {
  const options = ['--stop-timeout', '1s'];
  const a = lab.run('A', lab.worker('leader,child,grandchild', 'deaf'), { options });
  const { token } = await a.started();
  await lab.works(token);
  const b = lab.run('B', lab.worker());
  await b.event('waiting');
  a.kill('SIGINT');
  await lab.works(token, 'SIGINT');
  a.kill('SIGTERM');
  await lab.works(token, 'SIGTERM');
  const next = await b.started();
  await lab.works(next.token);
  checkOneAtATime(lab.stamps());
  expect(await a.ends()).toEqual({ code: 128 + 9, signal: null });
  expect(a.all('ended')).toMatchObject([{ released: true }]);
});

test.concurrent('HUP, USR1 and USR2 are forwarded to the program alone, and end nothing', async ({
  lab,
}) => {
  const a = lab.run('A', lab.worker('leader,child', 'deaf'));
  const { token } = await a.started();
  await lab.works(token);
  for (const name of ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) {
    a.kill(name);
    await lab.works(token, name);
  }
  const told = lab.work(token).filter(({ what }) => what.startsWith('SIG'));
  expect(told.map(({ role, what }) => `${role} ${what}`)).toEqual([
    'leader SIGHUP',
    'leader SIGUSR1',
    'leader SIGUSR2',
  ]);
  expect(a.exit).toBeUndefined();
  expect(a.all('ended')).toEqual([]);
});

test.concurrent('Ctrl-C in a terminal reaches the program once, and the seat is released only after it', async ({
  lab,
  skip,
}) => {
  skip(!hasTerminals(), terminalsNeed);
  const a = lab.runInTerminal('A', lab.worker('leader,child', `linger=${lab.path('go')}`));
  const { token } = await a.started();
  await lab.works(token);
  const b = lab.run('B', lab.worker());
  await b.event('waiting');
  a.child.stdin!.write('\x03');
  await lab.works(token, 'SIGINT');
  expect(lab.record()).toMatchObject({ token, holding: { candidate: { id: 'A' } } });
  lab.write('go', '');
  await lab.works((await b.started()).token);
  checkOneAtATime(lab.stamps());
  const told = lab.work(token).filter(({ what }) => what.startsWith('SIG'));
  expect(told.map(({ role, what }) => `${role} ${what}`).sort()).toEqual([
    'child SIGINT',
    'leader SIGINT',
  ]);
});

test.concurrent.for([
  ['SIGTERM', 143],
  ['SIGINT', 130],
  ['SIGHUP', 129],
] as const)('%s while waiting: an end with %i, and no program', async ([name, code], { lab }) => {
  const first = lab.run('FIRST', lab.worker());
  await first.started();
  const a = lab.run('A', lab.worker());
  await a.event('waiting');
  const listed = () => lab.cli('candidates', '-e', 'work', '--json');
  expect((await listed()).stdout).toContain('"A"');
  a.kill(name);
  expect(await a.ends()).toEqual({ code, signal: null });
  expect(a.all('leading')).toEqual([]);
  expect((await listed()).stdout).not.toContain('"A"');
  expect(first.all('ended')).toEqual([]);
});
