// Each part of a run dies in turn, and no program works beside its successor. Each program is a
// small family that logs when it worked. It ignores TERM, INT and HUP, so that only KILL ends it.
import { existsSync, renameSync } from 'node:fs';
import { expect } from 'vitest';
import type { Lab, RunProcess } from './support/run-process.ts';
import {
  checkOneAtATime,
  groupDies,
  hasTerminals,
  isAlive,
  living,
  monotonicMs,
  processes,
  signalTogether,
  terminalsNeed,
  test,
  until,
  watchers,
} from './support/run-process.ts';

const leaseMs = 4_000;
const short = { lease: '4s' };
/** A is frozen and killed while it believes: a busy machine may take seconds for that. */
const roomy = { lease: '10s' };
const family = 'leader,child,grandchild';

/** A leads with the family at work, B waits. */
async function leaderAndFollower(
  lab: Lab,
): Promise<{ a: RunProcess; b: RunProcess; group: number; token: bigint }> {
  const a = lab.run('A', lab.worker(family, 'deaf'), short);
  const { pid: group, token } = await a.started();
  await lab.works(token);
  const b = lab.run('B', lab.worker(family), short);
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

test.concurrent("supervisor killed: its program's whole group is dead before the successor's starts", async ({
  lab,
}) => {
  const { a, b, group, token } = await leaderAndFollower(lab);
  a.kill('SIGKILL');
  await takesOver(lab, b, group, token);
});

test.concurrent('supervisor frozen for three leases: the same, and thawed it does not resurrect and campaigns again', async ({
  lab,
}) => {
  const { a, b, group, token } = await leaderAndFollower(lab);
  a.kill('SIGSTOP');
  const frozenMs = monotonicMs();
  const second = await takesOver(lab, b, group, token);
  await until('three leases are over', () => monotonicMs() > frozenMs + 3 * leaseMs);
  a.kill('SIGCONT');
  await a.event('waiting', 2);
  expect(a.all('ended')).toMatchObject([{ token: String(token), released: false }]);
  // No program outlived its term.
  expect(a.all('overrun')).toEqual([]);
  b.kill('SIGTERM');
  const third = await a.started(2);
  expect(third.token).toBeGreaterThan(second);
  await lab.works(third.token);
  checkOneAtATime(lab.stamps());
});

test.concurrent('guard killed: the program dies, the seat is given up, and its candidate can lead again', async ({
  lab,
}) => {
  const { a, b, group, token } = await leaderAndFollower(lab);
  process.kill(a.guardPid!, 'SIGKILL');
  const second = await takesOver(lab, b, group, token);
  await a.event('guard-lost');
  expect(await a.event('ended')).toMatchObject({ reason: 'resigned', released: true });
  await a.event('waiting', 2);
  b.kill('SIGTERM');
  const third = await a.started(2);
  expect(third.token).toBeGreaterThan(second);
  await lab.works(third.token);
  checkOneAtATime(lab.stamps());
});

test.concurrent('supervisor and guard killed at once: program and grandchildren die, and no other program starts before', async ({
  lab,
}) => {
  const { a, b, group, token } = await leaderAndFollower(lab);
  signalTogether('KILL', a.pid, a.guardPid!);
  await takesOver(lab, b, group, token);
});

test.concurrent('supervisor killed while its guard is frozen: the program dies all the same', async ({
  lab,
}) => {
  const { a, b, group, token } = await leaderAndFollower(lab);
  const guard = a.guardPid!;
  signalTogether('STOP', guard);
  a.kill('SIGKILL');
  await takesOver(lab, b, group, token);
  // Thawed it finds nothing left to do.
  signalTogether('CONT', guard);
  await until('the guard has gone', () => !isAlive(guard));
});

test.concurrent('supervisor dead, but a process of its group lives: the term is not proved dead', async ({
  lab,
}) => {
  const six = { lease: '6s' };
  const a = lab.run('A', lab.worker('leader,child', 'deaf'), six);
  const { pid: group, token } = await a.started();
  await lab.works(token);
  const b = lab.run('B', lab.worker(family), six);
  await b.event('waiting');
  const guard = a.guardPid!;
  // For a while there is no process that could kill the group.
  signalTogether('STOP', guard);
  signalTogether('KILL', ...watchers(group), a.pid);
  const killedMs = monotonicMs();
  const worksOn = () => lab.work(token).some((stamp) => stamp.monotonicMs > killedMs + 1_000);
  await until('the program has worked on for a second', worksOn);
  expect(b.all('leading')).toEqual([]);
  signalTogether('CONT', guard);
  await takesOver(lab, b, group, token);
});

test.concurrent('supervisor and guard frozen: the program dies before the successor starts, and thawed nothing resurrects', async ({
  lab,
  skip,
}) => {
  skip(!existsSync('/bin/bash'), 'without bash the watcher in the group has no clock');
  const { a, b, group, token } = await leaderAndFollower(lab);
  const guard = a.guardPid!;
  signalTogether('STOP', a.pid, guard);
  await takesOver(lab, b, group, token);
  signalTogether('CONT', a.pid, guard);
  await a.event('waiting', 2);
  checkOneAtATime(lab.stamps());
});

test.concurrent('supervisor stopped by Ctrl-Z: as frozen, and in the foreground again it campaigns', async ({
  lab,
  skip,
}) => {
  skip(!hasTerminals(), terminalsNeed);
  const a = lab.runInTerminal('A', lab.worker(family, 'deaf'), short);
  const { pid: group, token } = await a.started();
  await lab.works(token);
  const b = lab.run('B', lab.worker(family), short);
  await b.event('waiting');
  a.child.stdin!.write('\x1a');
  const second = await takesOver(lab, b, group, token);
  a.child.stdin!.write('fg\n');
  await a.event('waiting', 2);
  b.kill('SIGTERM');
  const third = await a.started(2);
  expect(third.token).toBeGreaterThan(second);
  await lab.works(third.token);
  checkOneAtATime(lab.stamps());
});

test.concurrent('supervisor killed while its program is stopped: the program is killed, not left to be continued', async ({
  lab,
}) => {
  const a = lab.run('A', lab.worker('leader,child', 'deaf', 'stop'), short);
  const { pid: group, token } = await a.started();
  await until('all of it is stopped', () => {
    const states = living(group).map(({ state }) => state);
    return lab.work(token).some(({ what }) => what === 'ready') && states.includes('T');
  });
  const b = lab.run('B', lab.worker(family), short);
  await b.event('waiting');
  a.kill('SIGKILL');
  await takesOver(lab, b, group, token);
});

/**
 * A wins while its guard is frozen: it says "leading", and its list of actors cannot be complete
 * before the guard has made a gate. For about a second nothing more happens.
 */
async function leadingWithFrozenGuard(lab: Lab): Promise<{ a: RunProcess; guard: number }> {
  const first = lab.run('FIRST', lab.worker(), short);
  await first.started();
  // The guard is to be silent for less than the margin.
  const options = ['--stop-margin', '4s', '--no-release-on-crash'];
  const roomiest = { lease: '20s', options };
  const a = lab.run('A', lab.worker(family, 'deaf'), roomiest);
  await a.event('waiting');
  await until('the guard of A is there', () => a.guardPid);
  const guard = a.guardPid!;
  signalTogether('STOP', guard);
  first.kill('SIGTERM');
  await a.event('leading');
  return { a, guard };
}

/** B comes, and must not lead before the record has stood for its lease under B's eyes. */
async function waitsOutTheLease(lab: Lab): Promise<void> {
  const record = lab.record()!;
  expect(record.holding).toMatchObject({ candidate: { id: 'A' }, actors: null });
  const beforeMs = monotonicMs();
  const b = lab.run('B', lab.worker(family), roomy);
  const { token } = await b.started();
  const { monotonicMs: startMs } = await lab.works(token);
  expect(startMs - beforeMs).toBeGreaterThanOrEqual(record.leaseMs);
  expect(lab.work(record.token)).toEqual([]);
  expect(lab.record()!.history).toContainEqual(
    expect.objectContaining({ id: 'A', why: 'unclean' }),
  );
  checkOneAtATime(lab.stamps());
}

test.concurrent('supervisor killed between its win and the gate: nothing is proved, the lease is waited out', async ({
  lab,
}) => {
  const { a, guard } = await leadingWithFrozenGuard(lab);
  a.kill('SIGKILL');
  await until('the supervisor is dead', () => !isAlive(a.pid));
  const waiting = waitsOutTheLease(lab);
  // Only now the guard reads its messages, and that their sender is gone.
  signalTogether('CONT', guard);
  await until('the guard has gone', () => !isAlive(guard));
  await waiting;
});

test.concurrent('supervisor and guard killed between the gate and the commit of the actors: nothing is proved, the lease is waited out', async ({
  lab,
}) => {
  const { a, guard } = await leadingWithFrozenGuard(lab);
  const away = lab.path('away');
  renameSync(lab.store, away);
  signalTogether('CONT', guard);
  await a.event('unconfirmed');
  const gate = () => processes().find(({ parent }) => parent === guard)?.pid;
  await until('the gate is there', gate);
  const group = gate()!;
  signalTogether('KILL', a.pid, guard);
  renameSync(away, lab.store);
  expect(a.all('started')).toEqual([]);
  await groupDies(group);
  await waitsOutTheLease(lab);
});
