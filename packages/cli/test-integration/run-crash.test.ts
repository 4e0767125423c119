// A supervisor that is killed: its guard sees it die, and everything of its program, and a process
// that the guard starts gives the seat back. So the successor does not wait for the lease. Where the
// guard sees no death, or dies itself, or does not reach the store, the lease runs out as ever.
//
// INCUMBENT_CRASHES=50 takes so many terms for each store and each way to die, and prints how long
// the successors took. Without it, faults of the network and of the guard are played on one store of
// leases and one of queues: what is written there is the same on the others.
import { serverAvailable, startProxy } from '@incumbent/zookeeper-testing';
import { expect } from 'vitest';
import { inTurn } from './support/in-turn.ts';
import type { Lab, RunProcess, RunSettings } from './support/run-process.ts';
import {
  checkOneAtATime,
  commandLine,
  living,
  monotonicMs,
  processes,
  signalTogether,
  test,
  until,
} from './support/run-process.ts';
import { kinds, sharedStores } from './support/stores.ts';
import { sharedServer } from './support/zookeeper.ts';

const asked = process.env['INCUMBENT_CRASHES'];
const crashes = Number(asked ?? 2);
/** Much longer than a takeover takes, on a busy machine too. */
const longLease = '15s';
const family = 'leader,child,grandchild';
const store = sharedStores();
const zooKeeper = sharedServer();

interface CrashStore {
  readonly name: string;
  readonly missing: string | undefined;
  /** Of a lease that is waited out. */
  readonly shortLease: string;
  readonly url: (lab: Lab) => string;
  /** The same store behind another port. Undefined: it has no network. */
  readonly at?: (port: number) => string;
  readonly port?: () => number;
}

const portOf = (url: string) => Number(/:(\d+)(?=[/?]|$)/.exec(url)?.[1]);
const onServers: CrashStore[] = kinds
  .filter(({ name }) => ['PostgreSQL', 'Redis', 'etcd'].includes(name))
  .map(({ name, missing, lease }) => ({
    ...{ name, missing, shortLease: lease },
    url: () => store(name).url,
    at: (port) => store(name).url.replace(/:\d+(?=[/?]|$)/, `:${port}`),
    port: () => portOf(store(name).url),
  }));
const stores: readonly CrashStore[] = [
  { name: 'file', missing: undefined, shortLease: '4s', url: (lab) => `file:${lab.store}` },
  ...onServers,
  {
    name: 'ZooKeeper',
    missing: serverAvailable({}),
    shortLease: '8s',
    url: () => zooKeeper().connectionString,
    at: (port) => `zk://127.0.0.1:${port}`,
    port: () => zooKeeper().port,
  },
];

/** One of few at a time: each starts a dozen processes. */
function inPlace(title: string, run: (lab: Lab, skip: (why: string) => never) => Promise<unknown>) {
  test.concurrent(title, async ({ lab, skip }) => {
    await inTurn(() => run(lab, skip));
  });
}

type Victim = 'supervisor' | 'worker' | 'both';

let elections = 0;
function anElection(url: string, lease: string, options: readonly string[] = []): RunSettings {
  elections += 1;
  return { store: url, election: `crash-${elections}`, lease, options };
}

/** A leads with its family at work, and B waits. */
async function leaderAndFollower(
  lab: Lab,
  settings: RunSettings,
  ofLeader: RunSettings = {},
): Promise<{ a: RunProcess; b: RunProcess; group: number; token: bigint }> {
  const a = lab.run('A', lab.worker(family, 'deaf'), { ...settings, ...ofLeader });
  const { pid: group, token } = await a.started();
  await lab.works(token);
  const b = lab.run('B', lab.worker(family), settings);
  await b.event('waiting-for');
  return { a, b, group, token };
}

/** B leads after A, and nothing of A's program is there. */
async function takesOver(lab: Lab, b: RunProcess, group: number, token: bigint): Promise<bigint> {
  const next = await b.started();
  expect(living(group)).toEqual([]);
  expect(next.token).toBeGreaterThan(token);
  await lab.works(next.token);
  checkOneAtATime(lab.stamps());
  return next.token;
}

