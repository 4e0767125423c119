// A service that leads with `releaseOnCrash` and is killed: its companion sees it die, and an heir gives its seats
// back. So the successor does not wait for the lease. Where no death is seen, or the companion is dead too, or the
// heir does not reach the store, the lease runs out as ever.
//
// INCUMBENT_CRASHES=50 takes so many terms on each store, plays each fault on each of them, and prints how long the
// successors took. Without it, two stores are enough: one of leases, one of queues.
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { Worker } from 'node:worker_threads';
import {
  etcdAvailable,
  postgresAvailable,
  redisAvailable,
  startEtcd,
  startPostgres,
  startRedis,
} from '@incumbent/servers';
import { serverAvailable, startProxy, startServer } from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inTurn } from '../../cli/test-integration/support/in-turn.ts';
import { file } from '../src/backends/file/index.ts';
import type { TimingOptions } from '../src/base/timing.ts';
import { companionFile, Entrusted } from '../src/core/companion.ts';
import { createElection } from '../src/core/election.ts';
import type { ServiceSettings } from './support/crash-lab.ts';
import { CrashLab, childOf, ends, filesOf, isAlive, sessionOf } from './support/crash-lab.ts';

const asked = process.env['INCUMBENT_CRASHES'];
const crashes = Number(asked ?? 1);
/** Longer than a test may take. */
const longMs = 600_000;

interface Server {
  readonly port: number;
  close(): Promise<unknown>;
}

interface Store {
  readonly kind: string;
  readonly missing: string | undefined;
  /** Of a lease that is waited out. */
  readonly shortMs: number;
  /** Of a lease that no test waits out. */
  readonly longMs?: number;
  readonly isQueue?: boolean;
  start(): Promise<Server>;
  at(port: number): string;
}

const stores: readonly Store[] = [
  {
    ...{ kind: 'postgres', missing: postgresAvailable(), shortMs: 4_000, start: startPostgres },
    at: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
  },
  {
    ...{ kind: 'redis', missing: redisAvailable(), shortMs: 4_000, start: startRedis },
    at: (port) => `redis://127.0.0.1:${port}`,
  },
  {
    ...{ kind: 'etcd', missing: etcdAvailable(), shortMs: 8_000, isQueue: true, start: startEtcd },
    // Its first leader waits for 0.4 of it.
    longMs: 60_000,
    at: (port) => `127.0.0.1:${port}`,
  },
  {
    ...{ kind: 'zookeeper', missing: serverAvailable(), shortMs: 8_000, isQueue: true },
    start: () => startServer({ maxSessionTimeoutMs: longMs }),
    at: (port) => `zk://127.0.0.1:${port}`,
  },
];
const played = stores.filter(
  ({ kind }) => asked !== undefined || kind === 'postgres' || kind === 'zookeeper',
);
const servers = new Map<string, Server>();

beforeAll(async () => {
  for (const { kind, missing, start } of played) {
    if (missing === undefined) servers.set(kind, await start());
    else if (process.env['CI'] === 'true') throw new Error(missing);
  }
});
afterAll(async () => {
  await Promise.all([...servers.values()].map((server) => server.close()));
});

let elections = 0;
function settingsOn({ kind, isQueue, at }: Store, leaseMs: number, more: TimingOptions = {}) {
  elections += 1;
  const store = (port: number) => `${kind}|${at(port)}|${leaseMs}`;
  return {
    store: store(servers.get(kind)!.port),
    storeAt: store,
    elections: [`crash-${elections}`] as const,
    timing: { ...more, ...(isQueue ? {} : { lease: leaseMs }) },
  };
}

const isLinux = process.platform === 'linux';
const linux = test.runIf(isLinux);

