// `incumbent agent`: services that run by themselves, on real stores. Whatever happens to agents and
// services, the log of the services shows one active at a time.
import { existsSync } from 'node:fs';
import { expect } from 'vitest';
import { fencingFailsOnce, serviceHangs, serviceIsKilled } from './support/agent-scenarios.ts';
import { cluster, failOver, failovers, ServiceNode, takesOver, test } from './support/agents.ts';
import type { Lab, RunEvent } from './support/run-process.ts';
import { checkOneAtATime, isAlive, until } from './support/run-process.ts';

/** For tests that do not wait for its end. */
const noWait = { lease: '60s' };
const failover = ['failover', '-e', 'db', '--wait', '4m', '--timeout', '1m'];

function order(events: readonly RunEvent[], ...names: string[]): void {
  const places = names.map((name) => events.findIndex(({ event }) => event === name));
  expect(places).not.toContain(-1);
  expect(places).toEqual([...places].sort((a, b) => a - b));
}

test.concurrent('an agent is killed: its service is fenced, and then another one is active', async ({
  lab,
}) => {
  const [a, b] = (await cluster(lab, ['a', 'b'])) as [ServiceNode, ServiceNode];
  await takesOver(b, 'agent killed', 'agentLostMs', async () => {
    a.agent.kill('SIGKILL');
    // Nothing stops it.
    expect(await a.role()).toBe('active 1');
  });
  expect(isAlive(a.pid)).toBe(false);
  await b.agent.event('active');
  order(
    b.agent.events,
    'standby',
    'taking-over',
    'fencing',
    'fenced',
    'leading',
    'activating',
    'active',
  );
  checkOneAtATime(lab.stamps());
});

test.concurrent('an agent is frozen: its service is fenced, and it steers it again afterwards', async ({
  lab,
}) => {
  const [a, b] = (await cluster(lab, ['a', 'b'])) as [ServiceNode, ServiceNode];
  await takesOver(b, 'agent frozen', 'agentLostMs', () => a.agent.kill('SIGSTOP'));
  expect(isAlive(a.pid)).toBe(false);
  a.agent.kill('SIGCONT');
  await a.agent.event('standby-failed');
  await a.startService();
  await a.agent.event('waiting', 2);
  const { code, stdout } = await lab.cli(...failover, '--to', 'a');
  expect({ code, stdout }).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^"a" \(token 3\) leads/),
  });
  expect(await a.role()).toBe('active 3');
  expect(await b.role()).toBe('standby');
  checkOneAtATime(lab.stamps());
});

test.concurrent('a service is killed: another one is active, and the first comes back as standby', ({
  lab,
}) => serviceIsKilled(lab));

test.concurrent('a service hangs while it is active: it is fenced before another one is', ({
  lab,
}) => serviceHangs(lab));

test.concurrent('a service that is not well becomes standby, and nothing has to be fenced', async ({
  lab,
}) => {
  const [a, b] = (await cluster(lab, ['a', 'b'], noWait)) as [ServiceNode, ServiceNode];
  await takesOver(b, 'service not well', 'serviceLostMs', () => a.post('/sick'));
  expect(await a.role()).toBe('standby');
  expect(await a.agent.event('ended')).toMatchObject({ reason: 'unhealthy', released: true });
  expect(b.agent.all('fencing')).toEqual([]);
  checkOneAtATime(lab.stamps());
});

test.concurrent('fencing fails once: nobody becomes active before it has succeeded', ({ lab }) =>
  fencingFailsOnce(lab));

test.concurrent(`failover is asked for ${failovers} times among three, and is done when it returns`, async ({
  lab,
}) => {
  const nodes = await cluster(lab, ['a', 'b', 'c'], noWait);
  await failOver(lab, nodes, failovers, ['-e', 'db']);
  checkOneAtATime(lab.stamps());
});

test.concurrent('a service that does not become standby in time is fenced, and the failover goes on', async ({
  lab,
}) => {
  const [a, b] = (await cluster(lab, ['a', 'b'], {
    options: ['--standby-timeout', '4s'],
  })) as [ServiceNode, ServiceNode];
  await a.post('/slow', { ms: 3_600_000 });
  const { code } = await lab.cli(...failover);
  expect(code).toBe(0);
  expect(await b.role()).toMatch(/^active/);
  expect(isAlive(a.pid)).toBe(false);
  checkOneAtATime(lab.stamps());
});

test.concurrent('a service that cannot become active: the failover says so, and who is active now', async ({
  lab,
}) => {
  const [a, b] = (await cluster(lab, ['a', 'b'])) as [ServiceNode, ServiceNode];
  const failing = await ServiceNode.start(lab, 'c', { options: ['--become-active', 'exit 3'] });
  await failing.takesPart();
  const { code, stderr } = await lab.cli(...failover, '--to', 'c');
  expect(code).toBe(78);
  expect(stderr).toMatch(
    /the failover of election "db" to "c" is not done: "[ab]" \(token \d+\) leads/,
  );
  await until('one of the others is active', async () =>
    [await a.role(), await b.role()].some((role) => role.startsWith('active')),
  );
  expect(await failing.role()).toBe('standby');
  checkOneAtATime(lab.stamps());
});