/** How the term with that token ended, as the record says. */
async function endOf(lab: Lab, { store: url, election }: RunSettings, token: bigint) {
  const { stdout } = await lab.cli('history', '-e', election!, '--store', url!, '--json');
  const terms = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { readonly token: string; readonly why?: string });
  return terms.find((term) => term.token === String(token))?.why;
}

/** The process that gives the seat of the run back, once the guard has started it. */
async function heir(lab: Lab): Promise<number> {
  const isHeir = (pid: number) => commandLine(pid).includes('give-seat-back');
  const others = new Set<number>();
  let pid: number | undefined;
  await until('the guard starts a process', () => {
    for (const { pid: each } of processes()) {
      if (others.has(each)) continue;
      // Of this test, and not of one beside it.
      if (isHeir(each) && lab.survivors().includes(each)) pid = each;
      else if (!commandLine(each).includes('guard.cjs')) others.add(each);
    }
    return pid;
  });
  // The URL of a store may hold a password.
  expect(commandLine(pid!)).not.toContain('127.0.0.1');
  return pid!;
}

function kill(victim: Victim, leader: RunProcess, program: number): void {
  if (victim === 'both') signalTogether('KILL', leader.pid, program);
  else process.kill(victim === 'worker' ? program : leader.pid, 'SIGKILL');
}

function percentile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
}