for (const on of played) {
  const { kind, missing, shortMs, longMs: leaseMs = longMs } = on;
  const inTest = (title: string, run: (lab: CrashLab) => Promise<void>) => {
    const define = isLinux && missing === undefined ? test.concurrent : test.skip;
    define(`${kind}: ${title}`, () =>
      inTurn(async () => {
        await using lab = new CrashLab();
        await run(lab);
        lab.checkOneAtATime();
      }),
    );
  };

  inTest(
    'a service is killed: the successor fences it, and leads long before the lease is over, again and again',
    async (lab) => {
      const settings = settingsOn(on, leaseMs);
      const [name] = settings.elections;
      let leader = lab.start('A', settings);
      let token = await leader.leads(name);
      const took: number[] = [];
      for (let crash = 0; crash < crashes; crash += 1) {
        // Under the id of the one that died before it.
        const next = lab.start(crash % 2 === 0 ? 'B' : 'A', settings);
        await next.says('waits');
        const killedMs = performance.now();
        leader.kill();
        const fenced = await next.says('fences');
        const newer = await next.leads(name);
        took.push(performance.now() - killedMs);
        expect(BigInt(fenced.token!)).toBe(token);
        expect(newer).toBeGreaterThan(token);
        [leader, token] = [next, newer];
      }
      took.sort((x, y) => x - y);
      expect(took.at(-1)).toBeLessThan(leaseMs);
      const at = (part: number) => took[Math.floor(part * took.length)]!.toFixed(0);
      console.log(`${kind}: ${at(0.5)} / ${at(0.99)} ms (p50/p99 of ${took.length})`);
    },
  );

  inTest('a frozen service is not dead: the lease is waited out', async (lab) => {
    const settings = settingsOn(on, shortMs);
    const [name] = settings.elections;
    const a = lab.start('A', settings);
    await a.leads(name);
    const [companion] = await a.companions();
    const b = lab.start('B', settings);
    await b.says('waits');
    a.kill('SIGSTOP');
    await b.leads(name);
    expect(isAlive(companion!)).toBe(true);
    // Killed now, it has nothing left that could be given back.
    a.kill();
    await ends(companion!);
    const c = lab.start('C', settings);
    await c.says('waits');
    expect(b.said.map(({ event }) => event)).not.toContain('stops');
  });

  inTest('a companion that is killed first: the service says so, and leads on', async (lab) => {
    const settings = settingsOn(on, shortMs);
    const [name] = settings.elections;
    const a = lab.start('A', settings);
    await a.leads(name);
    const b = lab.start('B', settings);
    await b.says('waits');
    process.kill((await a.companions())[0]!, 'SIGKILL');
    const { message } = await a.says('trouble');
    expect(message).toContain('the companion ended with SIGKILL: after a crash the lease runs out');
    expect(a.said.map(({ event }) => event)).not.toContain('stops');
    a.kill();
    await b.leads(name);
    expect(a.said.filter(({ event }) => event === 'trouble')).toHaveLength(1);
  });

  inTest(
    'the heir does not reach the store, or is killed: the lease is waited out',
    async (lab) => {
      for (const how of ['away', 'killed'] as const) {
        const settings = settingsOn(on, shortMs);
        const [name] = settings.elections;
        await using proxy = await startProxy({ port: servers.get(kind)!.port });
        const a = lab.start('A', { ...settings, store: settings.storeAt(proxy.port) });
        await a.leads(name);
        const [companion] = await a.companions();
        const b = lab.start('B', settings);
        await b.says('waits');
        if (how === 'away') proxy.refuse();
        else proxy.silence();
        a.kill();
        const heir = await childOf(companion!, 'heir.mjs');
        if (how === 'killed') process.kill(heir, 'SIGKILL');
        await ends(companion!);
        await b.leads(name);
      }
    },
  );

  inTest(
    'requests of the dead that land after the successor has begun change nothing',
    async (lab) => {
      // The service reaches the store by the proxy, and its heir does not.
      const settings = settingsOn(on, shortMs, on.isQueue ? {} : { renewEvery: 200 });
      const [name] = settings.elections;
      await using proxy = await startProxy({ port: servers.get(kind)!.port });
      const a = lab.start('A', { ...settings, at: settings.storeAt(proxy.port) });
      const token = await a.leads(name);
      const b = lab.start('B', settings);
      await b.says('waits');
      const held = new Promise<void>((resolve) => {
        proxy.onRequest((chunk) => {
          // A confirmation, and not a ping.
          if (!Buffer.from(chunk).includes(name)) return;
          proxy.holdRequests();
          resolve();
        });
      });
      await held;
      a.kill();
      expect(await b.leads(name)).toBeGreaterThan(token);
      proxy.letGo();
      // It reads what the dead has written by then, if anything.
      const c = lab.start('C', settings);
      await c.says('waits');
      expect(b.said.map(({ event }) => event)).not.toContain('stops');
    },
  );
}

/** Three elections in a directory. The programs that are started for them are noted. */
function onFiles(lab: CrashLab): ServiceSettings & { readonly directory: string } {
  const directory = join(lab.directory, 'elections');
  const elections = ['one', 'two', 'three'];
  const env = { NODE_OPTIONS: lab.noting };
  return { store: `file|${directory}`, directory, elections, timing: { lease: longMs }, env };
}

async function ended({ elections, directory }: ReturnType<typeof onFiles>) {
  return Promise.all(
    elections.map(async (name) => {
      await using election = createElection({ name, backend: file(directory) });
      const { view, unfenced, history } = await election.inspect();
      return { state: view.state, unfenced: unfenced.length, why: history.map(({ why }) => why) };
    }),
  );
}

linux('one companion gives back all seats of a service, also after TERM', async () => {
  await using lab = new CrashLab();
  const settings = onFiles(lab);
  const a = lab.start('A', settings);
  for (const name of settings.elections) await a.leads(name);
  const companions = await a.companions();
  expect(companions).toHaveLength(1);
  // As a manager of services sends it to all that is left of a service, whatever of it has begun.
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM']) process.kill(companions[0]!, signal);
  lab.endNextHeir();
  a.kill();
  await a.ends();
  await ends(companions[0]!);
  const givenBack = { state: 'vacant', unfenced: 1, why: ['unclean'] };
  expect(await ended(settings)).toEqual([givenBack, givenBack, givenBack]);
  // The companion itself has none of the service's loaders.
  expect(lab.started()).toEqual(['crash-service.mjs', 'heir.mjs', 'heir.mjs']);
});

