// The steps between the seat and the program: hooks after a leader that ended unclean, and the
// health check that keeps a candidate from leading.
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { expect } from 'vitest';
import type { Lab, RunProcess } from './support/run-process.ts';
import {
  checkOneAtATime,
  groupDies,
  groupOf,
  living,
  monotonicMs,
  signalTogether,
  test,
  until,
} from './support/run-process.ts';

const hook = (...commands: string[]) => commands.flatMap((command) => ['--on-unclean', command]);

/** A worker as a hook that does not end before it is killed, and neither does its shell. */
function deafHook(lab: Lab): string {
  const words = lab.worker('hook', 'deaf').map((word) => `'${word}'`);
  return `trap '' TERM INT HUP; ${words.join(' ')}; true`;
}

/** A led and was killed, and nobody said that its program is dead. */
async function uncleanEnd(lab: Lab, more: string[] = []): Promise<RunProcess> {
  const options = ['--no-release-on-crash', ...more];
  const a = lab.run('A', lab.worker('leader,child', 'deaf'), { lease: '4s', options });
  const { pid: group, token } = await a.started();
  await lab.works(token);
  a.kill('SIGKILL');
  await groupDies(group);
  return a;
}

function lines(lab: Lab): string[] {
  const file = lab.path('hooks');
  return existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
}

test.concurrent('--on-unclean: hooks in order, told about whom, and only then the program', async ({
  lab,
}) => {
  const words = 'INCUMBENT_ELECTION INCUMBENT_CANDIDATE INCUMBENT_TOKEN INCUMBENT_PREDECESSOR';
  const names = `${words} INCUMBENT_PREDECESSOR_TOKEN INCUMBENT_PREDECESSOR_ADDRESSES`.split(' ');
  const show = names.map((name) => `"$${name}"`).join(' ');
  await uncleanEnd(lab, ['--address', '10.0.0.7:1', '--address', '10.0.0.7:2']);
  const options = hook(
    `echo first ${show} >> hooks`,
    // The second waits to be overtaken by the program, and is not.
    `sleep 0.2; echo second >> hooks`,
  );
  const b = lab.run('B', ['sh', '-c', 'echo program >> hooks'], { options });
  expect(await b.ends()).toEqual({ code: 0, signal: null });
  expect(lines(lab)).toEqual(['first work B 2 A 1 10.0.0.7:1 10.0.0.7:2', 'second', 'program']);
  expect(await b.event('taking-over')).toMatchObject({ token: '2', unfenced: ['A'] });
  expect(b.all('fencing')).toMatchObject([{ predecessor: 'A' }, { predecessor: 'A' }]);
  const order = b.events.map(({ event }) => event);
  expect(order.indexOf('leading')).toBeGreaterThan(order.lastIndexOf('fencing'));

  // After a clean end there is nothing to fence.
  await lab.run('C', ['true'], { options }).ends();
  expect(lines(lab)).toHaveLength(3);
});

test.concurrent('--on-unclean: after a hook that fails the seat is given up, and the next one runs them all', async ({
  lab,
}) => {
  await uncleanEnd(lab);
  const b = lab.run('B', lab.worker(), {
    options: hook('echo B1 >> hooks', 'exit 9', 'echo B3 >> hooks'),
  });
  expect(await b.event('takeover-failed')).toMatchObject({
    error: expect.stringMatching(/fence hook 2 of 3 for "A" failed.*exit 9: exit code 9/),
  });
  expect(await b.event('ended')).toMatchObject({ reason: 'takeover-failed', released: true });
  expect(lines(lab)).not.toContain('B3');
  const c = lab.run('C', lab.worker(), {
    options: hook('echo "C1 $INCUMBENT_PREDECESSOR" >> hooks'),
  });
  const { token } = await c.started();
  await lab.works(token);
  expect(lines(lab)).toContain('C1 A');
  expect(b.all('started')).toEqual([]);
  b.kill('SIGKILL');
});

test.concurrent('--on-unclean: a hook still running when belief is about to end is killed', async ({
  lab,
}) => {
  await uncleanEnd(lab);
  const options = hook(deafHook(lab));
  const b = lab.run('B', lab.worker(), { lease: '4s', options });
  const { token } = await b.event('taking-over');
  const group = groupOf((await lab.works(BigInt(token!))).pid)!;
  const away = lab.path('away');
  renameSync(lab.store, away);
  const lastWriteMs = lab.lastWriteMs(away);
  expect(await b.event('ended')).toMatchObject({ released: false });
  const stamps = lab.work(BigInt(token!));
  expect(Math.max(...stamps.map((stamp) => stamp.monotonicMs))).toBeLessThan(lastWriteMs + 3_200);
  expect(living(group)).toEqual([]);
  renameSync(away, lab.store);
  // A was not fenced, and B led nothing.
  const c = lab.run('C', lab.worker(), { options: hook('echo "$INCUMBENT_PREDECESSOR" >> hooks') });
  b.kill('SIGKILL');
  await lab.works((await c.started()).token);
  expect(lines(lab)).toEqual(['A']);
  checkOneAtATime(lab.stamps());
});

