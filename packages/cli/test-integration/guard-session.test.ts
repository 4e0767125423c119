import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { guardFile } from '../src/guard/guard-file.ts';
import {
  groupDies,
  isAlive,
  kill,
  killTogether,
  living,
  recorder,
  records,
  Supervisor,
  scratch,
  strays,
  until,
  watchers,
} from './guard-helpers.ts';

const long = 600_000;

interface Stat {
  readonly group: number;
  readonly session: number;
  readonly isSpent: boolean;
}
const { parseStat } = createRequire(import.meta.url)(guardFile) as {
  readonly parseStat: (stat: string) => Stat;
};

test('only a zombie whose threads were counted, and are none, is spent', () => {
  const stat = (state: string, threads: number) =>
    parseStat(`70 (a) Z) ${state} 1 60 50 0 -1 0 1 2 3 4 5 6 7 8 20 0 ${threads} 0 812 1\n`);
  expect(stat('Z', 1)).toEqual({ group: 60, session: 50, isSpent: true });
  for (const threads of [0, 2]) expect(stat('Z', threads).isSpent).toBe(false);
  for (const state of ['R', 'S', 'D', 'T', 't']) expect(stat(state, 1).isSpent).toBe(false);
});

// `timeout` leaves the group of its parent. So do these three, one below the other. Their names
// look like the end of a name in /proc, and they ignore TERM.
const leavers = `trap '' TERM INT HUP
timeout 1000 sh -c 'echo "evil) Z 1 (" >/proc/self/comm; timeout 1000 sleep 1000 & timeout 1000 sleep 1000; wait' &
sleep 1000; wait`;

/** A supervisor, its guard, and a program with three groups beside its own. */
async function family(): Promise<[Supervisor, number, number]> {
  const supervisor = new Supervisor();
  const guard = await supervisor.start();
  await supervisor.believe(long);
  const group = await supervisor.run('sh', ['-c', leavers]);
  const asleep = (): number => strays(group).filter((one) => one.name === 'sleep').length;
  await until('all have left the group', () => asleep() === 2);
  expect(new Set(strays(group).map((one) => one.group)).size).toBe(3);
  return [supervisor, guard, group];
}

describe.runIf(process.platform === 'linux')('who left the group but not the session', () => {
  test('is dead before the guard of a killed supervisor goes', async () => {
    const [supervisor, guard, group] = await family();
    for (const pid of watchers(group)) kill(pid, 'SIGKILL');
    kill(supervisor.pid, 'SIGKILL');
    await until('the guard has gone', () => !isAlive(guard));
    expect([...living(group), ...strays(group)]).toEqual([]);
  });

  test('is dead before a program that ended by itself is gone', async () => {
    const [supervisor, , group] = await family();
    kill(group, 'SIGKILL');
    expect(await supervisor.event('gone')).toMatchObject({ left: 0 });
    expect(strays(group)).toEqual([]);
  });

  test('is dead before a program whose belief was over is gone', async () => {
    const [supervisor, , group] = await family();
    await supervisor.believe(100);
    expect(await supervisor.event('gone')).toMatchObject({ left: 0 });
    expect(strays(group)).toEqual([]);
  });

  test('is dead before the driver says, without a guard, that the program is gone', async () => {
    const [supervisor, guard, group] = await family();
    for (const pid of watchers(group)) kill(pid, 'SIGKILL');
    kill(guard, 'SIGKILL');
    expect(await supervisor.event('gone')).toMatchObject({ left: 0 });
    expect(strays(group)).toEqual([]);
  });

  test.each([0, 1])('is killed by watcher %i alone', async (which) => {
    const [supervisor, guard, group] = await family();
    // Neither has time to do anything, and the other watcher is not there.
    killTogether('STOP', supervisor.pid, guard);
    kill(watchers(group)[1 - which], 'SIGKILL');
    killTogether('KILL', supervisor.pid, guard);
    await groupDies(group);
    expect(strays(group)).toEqual([]);
  });

  test('is killed by both watchers at once', async () => {
    const [supervisor, guard, group] = await family();
    killTogether('STOP', supervisor.pid, guard);
    killTogether('KILL', supervisor.pid, guard);
    await groupDies(group);
    expect(strays(group)).toEqual([]);
  });

  test('hears of TERM and INT', async () => {
    const file = join(scratch(), 'records');
    const supervisor = new Supervisor();
    await supervisor.start();
    await supervisor.believe(long);
    // Its parent hands on nothing, for it ignores what it is sent.
    const script = `trap '' TERM INT; perl -e 'setpgrp; $SIG{TERM} = $SIG{INT} = "DEFAULT"; exec @ARGV' "$@" & sleep 1000; wait`;
    const group = await supervisor.run('sh', [
      '-c',
      script,
      'sh',
      process.execPath,
      recorder,
      file,
      'leaver',
    ]);
    await until('it records', () => records(file).length > 0);
    expect(strays(group)).toHaveLength(1);
    for (const name of ['SIGINT', 'SIGTERM']) {
      await supervisor.call('signal', { name });
      await until(`${name} came`, () => records(file).some((one) => one.what === name));
    }
  });
});
