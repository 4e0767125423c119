import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { shells } from '../src/guard/gate.ts';
import {
  groupDies,
  isAlive,
  kill,
  killTogether,
  living,
  monotonicMs,
  recorder,
  records,
  Supervisor,
  scratch,
  sleepers,
  until,
  watchers,
} from './guard-helpers.ts';

const long = 600_000;
const node: string = process.execPath;

// A shell with a child and a grandchild, all of which TERM does not impress.
const tree = `trap '' TERM INT HUP; sh -c 'sleep 1000 & sleep 1000; wait' & sleep 1000; wait`;

/** A supervisor and a guard with the tree running under them. */
async function family(options: object = {}): Promise<[Supervisor, number, number]> {
  const supervisor = new Supervisor();
  const guard = await supervisor.start(options);
  await supervisor.believe(long);
  const group = await supervisor.run('sh', ['-c', tree]);
  await until('the grandchildren are there', () => sleepers(group) === 3);
  return [supervisor, guard, group];
}

/** The same with a program that records, when its child is up too. */
async function recording(file: string, supervisor: Supervisor): Promise<number> {
  const group = await supervisor.run(node, [recorder, file, 'leader,child']);
  await until('both record', () => {
    const roles = records(file).map((one) => one.role);
    return roles.includes('leader') && roles.includes('child');
  });
  return group;
}

function last(file: string): number {
  return Math.max(...records(file).map((one) => one.monotonicMs));
}

test('supervisor killed: the guard kills the whole group, waits until it is gone, and goes', async () => {
  const [supervisor, guard, group] = await family();
  // Not by the watchers: this is about the guard.
  for (const pid of watchers(group)) kill(pid, 'SIGKILL');
  kill(supervisor.pid, 'SIGKILL');
  await until('the guard has gone', () => !isAlive(guard));
  expect(living(group)).toEqual([]);
});

test('supervisor ends by itself with a program running: as if killed', async () => {
  const [supervisor, guard, group] = await family();
  supervisor.call('exit').catch(() => {});
  await groupDies(group);
  await until('the guard has gone', () => !isAlive(guard));
});

test('supervisor killed while no program is there: the guard goes', async () => {
  const supervisor = new Supervisor();
  const guard = await supervisor.start();
  kill(supervisor.pid, 'SIGKILL');
  await until('the guard has gone', () => !isAlive(guard));
});

test('guard killed: the driver kills the whole group and says that the guard is lost', async () => {
  const [supervisor, guard, group] = await family();
  for (const pid of watchers(group)) kill(pid, 'SIGKILL');
  kill(guard, 'SIGKILL');
  await groupDies(group);
  expect(await supervisor.event('lost')).toMatchObject({ code: 'GUARD_LOST' });
  expect(await supervisor.exited()).toMatchObject({ code: null, because: 'guard-lost' });
  await supervisor.event('gone');
  expect(supervisor.events.map(({ event }) => event)).toEqual(['lost', 'exited', 'gone']);
  await expect(supervisor.prepare('true')).rejects.toMatchObject({ code: 'GUARD_LOST' });
});

test('supervisor and guard killed at once: the group dies', async () => {
  const [supervisor, guard, group] = await family();
  killTogether('KILL', supervisor.pid, guard);
  await groupDies(group);
});

test('supervisor and guard killed at once, and neither could do anything before: the group dies', async () => {
  const [supervisor, guard, group] = await family();
  killTogether('STOP', supervisor.pid, guard);
  killTogether('KILL', supervisor.pid, guard);
  await groupDies(group);
});

test('supervisor killed while the guard is frozen: the watchers do not wait for it', async () => {
  const [supervisor, guard, group] = await family();
  killTogether('STOP', guard);
  kill(supervisor.pid, 'SIGKILL');
  await groupDies(group);
});

test('guard killed while the supervisor is frozen: the watchers do not wait for it', async () => {
  const [supervisor, guard, group] = await family();
  killTogether('STOP', supervisor.pid);
  kill(guard, 'SIGKILL');
  await groupDies(group);
});

test('guard frozen: the driver notices, kills it and the group', async () => {
  const [supervisor, guard, group] = await family();
  for (const pid of watchers(group)) kill(pid, 'SIGKILL');
  killTogether('STOP', guard);
  expect(await supervisor.event('lost')).toMatchObject({ code: 'GUARD_LOST' });
  await groupDies(group);
  await until('the guard is dead', () => !isAlive(guard));
});

test('a stall of the supervisor is not a silence of the guard', async () => {
  const [supervisor, , group] = await family();
  await supervisor.call('block', { ms: 2_500 });
  // Two rounds of messages later nothing was done about it.
  await supervisor.call('believe', { ms: long });
  await supervisor.call('believe', { ms: long });
  expect(supervisor.events).toEqual([]);
  expect(sleepers(group)).toBe(3);
});

