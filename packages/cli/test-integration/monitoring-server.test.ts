/**
 * A real Prometheus scrapes three runs through hand-overs, kills and a time without a leader, and
 * then two leaders of a broken build. Alerts fire when they must, and only then.
 * INCUMBENT_MONITORING=long: 50 hand-overs, 10 kills and a minute, with the times that it took.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePorts } from '@incumbent/zookeeper-testing';
import { expect, onTestFinished } from 'vitest';
import { isInstalled, Prometheus } from './support/prometheus.ts';
import type { Lab, RunProcess } from './support/run-process.ts';
import { test, until } from './support/run-process.ts';

const isLong = process.env['INCUMBENT_MONITORING'] === 'long';
const [handOvers, kills, leaderlessMs] = isLong ? [50, 10, 60_000] : [3, 1, 0];
const lease = '6s';
/** As the script computes it for this lease and a scrape a second. */
const vacancyMs = 13_000;
const lateMs = 15_000;
const script = fileURLToPath(new URL('../../../scripts/monitoring.mjs', import.meta.url));
const brokenLeader = fileURLToPath(new URL('support/broken-leader.mjs', import.meta.url));

async function startPrometheus(lab: Lab, targets: readonly number[], port: number) {
  execFileSync(process.execPath, [
    script,
    '--lease',
    lease,
    '--scrape',
    '1s',
    '--to',
    lab.directory,
  ]);
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [lab.path('incumbent-alerts.yml')],
    scrape_configs: [
      {
        job_name: 'incumbent',
        static_configs: [{ targets: targets.map((target) => `127.0.0.1:${target}`) }],
      },
    ],
  };
  const server = new Prometheus(
    lab.write('prometheus.json', JSON.stringify(config)),
    lab.path('tsdb'),
    port,
  );
  onTestFinished(() => server.close());
  return server;
}

test('alerts of a real Prometheus fire when they must, and only then', async ({ lab, skip }) => {
  skip(!isInstalled('prometheus'), 'needs prometheus (Debian: prometheus)');
  const [port, brokenPort, ...ports] = (await freePorts(5)) as [number, number, ...number[]];
  const server = await startPrometheus(lab, [...ports, brokenPort], port);
  const ids = ['A', 'B', 'C'] as const;
  const start = (id: string) =>
    lab.run(id, lab.worker(), {
      lease,
      options: ['--listen', `127.0.0.1:${ports[ids.indexOf(id as 'A')]}`],
    });
  const runs = new Map<string, RunProcess>(ids.map((id) => [id, start(id)]));
  const leaderNow = () => lab.record()?.holding?.candidate.id;
  const leads = async (other?: string) => {
    await until(
      () => `a leader other than ${other}; the runs said:\n${lab.story()}`,
      () => ![undefined, other].includes(leaderNow()) && lab.record()?.holding?.announced,
    );
    return leaderNow() as string;
  };
  /** One that has just led stands aside, and cannot be named yet. */
  const handOver = (to: string) =>
    until(`${to} leads`, async () => {
      const { code, stderr } = await lab.cli(
        ...['transfer', '-e', 'work', '--to', to, '--wait', '--timeout', '30s'],
      );
      if (code !== 0 && !stderr.includes('is not waiting')) throw new Error(stderr);
      return code === 0;
    });
  const fired = () => [...new Set(server.fired.map(({ name }) => name))].sort();
  await leads();
  await server.shows('sum(incumbent_leading) == 1 and sum(incumbent_candidates_waiting) == 2');

  for (let n = 0; n < handOvers; n += 1) {
    const before = await leads();
    const to = ids[(ids.indexOf(before as 'A') + 1) % 3] as string;
    await handOver(to);
  }
  // More than five terms in ten minutes are too many, on purpose.
  if (isLong) await until('it flaps', () => fired().includes('IncumbentFlapping'));
  expect(fired().filter((name) => name !== 'IncumbentFlapping')).toEqual([]);

  for (let n = 0; n < kills; n += 1) {
    const before = await leads();
    runs.get(before)?.kill('SIGKILL');
    await runs.get(before)?.ends();
    await leads(before);
    runs.set(before, start(before));
    await server.shows('sum(incumbent_leading) == 1 and sum(incumbent_candidates_waiting) == 2');
  }
  expect(fired().filter((name) => name !== 'IncumbentFlapping')).toEqual([]);

  // No candidate may lead: all are drained.
  for (const id of ids) {
    expect(await lab.cli('drain', '-e', 'work', '--id', id, '--until', '1h')).toMatchObject({
      code: 0,
    });
  }
  await until('nobody leads', () => leaderNow() === undefined);
  const vacantMs = Date.now();
  const firing = (name: string) => server.firing.find((alert) => alert.name === name);
  await until('it is told', () => firing('IncumbentNoLeader'));
  const toldMs = firing('IncumbentNoLeader')!.fromMs - vacantMs;
  if (isLong) await sleep(vacantMs + leaderlessMs - Date.now());
  expect(firing('IncumbentNoLeader')).toBeDefined();
  for (const id of ids) {
    expect(await lab.cli('drain', '-e', 'work', '--id', id, '--lift')).toMatchObject({ code: 0 });
  }
  await leads();
  const ledMs = Date.now();
  await until('it is over', () => firing('IncumbentNoLeader') === undefined);
  const overMs = Date.now() - ledMs;
  const allowed = ['IncumbentFlapping', 'IncumbentNoLeader'];
  expect(fired().filter((name) => !allowed.includes(name))).toEqual([]);

  // The broken build leads, is frozen until another one leads, and goes on as if it still led.
  mkdirSync(lab.path('broken'));
  const broken = spawn(
    process.execPath,
    [brokenLeader, lab.store, lease, String(brokenPort), lab.path('broken')],
    { env: lab.env, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  onTestFinished(() => void broken.kill('SIGKILL'));
  await until(
    'it campaigns',
    async () => (await server.query('incumbent_build_info or up == 1')).length > 3,
  );
  await server.shows('sum(incumbent_candidates_waiting) == 3');
  const told = once(broken.stdout, 'data');
  await handOver('BROKEN');
  await told;
  expect(firing('IncumbentTwoLeaders')).toBeUndefined();
  broken.kill('SIGSTOP');
  await leads('BROKEN');
  broken.kill('SIGCONT');
  const twoMs = Date.now();
  await until('two leaders are told', () => firing('IncumbentTwoLeaders'));
  const twoToldMs = firing('IncumbentTwoLeaders')!.fromMs - twoMs;
  broken.kill('SIGKILL');
  await until('two leaders are over', () => firing('IncumbentTwoLeaders') === undefined);
  expect(fired().filter((name) => !allowed.includes(name))).toEqual(['IncumbentTwoLeaders']);

  console.log(
    `no leader: told ${toldMs} ms after it (bound ${vacancyMs}), over ${overMs} ms after the next; ` +
      `two leaders: told after ${twoToldMs} ms`,
  );
  expect(toldMs).toBeGreaterThan(vacancyMs - 1_000);
  if (!isLong) return;
  expect(toldMs).toBeLessThan(vacancyMs + lateMs);
  expect(twoToldMs).toBeLessThan(lateMs);
});
