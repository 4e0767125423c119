/** The process of a candidate, or of many. Its argument names the contender. Needs `--expose-gc`. */
import { subscribe } from 'node:diagnostics_channel';
import { serve } from '../../calls/serve.ts';
import { monotonicMs, sleep } from '../../clock.ts';
import { cpuShareDuring } from '../../cpu.ts';
import type { Contender, Led, OpenContender } from '../contenders/contender.ts';
import type { CandidateMethods, ContenderName } from '../messages.ts';

const load: Readonly<Record<ContenderName, () => Promise<{ readonly open: OpenContender }>>> = {
  file: () => import('../contenders/file.ts'),
  'postgres, pg': () => import('../contenders/pg.ts'),
  'postgres, postgres': () => import('../contenders/postgres-js.ts'),
  'redis, redis': () => import('../contenders/node-redis.ts'),
  'redis, ioredis': () => import('../contenders/ioredis.ts'),
  etcd: () => import('../contenders/etcd.ts'),
  kubernetes: () => import('../contenders/kubernetes.ts'),
  'peer: etcd3 on etcd': () => import('../contenders/etcd3.ts'),
  'peer: redlock on redis': () => import('../contenders/redlock.ts'),
};
const collections = 3;
/** Until the first ones have asked. Candidates of ours tell when they wait, and the others do not. */
const entersWithinMs = 1_000;

let contender: Contender | undefined;
let led: Led | undefined;
let woken: Promise<void> | undefined;
const terms: Led[] = [];
let ended = 0;
let won = 0;
let waiting = 0;
subscribe('incumbent:waiting', () => {
  waiting += 1;
});

serve<CandidateMethods>({
  async open({ address, leaseMs }) {
    const { open } = await load[process.argv[2] as ContenderName]();
    contender = await open(address, leaseMs);
    return null;
  },
  async roundTrips({ times }) {
    const { probe } = present();
    if (probe === undefined) return { readMs: [], writeMs: [] };
    return { readMs: await timed(times, probe.read), writeMs: await timed(times, probe.write) };
  },
  async listen({ topic }) {
    const { probe } = present();
    if (probe?.listen === undefined) return false;
    let wake = () => {};
    woken = new Promise<void>((resolve) => {
      wake = resolve;
    });
    await probe.listen(topic, wake);
    return true;
  },
  async woken() {
    const { probe } = present();
    await woken;
    await probe?.read();
    await probe?.write();
    return { atMs: monotonicMs() };
  },
  async wake({ topic }) {
    const atMs = monotonicMs();
    await present().probe?.wake?.(topic);
    return { atMs };
  },
  async campaign({ election }) {
    led = await present().campaign(election);
    const atMs = monotonicMs();
    return { atMs, token: led.token };
  },
  async resign() {
    const atMs = monotonicMs();
    await led?.resign();
    return { atMs };
  },
  async lead({ prefix, count }) {
    const startMs = monotonicMs();
    const led = namesOf(prefix, count).map(async (name) => {
      const term = await present().campaign(name);
      term.onEnd(() => {
        ended += 1;
      });
      terms.push(term);
    });
    await Promise.all(led);
    return { elapsedMs: monotonicMs() - startMs };
  },
  async follow({ prefix, count }) {
    const before = waiting;
    for (const name of namesOf(prefix, count)) {
      const entered = present().campaign(name);
      entered.then(
        () => {
          won += 1;
        },
        (error) => console.error(error),
      );
    }
    await sleep(entersWithinMs);
    if (waiting > before) while (waiting - before < count) await sleep(10);
    return null;
  },
  standing: () => ({ leading: terms.filter((term) => term.isLeading()).length, ended, won }),
  async memory() {
    for (let i = 0; i < collections; i += 1) {
      globalThis.gc?.();
      await sleep(50);
    }
    const { heapUsed, rss } = process.memoryUsage();
    return { heapBytes: heapUsed, rssBytes: rss };
  },
  cpuShare: async ({ windowMs }) => ({ share: await cpuShareDuring(windowMs) }),
});

function present(): Contender {
  if (contender === undefined) throw new Error('it has no client yet');
  return contender;
}

function namesOf(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

async function timed(times: number, job: () => Promise<unknown>): Promise<number[]> {
  const samples: number[] = [];
  for (let i = 0; i < times; i += 1) {
    const startMs = monotonicMs();
    await job();
    samples.push(monotonicMs() - startMs);
  }
  return samples;
}
