/** Losses of a service or of its fencing, which are played on several stores. */
import { expect } from 'vitest';
import type { NodeSettings, ServiceNode } from './agents.ts';
import { cluster, killFence, takesOver } from './agents.ts';
import type { Lab } from './run-process.ts';
import { checkOneAtATime, isAlive, until } from './run-process.ts';

type Pair = readonly [ServiceNode, ServiceNode];

export async function serviceIsKilled(lab: Lab, settings: NodeSettings = {}): Promise<void> {
  const [a, b] = (await cluster(lab, ['a', 'b'], settings)) as unknown as Pair;
  await takesOver(b, 'service killed', 'serviceLostMs', () => a.killService());
  await a.startService();
  expect(await a.agent.event('ended')).toMatchObject({ reason: 'unhealthy', released: false });
  await a.agent.event('waiting', 2);
  expect(await a.role()).toBe('standby');
  checkOneAtATime(lab.stamps());
}

export async function serviceHangs(lab: Lab, settings: NodeSettings = {}): Promise<void> {
  const options = ['--health-timeout', '4s', '--standby-timeout', '4s'];
  const [a, b] = (await cluster(lab, ['a', 'b'], { ...settings, options })) as unknown as Pair;
  await takesOver(b, 'service hangs', 'serviceLostMs', () => a.post('/hang'));
  await a.agent.event('standby-failed');
  expect(isAlive(a.pid)).toBe(false);
  checkOneAtATime(lab.stamps());
}

export async function fencingFailsOnce(lab: Lab, settings: NodeSettings = {}): Promise<void> {
  const fails = 'shell:exit 9';
  const works = `shell:test -e works || exit 1; ${killFence(lab).slice('shell:'.length)}`;
  const fencing = ['--fence', fails, '--fence', works];
  const [a, b] = (await cluster(lab, ['a', 'b'], { ...settings, fencing })) as unknown as Pair;
  await takesOver(b, 'fencing fails once', 'fenceFailsOnceMs', async () => {
    a.agent.kill('SIGKILL');
    await failsToFence(a, b, lab);
    lab.write('works', '');
  });
  expect(isAlive(a.pid)).toBe(false);
  checkOneAtATime(lab.stamps());
}

/** The takeover by `b` fails, and the service of `a` goes on alone. */
async function failsToFence(a: ServiceNode, b: ServiceNode, lab: Lab): Promise<void> {
  const token = BigInt((await a.agent.event('active')).token!);
  const outcome = await b.agent.eventWhere('how the takeover ends', () =>
    b.agent.events.find(({ event }) => event === 'takeover-failed' || event === 'active'),
  );
  // If it had become active: the log says whether the other one still was.
  if (outcome.event === 'active') {
    await until(
      'the first one has gone on',
      () => lab.work(token).at(-1)!.monotonicMs > outcome.heardAtMs,
    );
    checkOneAtATime(lab.stamps());
  }
  expect(outcome).toMatchObject({
    event: 'takeover-failed',
    error: expect.stringMatching(/"a" could not be fenced: .*exit code 9; .*exit code 1/),
  });
  expect(await a.role()).toBe(`active ${token}`);
  expect(b.agent.all('activating')).toEqual([]);
}