linux('a service that ends in order leaves no companion, and no heir', async () => {
  await using lab = new CrashLab();
  const settings = onFiles(lab);
  const a = lab.start('A', settings);
  for (const name of settings.elections) await a.leads(name);
  const [companion] = await a.companions();
  a.kill('SIGTERM');
  // Nothing but the companion is left that could keep it alive.
  await a.ends();
  expect(a.child.exitCode).toBe(0);
  await ends(companion!);
  const clean = { state: 'vacant', unfenced: 0, why: ['withdrawn'] };
  expect(await ended(settings)).toEqual([clean, clean, clean]);
  expect(lab.started()).toEqual(['crash-service.mjs']);
});

linux('the companion has a session of its own, and no file of the service', async () => {
  await using lab = new CrashLab();
  const settings = onFiles(lab);
  const kept = join(lab.directory, 'kept');
  closeSync(openSync(kept, 'w'));
  const through = ['sh', '-c', `exec 7<"${kept}"; exec "$@"`, 'sh'];
  const a = lab.start('A', { ...settings, through });
  await a.leads('one');
  const [companion] = await a.companions();
  expect(filesOf(a.pid)).toContain(`7 ${kept}`);
  const files = filesOf(companion!);
  expect(files.filter((each) => /^[012] /.test(each))).toEqual(
    [0, 1, 2].map((fd) => `${fd} /dev/null`),
  );
  expect(files.join(' ')).not.toContain(kept);
  expect(sessionOf(companion!)).toBe(companion);
});

/** A companion that was told of a seat of this process. */
function companionOfOurs(lab: CrashLab, through: readonly string[] = []): ChildProcess {
  const [program = '', ...args] = [...through, process.execPath, companionFile, `${process.pid}`];
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
  const pipe = child.stdio[3] as Writable;
  pipe.write(`${JSON.stringify({ heir: { execArgv: [], env: { NODE_OPTIONS: lab.noting } } })}\n`);
  pipe.write(`${JSON.stringify({ key: 1, bequest: {} })}\n`);
  return child;
}

linux('a pipe that ends is no death: a service that lives has no heir', async () => {
  await using lab = new CrashLab();
  const companion = companionOfOurs(lab);
  // As exec does it, or a service that closes descriptors that it does not know.
  (companion.stdio[3] as Writable).end();
  await once(companion, 'exit');
  expect(lab.started()).toEqual([]);
});

linux('another parent is no death where it has never been the service', async () => {
  await using lab = new CrashLab();
  // `node` may be a script that starts the real one.
  const wrapper = companionOfOurs(lab, ['sh', '-c', '"$@"; exit', 'sh']);
  const companion = await childOf(wrapper.pid!, 'companion.cjs');
  wrapper.kill('SIGKILL');
  (wrapper.stdio[3] as Writable).end();
  await ends(companion);
  expect(lab.started()).toEqual([]);
});

linux('a companion that is frozen costs no more than a few megabytes', async () => {
  const seat = { id: 'A', incarnation: 'i', token: '1', nonces: ['n'.repeat(10_000)] };
  const store = { module: import.meta.url, name: 'none', args: [] };
  let tell: (error: Error) => void = () => {};
  const trouble = new Promise<Error>((resolve) => {
    tell = resolve;
  });
  const entrusted = new Entrusted({ election: 'jobs', timing: {}, store }, undefined, tell);
  const companion = await childOf(process.pid, 'companion.cjs');
  process.kill(companion, 'SIGSTOP');
  try {
    for (let times = 0; times < 1_000; times += 1) entrusted.onSeat(seat);
    expect((await trouble).message).toContain('the companion reads nothing');
    entrusted.onSeat(undefined);
  } finally {
    entrusted.close();
    process.kill(companion, 'SIGKILL');
  }
  await ends(companion);
});

linux('the end of a worker thread is no death: its companion ends without an heir', async () => {
  await using lab = new CrashLab();
  const dist = (path: string) =>
    JSON.stringify(new URL(`../dist/${path}/index.js`, import.meta.url).href);
  const { directory } = onFiles(lab);
  const worker = new Worker(
    `process.env.NODE_OPTIONS = ${JSON.stringify(lab.noting)};
    (async () => {
      const { createElection } = await import(${dist('.')});
      const { file } = await import(${dist('backends/file')});
      const backend = file(${JSON.stringify(directory)});
      const election = createElection({ name: 'jobs', backend, releaseOnCrash: true });
      await election.campaign();
      require('node:worker_threads').parentPort.postMessage('leads');
    })();`,
    { eval: true },
  );
  await once(worker, 'message');
  const companion = await childOf(process.pid, 'companion.cjs');
  await worker.terminate();
  await ends(companion);
  expect(lab.started()).toEqual([]);
});