test.concurrent('a service restarted by its manager is not taken for active, whatever the failures allowed', async ({
  lab,
}) => {
  const options = ['--health-failures', '1000'];
  const [a, b] = (await cluster(lab, ['a', 'b'], { ...noWait, options })) as [
    ServiceNode,
    ServiceNode,
  ];
  a.killService();
  await a.agent.event('standby-failed');
  await a.startService();
  await b.isActive();
  expect(await a.agent.event('ended')).toMatchObject({ reason: 'resigned', released: true });
  expect(await a.role()).toBe('standby');
  checkOneAtATime(lab.stamps());
});

/** For the tests that need no other agent. */
async function alone(lab: Lab, becomeActive: string): Promise<ServiceNode> {
  const options = ['--become-active', becomeActive, '--standby-timeout', '2s'];
  return ServiceNode.start(lab, 'a', { lease: '4s', options });
}

/** The agent before it may have left a `become-active` that still has its effect. */
async function fencesItself(a: ServiceNode): Promise<void> {
  const agent = a.startAgent();
  const first = await agent.eventWhere('how it fences', () =>
    agent.events.find(({ event }) => event === 'fencing' || event === 'fenced'),
  );
  expect(first).toMatchObject({ event: 'fencing', predecessor: 'a' });
}

test.concurrent('a become-active that was killed ends the agent, and the next one fences its service', async ({
  lab,
}) => {
  // As the kernel kills a process when memory is short.
  const a = await alone(lab, 'kill -KILL $$');
  expect(await a.agent.event('activation-failed')).toMatchObject({ isUnsure: true });
  expect(await a.agent.ends()).toEqual({ code: 75, signal: null });
  expect(a.agent.all('ended')).toMatchObject([{ released: false }]);
  await fencesItself(a);
});

test.concurrent('an agent that died while it made its service active: the next one fences that service', async ({
  lab,
}) => {
  const a = await alone(lab, 'touch begun; exec sleep 9999');
  await until('become-active runs', () => existsSync(lab.path('begun')));
  a.agent.kill('SIGKILL');
  await a.agent.exited;
  await fencesItself(a);
});

test.concurrent('an agent without --fence does not take over from one without --pid', async ({
  lab,
}) => {
  const [a, b] = (await cluster(lab, ['a', 'b'], (name) =>
    name === 'a' ? { lease: '4s' } : { lease: '4s', fencing: ['--pid', lab.path(`${name}.pid`)] },
  )) as [ServiceNode, ServiceNode];
  a.agent.kill('SIGKILL');
  const outcome = await b.agent.eventWhere('how the takeover ends', () =>
    b.agent.events.find(({ event }) => event === 'takeover-failed' || event === 'active'),
  );
  expect(outcome).toMatchObject({
    event: 'takeover-failed',
    error: expect.stringMatching(
      /"a" could not be fenced: its agent had no guard \(--pid\), and this agent has no --fence/,
    ),
  });
  expect(await a.role()).toBe('active 1');
  // Operators see it from anywhere.
  await b.agent.event('ended');
  const { stdout } = await lab.cli('status', '-e', 'db', '--json');
  expect(JSON.parse(stdout)).toMatchObject({
    state: 'vacant',
    unfenced: [
      { id: 'a', token: '1', failure: { by: 'b', why: expect.stringMatching(/had no guard/) } },
    ],
  });
});

test.concurrent('--pid names no process: such a candidate does not wait, and a good service keeps the seat', async ({
  lab,
}) => {
  const [a] = (await cluster(lab, ['a'], noWait)) as [ServiceNode];
  const fencing = ['--pid', lab.path('none')];
  const b = await ServiceNode.start(lab, 'b', { ...noWait, fencing });
  expect(await b.agent.event('process-not-found')).toMatchObject({
    error: expect.stringMatching(/none cannot be read \(ENOENT\): let the service write/),
  });
  expect(await lab.cli(...failover, '--to', 'b')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/"b" is not waiting .*health check fails/),
  });
  expect(await a.role()).toBe('active 1');
  // It waits as soon as the file names a process.
  lab.write('none', `${b.pid}\n`);
  await b.takesPart();
});

test.concurrent('where nothing listens at the address that was told, sshfence would believe it', async ({
  lab,
}) => {
  const fencing = ['--fence', 'sshfence:nobody@'];
  const a = await ServiceNode.start(lab, 'a', { fencing, address: 'db1:1' });
  expect(await a.agent.event('activation-failed')).toMatchObject({
    error: expect.stringMatching(/nothing listens at port 1 here, the one of --address/),
  });
  expect(await a.agent.event('ended')).toMatchObject({ released: true });
});