for (const { name, missing, shortLease, url, at, port } of stores) {
  for (const victim of ['supervisor', 'worker', 'both'] as const) {
    inPlace(
      `${name}: ${victim} killed: the successor does not wait for the lease, again and again under the same ids`,
      async (lab, skip) => {
        if (missing !== undefined) skip(missing);
        const settings = anElection(url(lab), longLease);
        const start = (id: string) => lab.run(id, lab.worker('leader,child', 'deaf'), settings);
        let leader = start('A');
        let term = await leader.started();
        await lab.works(term.token);
        const took: number[] = [];
        for (let crash = 0; crash < crashes; crash += 1) {
          const next = start(leader.id === 'A' ? 'B' : 'A');
          await next.event('waiting-for');
          kill(victim, leader, term.pid);
          const killedMs = monotonicMs();
          const after = await next.started();
          const { monotonicMs: beganMs } = await lab.works(after.token, 'start');
          expect(living(term.pid)).toEqual([]);
          took.push(beganMs - killedMs);
          await leader.ends();
          const why = await endOf(lab, settings, term.token);
          // The work may have left something behind that no look at processes shows.
          expect(why).toBe(victim === 'worker' ? 'work-finished' : 'unclean');
          if (victim !== 'worker' && name !== 'file') {
            const [said] = leader.all('given-back');
            expect(said).toMatchObject({ token: String(term.token), pid: leader.pid });
          }
          [leader, term] = [next, after];
        }
        checkOneAtATime(lab.stamps());
        if (crashes > 2) {
          took.sort((x, y) => x - y);
          const shown = [0.5, 0.9, 0.99]
            .map((part) => percentile(took, part).toFixed(0))
            .join(' / ');
          console.log(`${name}, ${victim} killed: ${shown} ms (p50/p90/p99 of ${took.length})`);
        }
      },
    );
  }

  inPlace(
    `${name}: a frozen supervisor is not dead: the lease is waited out`,
    async (lab, skip) => {
      if (missing !== undefined) skip(missing);
      const settings = anElection(url(lab), shortLease);
      const { a, b, group, token } = await leaderAndFollower(lab, settings);
      a.kill('SIGSTOP');
      await takesOver(lab, b, group, token);
      expect(await endOf(lab, settings, token)).toBe('unclean');
      // Killed now, it has nothing left that could be given back.
      a.kill('SIGKILL');
      await a.ends();
      expect(a.all('given-back')).toEqual([]);
      expect(b.all('ended')).toEqual([]);
    },
  );

  if (at === undefined || port === undefined) continue;
  if (asked === undefined && name !== 'PostgreSQL' && name !== 'ZooKeeper') continue;

  inPlace(
    `${name}: guard killed with its supervisor: the lease is waited out`,
    async (lab, skip) => {
      if (missing !== undefined) skip(missing);
      const settings = anElection(url(lab), shortLease);
      const { a, b, group, token } = await leaderAndFollower(lab, settings);
      signalTogether('KILL', a.pid, a.guardPid!);
      await takesOver(lab, b, group, token);
      expect(await endOf(lab, settings, token)).toBe('unclean');
      expect(a.all('given-back')).toEqual([]);
    },
  );

  inPlace(
    `${name}: the process that gives the seat back is killed, or finds the store away: the lease is waited out`,
    async (lab, skip) => {
      if (missing !== undefined) skip(missing);
      for (const how of ['killed', 'away'] as const) {
        await using proxy = await startProxy({ port: port() });
        const settings = anElection(url(lab), shortLease);
        const through = { store: at(proxy.port) };
        const { a, b, group, token } = await leaderAndFollower(lab, settings, through);
        if (how === 'killed') proxy.holdRequests();
        else proxy.refuse();
        a.kill('SIGKILL');
        if (how === 'killed') process.kill(await heir(lab), 'SIGKILL');
        await takesOver(lab, b, group, token);
        expect(await endOf(lab, settings, token)).toBe('unclean');
        await a.ends();
        expect(a.all('given-back')).toEqual([]);
        expect(a.all('not-given-back')).toHaveLength(how === 'away' ? 1 : 0);
        b.kill('SIGTERM');
        await b.ends();
      }
    },
  );

  inPlace(
    `${name}: what the process that gives the seat back has sent lands after the successor began: it changes nothing`,
    async (lab, skip) => {
      if (missing !== undefined) skip(missing);
      await using proxy = await startProxy({ port: port() });
      const settings = anElection(url(lab), shortLease);
      const through = { store: at(proxy.port) };
      const { a, b, group, token } = await leaderAndFollower(lab, settings, through);
      a.kill('SIGKILL');
      proxy.onRequest((chunk) => {
        if (Buffer.from(chunk).includes('"nonce":')) proxy.holdRequests();
      });
      await until('its write is held', () => proxy.counters.bytesHeld > 0);
      const second = await takesOver(lab, b, group, token);
      proxy.letGo();
      await a.ends();
      // Its next confirmation would find a record that is not its own.
      const c = lab.run('C', lab.worker(), settings);
      await c.event('waiting-for');
      expect(b.all('ended')).toEqual([]);
      b.kill('SIGTERM');
      expect((await c.started()).token).toBeGreaterThan(second);
      checkOneAtATime(lab.stamps());
    },
  );
}

inPlace('--no-release-on-crash: the lease is waited out', async (lab, skip) => {
  const [on] = onServers.filter(({ missing }) => missing === undefined);
  if (on === undefined) return skip('no server on this machine');
  const settings = anElection(on.url(lab), on.shortLease, ['--no-release-on-crash']);
  const { a, b, group, token } = await leaderAndFollower(lab, settings);
  a.kill('SIGKILL');
  await takesOver(lab, b, group, token);
  expect(await endOf(lab, settings, token)).toBe('unclean');
  await a.ends();
  expect(a.all('given-back')).toEqual([]);
});

inPlace(
  'a supervisor that ends in order, or crashes before it has led, starts no such process',
  async (lab, skip) => {
    const [on] = onServers.filter(({ missing }) => missing === undefined);
    if (on === undefined) return skip('no server on this machine');
    const settings = anElection(on.url(lab), longLease);
    const { a, b } = await leaderAndFollower(lab, settings);
    b.kill('SIGKILL');
    await b.ends();
    a.kill('SIGKILL');
    const c = lab.run('C', lab.worker(), settings);
    const { token } = await c.started();
    await lab.works(token);
    c.kill('SIGTERM');
    await c.ends();
    const said = ['given-back', 'not-given-back'];
    for (const run of [b, c])
      expect(run.events.filter(({ event }) => said.includes(event))).toEqual([]);
  },
);