test('supervisor frozen past belief: TERM, then KILL before belief ends; nothing resurrects', async () => {
  const file = join(scratch(), 'records');
  const supervisor = new Supervisor();
  await supervisor.start({ stopMarginMs: 1_000, killMarginMs: 500 });
  await supervisor.call('keepBelieving', { ms: long, everyMs: 50 });
  const group = await recording(file, supervisor);
  for (const pid of watchers(group)) kill(pid, 'SIGKILL');
  await supervisor.call('keepBelieving', { ms: long, everyMs: 1_000_000 });
  const belief = await supervisor.believe(2_000);
  killTogether('STOP', supervisor.pid);
  await groupDies(group);

  // The child ignores TERM. TERM came first, to the whole group, and no sooner than necessary.
  for (const role of ['leader', 'child']) {
    const terms = records(file).filter((one) => one.role === role && one.what === 'SIGTERM');
    expect(terms).toHaveLength(1);
    // Wall clocks are read in whole milliseconds.
    expect(terms[0]!.monotonicMs).toBeGreaterThan(belief.monotonicMs - 1_005);
  }
  expect(last(file)).toBeLessThan(belief.monotonicMs);

  const size = records(file).length;
  killTogether('CONT', supervisor.pid);
  expect(await supervisor.exited()).toMatchObject({ signal: 'SIGKILL', because: 'belief-over' });
  await supervisor.event('gone');
  await expect(supervisor.prepare('true')).rejects.toMatchObject({ code: 'BELIEF_OVER' });
  expect(living(group)).toEqual([]);
  expect(records(file)).toHaveLength(size);
});

test('guard frozen when belief ends: the driver kills the group in time', async () => {
  const file = join(scratch(), 'records');
  const supervisor = new Supervisor();
  // Silence would be noticed after 3 s only.
  const guard = await supervisor.start({ stopMarginMs: 3_000, killMarginMs: 500 });
  await supervisor.believe(long);
  const group = await recording(file, supervisor);
  for (const pid of watchers(group)) kill(pid, 'SIGKILL');
  killTogether('STOP', guard);
  const belief = await supervisor.believe(1_200);
  await groupDies(group);
  expect(last(file)).toBeLessThan(belief.monotonicMs);
});

test.skipIf(shells.bash === undefined)(
  'supervisor and guard both frozen when belief ends: the watcher in the group kills it in time (needs bash)',
  async () => {
    const file = join(scratch(), 'records');
    const supervisor = new Supervisor();
    const guard = await supervisor.start({ stopMarginMs: 1_200, killMarginMs: 1_000 });
    await supervisor.call('keepBelieving', { ms: 2_500, everyMs: 200 });
    const firstMs = monotonicMs() + 2_500;
    const group = await recording(file, supervisor);
    await until('it lives by a later belief', () => last(file) > firstMs);
    killTogether('STOP', supervisor.pid, guard);
    const endMs = monotonicMs() + 2_500;
    await groupDies(group);
    expect(last(file)).toBeLessThan(endMs);
  },
);

test.each([
  ['monotonic', 1_500, long],
  ['wall', long, 1_500],
])('belief over by the %s clock alone is over', async (_, ms, wallMs) => {
  const supervisor = new Supervisor();
  await supervisor.start({ stopMarginMs: 1_000 });
  await supervisor.believe(long);
  const group = await supervisor.run('sh', ['-c', tree]);
  for (const pid of watchers(group)) kill(pid, 'SIGKILL');
  await supervisor.believe(ms, wallMs);
  expect(await supervisor.exited()).toMatchObject({ because: 'belief-over' });
  await groupDies(group);
});

test('belief that comes back after TERM does not save the program', async () => {
  const supervisor = new Supervisor();
  await supervisor.start({ stopMarginMs: 2_000, killMarginMs: 500 });
  await supervisor.believe(long);
  const file = join(scratch(), 'records');
  const group = await recording(file, supervisor);
  const belief = await supervisor.believe(2_000);
  await until('TERM came', () => records(file).some((one) => one.what === 'SIGTERM'));
  await supervisor.believe(long);
  expect(await supervisor.exited()).toMatchObject({ because: 'belief-over' });
  await groupDies(group);
  expect(last(file)).toBeLessThan(belief.monotonicMs);
});