test.concurrent('--listen serves the metrics of an agent, and its service is ready once it is active', async ({
  lab,
}) => {
  const a = await ServiceNode.start(lab, 'a', { options: ['--listen', '127.0.0.1:0'] });
  const { url } = await a.agent.event('listening');
  await a.agent.event('active');
  const metrics = async () => (await fetch(`${url}/metrics`)).text();
  await until('it is ready', async () =>
    (await metrics()).includes('\nincumbent_ready{election="db"} 1\n'),
  );
  const text = await metrics();
  expect(text).toContain('\nincumbent_leading{election="db"} 1\n');
  expect(text).toContain('\nincumbent_candidates_unhealthy{election="db"} 0\n');
});

test.concurrent('an agent that is started makes a service standby that was left active', async ({
  lab,
}) => {
  const a = await ServiceNode.start(lab, 'a');
  await a.isActive();
  // Its record says that become-active is done.
  await a.agent.event('ready');
  a.agent.kill('SIGKILL');
  await a.agent.exited;
  expect(await a.role()).toBe('active 1');
  a.startAgent();
  await a.agent.event('standby');
  expect(await a.role()).toBe('standby');
  // Of itself it needs no fencing: its service is standby, and lives on.
  await a.isActive();
  expect(await a.agent.event('fenced')).toMatchObject({ predecessor: 'a' });
  expect(a.agent.all('fencing')).toEqual([]);
  expect(isAlive(a.pid)).toBe(true);
  checkOneAtATime(lab.stamps());
});

test.concurrent('TERM: the service becomes standby, the seat is given back, and another is active', async ({
  lab,
}) => {
  const [a, b] = (await cluster(lab, ['a', 'b'], noWait)) as [ServiceNode, ServiceNode];
  a.agent.kill('SIGTERM');
  expect(await a.agent.ends()).toEqual({ code: 143, signal: null });
  expect(await a.agent.event('ended')).toMatchObject({ reason: 'withdrawn', released: true });
  await b.isActive();
  expect(await a.role()).toBe('standby');
  expect(b.agent.all('fencing')).toEqual([]);
  checkOneAtATime(lab.stamps());
});

const byPid = (lab: { path(name: string): string }) => (name: string) => ({
  fencing: ['--pid', lab.path(`${name}.pid`)],
});

test.concurrent('--pid: an agent is killed, and its guard kills the service', async ({ lab }) => {
  const [a, b] = (await cluster(lab, ['a', 'b'], byPid(lab))) as [ServiceNode, ServiceNode];
  await takesOver(b, 'agent killed, --pid', 'agentLostMs', async () => {
    a.agent.kill('SIGKILL');
    await until('the service of a is dead', () => !isAlive(a.pid));
  });
  checkOneAtATime(lab.stamps());
});

test.concurrent('--pid: an agent is frozen, and its guard kills the service within its belief', async ({
  lab,
}) => {
  const [a, b] = (await cluster(lab, ['a', 'b'], byPid(lab))) as [ServiceNode, ServiceNode];
  await takesOver(b, 'agent frozen, --pid', 'agentLostMs', async () => {
    a.agent.kill('SIGSTOP');
    await until('the service of a is dead', () => !isAlive(a.pid));
  });
  a.agent.kill('SIGCONT');
  await a.agent.event('killed');
  await a.startService();
  await a.agent.event('standby', 2);
  expect(await a.role()).toBe('standby');
  checkOneAtATime(lab.stamps());
});

test.concurrent('--pid: a service that hangs is killed by its agent, and the seat is given back at once', async ({
  lab,
}) => {
  const [a, b] = (await cluster(lab, ['a', 'b'], byPid(lab))) as [ServiceNode, ServiceNode];
  await takesOver(b, 'service hangs, --pid', 'serviceLostMs', () => a.post('/hang'));
  expect(await a.agent.event('ended')).toMatchObject({ reason: 'unhealthy', released: true });
  expect(isAlive(a.pid)).toBe(false);
  checkOneAtATime(lab.stamps());
});

test.concurrent('--pid: a service that is restarted between two looks is noticed by the guard', async ({
  lab,
}) => {
  const [a, b] = (await cluster(lab, ['a', 'b'], (name) => ({
    ...byPid(lab)(name),
    ...noWait,
    options: ['--health-every', '10m'],
  }))) as [ServiceNode, ServiceNode];
  a.killService();
  await a.startService();
  await b.isActive();
  expect(await a.agent.event('process-ended')).toMatchObject({ role: 'stopping' });
  expect(b.agent.all('fencing')).toEqual([]);
  checkOneAtATime(lab.stamps());
});

test.concurrent('--pid: an agent without its guard gives its leadership up', async ({ lab }) => {
  const [a, b] = (await cluster(lab, ['a', 'b'], byPid(lab))) as [ServiceNode, ServiceNode];
  process.kill(a.agent.helper('process-guard.cjs')!, 'SIGKILL');
  await a.agent.event('guard-lost');
  expect(await a.agent.ends()).toEqual({ code: 75, signal: null });
  await b.isActive();
  expect(await a.role()).toBe('standby');
  checkOneAtATime(lab.stamps());
});