test.concurrent('supervisor and guard killed while a hook runs: it dies, nothing is proved, the lease is waited out', async ({
  lab,
}) => {
  await uncleanEnd(lab);
  const options = hook(deafHook(lab));
  const b = lab.run('B', lab.worker(), { lease: '4s', options });
  const token = BigInt((await b.event('taking-over')).token!);
  const group = groupOf((await lab.works(token)).pid)!;
  signalTogether('KILL', b.pid, b.guardPid!);
  await groupDies(group);
  const record = lab.record()!;
  expect(record.holding).toMatchObject({ announced: false, actors: null });
  const beforeMs = monotonicMs();
  const c = lab.run('C', lab.worker(), { options: hook('echo "$INCUMBENT_PREDECESSOR" >> hooks') });
  const { monotonicMs: startMs } = await lab.works((await c.started()).token);
  expect(startMs - beforeMs).toBeGreaterThanOrEqual(record.leaseMs);
  expect(lines(lab)).toEqual(['A']);
  checkOneAtATime(lab.stamps());
});

test.concurrent('TERM while a hook runs: the hook is killed, the seat is given back, and the next one runs it', async ({
  lab,
}) => {
  await uncleanEnd(lab);
  const b = lab.run('B', lab.worker(), { options: hook(deafHook(lab)) });
  const token = BigInt((await b.event('taking-over')).token!);
  const group = groupOf((await lab.works(token)).pid)!;
  b.kill('SIGTERM');
  expect(await b.ends()).toEqual({ code: 143, signal: null });
  expect(living(group)).toEqual([]);
  expect(b.all('ended')).toMatchObject([{ reason: 'withdrawn', released: true }]);
  const c = lab.run('C', lab.worker(), { options: hook('echo "$INCUMBENT_PREDECESSOR" >> hooks') });
  await lab.works((await c.started()).token);
  expect(lines(lab)).toEqual(['A']);
  checkOneAtATime(lab.stamps());
});

test.concurrent('--takeover-delay: a pause after a leader that ended unclean, and none after another', async ({
  lab,
}) => {
  await uncleanEnd(lab);
  const options = ['--takeover-delay', '1200ms'];
  const b = lab.run('B', ['true'], { options });
  const wonAt = Date.parse(String((await b.event('taking-over'))['time']));
  const leadsAt = Date.parse(String((await b.event('leading'))['time']));
  expect(leadsAt - wonAt).toBeGreaterThanOrEqual(1_195);
  await b.ends();
  const c = lab.run('C', ['true'], { options });
  await c.ends();
  expect(c.all('taking-over')).toEqual([]);
});

// --- health ---

const health = ['--health', 'test -e "$INCUMBENT_CANDIDATE-is-well"', '--health-every', '1s'];

test.concurrent('--health: an unhealthy leader gives the seat up, and stays out until it is well', async ({
  lab,
}) => {
  const sign = lab.write('A-is-well', '');
  const a = lab.run('A', lab.worker('leader,child'), { options: health });
  const { token } = await a.started();
  await lab.works(token);
  const b = lab.run('B', lab.worker());
  await b.event('waiting');
  rmSync(sign);
  const next = await b.started();
  await lab.works(next.token);
  expect(await a.event('unhealthy')).toMatchObject({ event: 'unhealthy' });
  expect(a.all('ended')).toMatchObject([{ reason: 'unhealthy', released: true }]);
  const waited = a.all('waiting').length;
  b.kill('SIGTERM');
  await b.ends();
  expect(lab.record()).not.toHaveProperty('holding');
  expect(a.all('waiting')).toHaveLength(waited);
  lab.write('A-is-well', '');
  const third = await a.started(2);
  await lab.works(third.token);
  checkOneAtATime(lab.stamps());
});

test.concurrent('--health: an unhealthy candidate stays out of a free election', async ({
  lab,
}) => {
  const probes = `echo probe >> hooks; ${health[1]}`;
  const options = ['--health', probes, '--health-every', '1s'];
  const a = lab.run('A', lab.worker(), { options });
  await a.event('unhealthy');
  await until('it was asked again and again', () => lines(lab).length > 3);
  expect(a.all('waiting')).toEqual([]);
  expect(lab.record()).toBeUndefined();
  lab.write('A-is-well', '');
  await lab.works((await a.started()).token);
  expect(a.all('healthy')).toHaveLength(1);
});

test.concurrent('--health: a check that hangs is killed, with what it started, and is no health', async ({
  lab,
}) => {
  const hang = `INCUMBENT_TOKEN=0; export INCUMBENT_TOKEN; (${deafHook(lab)}) & wait`;
  const options = ['--health', hang, '--health-every', '3s'];
  const a = lab.run('A', lab.worker(), { options });
  const { pid } = await lab.works(0n);
  const group = groupOf(pid)!;
  await a.event('unhealthy');
  await groupDies(group);
  expect(a.all('leading')).toEqual([]);
});