test.each([
  ['supervisor', (supervisor: number) => kill(supervisor, 'SIGKILL')],
  ['guard', (_: number, guard: number) => kill(guard, 'SIGKILL')],
  ['both', (supervisor: number, guard: number) => killTogether('KILL', supervisor, guard)],
  [
    'both, frozen before,',
    (supervisor: number, guard: number) => {
      killTogether('STOP', supervisor, guard);
      killTogether('KILL', supervisor, guard);
    },
  ],
])('%s killed between prepare and go: the program never starts', async (_, strike) => {
  const marker = join(scratch(), 'started');
  const supervisor = new Supervisor();
  const guard = await supervisor.start();
  await supervisor.believe(long);
  const group = await supervisor.prepare('touch', [marker]);
  expect(living(group).length).toBeGreaterThanOrEqual(3);
  strike(supervisor.pid, guard);
  await groupDies(group);
  expect(existsSync(marker)).toBe(false);
});

test('the gate killed between prepare and go: the program never starts, and go says so', async () => {
  const marker = join(scratch(), 'started');
  const supervisor = new Supervisor();
  await supervisor.start();
  await supervisor.believe(long);
  const group = await supervisor.prepare('touch', [marker]);
  kill(group, 'SIGKILL');
  await supervisor.event('gone');
  await expect(supervisor.call('go')).rejects.toMatchObject({ code: 'ENDED' });
  await groupDies(group);
  expect(existsSync(marker)).toBe(false);
});

test('too little belief left at go: refused, and the program never starts', async () => {
  const marker = join(scratch(), 'started');
  const supervisor = new Supervisor();
  await supervisor.start({ stopMarginMs: 5_000, killMarginMs: 100 });
  await supervisor.believe(long);
  const group = await supervisor.prepare('touch', [marker]);
  await supervisor.believe(4_000);
  await expect(supervisor.call('go')).rejects.toMatchObject({
    code: expect.stringMatching(/^(BELIEF_OVER|ENDED)$/),
  });
  await supervisor.event('gone');
  await groupDies(group);
  expect(existsSync(marker)).toBe(false);
});

test('the watchers survive whatever the group is sent', async () => {
  const supervisor = new Supervisor();
  const guard = await supervisor.start();
  await supervisor.believe(long);
  // The program ignores it all as well, and so do its children.
  const deaf = `trap '' TERM INT HUP QUIT USR1 USR2 PIPE; sleep 1000 & sleep 1000; wait`;
  const group = await supervisor.run('sh', ['-c', deaf]);
  await until('all are there', () => sleepers(group) === 2);
  for (const name of ['TERM', 'INT', 'HUP', 'QUIT', 'USR1', 'USR2', 'PIPE', 'TSTP', 'TTIN']) {
    process.kill(-group, `SIG${name}`);
  }
  // Delivered for sure once these were stopped and continued.
  process.kill(-group, 'SIGSTOP');
  process.kill(-group, 'SIGCONT');
  await until('all run again', () => living(group).every((one) => !one.state.startsWith('T')));
  expect(watchers(group)).toHaveLength(2);
  killTogether('STOP', supervisor.pid, guard);
  killTogether('KILL', supervisor.pid, guard);
  await groupDies(group);
});

test('processes that a program leaves in its group end with it', async () => {
  const supervisor = new Supervisor();
  await supervisor.start();
  await supervisor.believe(long);
  const left = `trap '' TERM HUP; sleep 1000 & (sleep 1000 & sleep 1000) & exit 3`;
  const group = await supervisor.run('sh', ['-c', left]);
  expect(await supervisor.exited()).toMatchObject({ code: 3, signal: null, because: 'itself' });
  await supervisor.event('gone');
  expect(living(group)).toEqual([]);
  expect(supervisor.events.map(({ event }) => event)).toEqual(['exited', 'gone']);
});

test('guard frozen before prepare: given up, and nothing was started', async () => {
  const marker = join(scratch(), 'started');
  const supervisor = new Supervisor();
  const guard = await supervisor.start();
  await supervisor.believe(long);
  killTogether('STOP', guard);
  await expect(supervisor.prepare('touch', [marker])).rejects.toMatchObject({ code: 'GUARD_LOST' });
  await until('the guard is dead', () => !isAlive(guard));
  expect(existsSync(marker)).toBe(false);
});

test('prepare given up by its signal: nothing is left of it', async () => {
  const marker = join(scratch(), 'started');
  const supervisor = new Supervisor();
  const guard = await supervisor.start();
  await supervisor.believe(long);
  killTogether('STOP', guard);
  const preparing = supervisor.prepare('touch', [marker], { abortAfterMs: 100 });
  const aborted = expect(preparing).rejects.toMatchObject({ name: 'TimeoutError' });
  await supervisor.event('aborting');
  killTogether('CONT', guard);
  await aborted;
  await expect(supervisor.prepare('touch', [marker], { abortAfterMs: 0 })).rejects.toMatchObject({
    name: 'TimeoutError',
  });
  // The next one has the guard for itself.
  await supervisor.run('sh', ['-c', 'exit 6']);
  expect(await supervisor.exited()).toMatchObject({ code: 6 });
  expect(existsSync(marker)).toBe(false);
});
