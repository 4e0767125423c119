// The process that the guard starts when the supervisor has died, and its program as well.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Heir } from '../src/guard/index.ts';
import {
  appears,
  isAlive,
  kill,
  living,
  recorder,
  records,
  Supervisor,
  scratch,
  until,
  watchers,
} from './guard-helpers.ts';

const long = 600_000;
const seat = { token: '7', nonces: ['one'] };

/** Writes down what it was given, and when. */
const script = `
  const { readFileSync, renameSync, writeFileSync } = require('node:fs');
  const [seconds, nanoseconds] = process.hrtime();
  const given = JSON.parse(readFileSync(0, 'utf8'));
  const { env, argv } = process;
  const told = { given, at: seconds * 1e3 + nanoseconds / 1e6, env: env.SECRET, cwd: process.cwd(), argv };
  writeFileSync('heir.tmp', JSON.stringify(told));
  renameSync('heir.tmp', 'heir');
`;

function heirIn(cwd: string): Heir {
  const env = { PATH: process.env['PATH'] ?? '', SECRET: 's3cret' };
  return { argv: ['-e', script], cwd, env, input: { store: 'redis://:s3cret@host' } };
}

/** A supervisor that leads with a recording family, whose guard has an heir. */
async function leader(): Promise<{
  supervisor: Supervisor;
  guard: number;
  group: number;
  log: string;
  heir: string;
}> {
  const cwd = scratch();
  const log = join(cwd, 'log');
  const supervisor = new Supervisor();
  const guard = await supervisor.start({ heir: heirIn(cwd) });
  await supervisor.believe(long);
  await supervisor.call('seat', { seat });
  const group = await supervisor.run(process.execPath, [recorder, log, 'leader,child']);
  await until('both record', () => new Set(records(log).map(({ role }) => role)).size === 2);
  return { supervisor, guard, group, log, heir: join(cwd, 'heir') };
}

test('supervisor killed: the heir starts when everything of the program is dead, and is told by its stdin alone', async () => {
  const { supervisor, guard, group, log, heir } = await leader();
  // Not by the watchers: this is about the guard.
  for (const pid of watchers(group)) kill(pid, 'SIGKILL');
  kill(supervisor.pid, 'SIGKILL');
  await appears(heir);
  expect(living(group)).toEqual([]);
  const told = JSON.parse(readFileSync(heir, 'utf8'));
  expect(told).toMatchObject({
    given: { store: 'redis://:s3cret@host', seat },
    env: 's3cret',
    argv: [process.execPath],
  });
  expect(told.at).toBeGreaterThan(Math.max(...records(log).map((one) => one.monotonicMs)));
  await until('the guard has gone', () => !isAlive(guard));
});

test('supervisor killed between two programs: the heir starts', async () => {
  const { supervisor, heir } = await leader();
  await supervisor.call('stop', { graceMs: 0 });
  await supervisor.event('gone');
  kill(supervisor.pid, 'SIGKILL');
  await appears(heir);
});

test('a guard that is told to leave, or of no seat any more, starts no heir', async () => {
  const first = await leader();
  await first.supervisor.call('close');
  await until('the guard has gone', () => !isAlive(first.guard));
  const second = await leader();
  await second.supervisor.call('seat', {});
  kill(second.supervisor.pid, 'SIGKILL');
  await until('the guard has gone', () => !isAlive(second.guard));
  expect(living(second.group)).toEqual([]);
  for (const { heir } of [first, second]) expect(existsSync(heir)).toBe(false);
});

test('the pipe ends and the supervisor lives: that is no death, so no heir starts', async () => {
  const { supervisor, guard, group, heir } = await leader();
  void supervisor.call('hangUp', { ms: 60_000 }).catch(() => {});
  await until('the guard has gone', () => !isAlive(guard));
  expect(isAlive(supervisor.pid)).toBe(true);
  expect(living(group)).toEqual([]);
  expect(existsSync(heir)).toBe(false);
});

test('supervisor frozen, and its program killed with its belief: no heir starts before it dies', async () => {
  const { supervisor, guard, group, heir } = await leader();
  await supervisor.believe(500);
  kill(supervisor.pid, 'SIGSTOP');
  await until('the program is dead', () => living(group).length === 0);
  expect(isAlive(guard)).toBe(true);
  expect(existsSync(heir)).toBe(false);
  kill(supervisor.pid, 'SIGKILL');
  await appears(heir);
});
