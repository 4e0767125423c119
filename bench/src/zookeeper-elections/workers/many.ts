/**
 * Many elections on one connection: ours, or a bare socket that only does what leading them takes.
 * Needs `--expose-gc`.
 */
import { subscribe } from 'node:diagnostics_channel';
import { serve } from '../../calls/serve.ts';
import { sleep } from '../../clock.ts';
import { cpuShareDuring } from '../../cpu.ts';
import type { ManyMethods } from '../messages.ts';

interface Many {
  lead(election: string): Promise<void>;
  /** After the last `lead`. */
  allLed?(): void;
  join?(election: string): void;
  /** Requests without an answer so far. */
  outstanding?(): number;
  leading(): number;
}

const load: Readonly<Record<string, (port: number, sessionTimeoutMs: number) => Promise<Many>>> = {
  ours: openOurs,
  'bare socket': openBare,
};
/** Whatever a term or a place keeps from one confirmation to the next is there. */
const settleMs = 2_500;
const quietLooks = 30;
const collections = 4;
/** Of some 100 bytes each: 20 MB, more than it can have. */
const objectsPerFilling = 200_000;
const fillings = 3;
const lanes = 100;

let many: Many | undefined;
let waiting = 0;
subscribe('incumbent:waiting', () => {
  waiting += 1;
});

serve<ManyMethods>({
  async open({ port, sessionTimeoutMs }) {
    many = await load[process.argv[2] ?? '']?.(port, sessionTimeoutMs);
    return null;
  },
  async lead({ prefix, count }) {
    let next = 0;
    const lane = async () => {
      while (next < count) {
        next += 1;
        await many?.lead(`${prefix}-${next}`);
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
    many?.allLed?.();
    await sleep(settleMs);
    return null;
  },
  async join({ prefix, count }) {
    const before = waiting;
    for (let i = 1; i <= count; i += 1) {
      many?.join?.(`${prefix}-${i}`);
      while (i - (waiting - before) > lanes) await sleep(1);
    }
    while (waiting - before < count) await sleep(10);
    await quiet();
    return null;
  },
  async memory() {
    fillYoungGeneration();
    for (let i = 0; i < collections; i += 1) {
      globalThis.gc?.();
      await sleep(50);
    }
    const { heapUsed, rss } = process.memoryUsage();
    return { heapBytes: heapUsed, rssBytes: rss };
  },
  cpuShare: async ({ windowMs }) => ({ share: await cpuShareDuring(windowMs) }),
  leading: () => ({ count: many?.leading() ?? 0 }),
});

/** Else its pages would be counted as those of the elections, whose making fills it first. */
function fillYoungGeneration(): void {
  for (let times = 0; times < fillings; times += 1) {
    // Alive until the end, so that they are copied to its other half as well.
    const objects: object[] = [];
    for (let i = 0; i < objectsPerFilling; i += 1) objects.push({ times, i, more: [i] });
  }
}

/** Until nothing has been asked for a while. */
async function quiet(): Promise<void> {
  for (let looks = 0; looks < quietLooks; looks += 1) {
    await sleep(10);
    if ((many?.outstanding?.() ?? 0) > 0) looks = -1;
  }
}

async function openOurs(port: number, sessionTimeoutMs: number): Promise<Many> {
  const { connect } = await import('@incumbent/zookeeper');
  const { createElection } = await import('incumbent');
  const { zookeeper } = await import('incumbent/zookeeper');
  const client = await connect(`zk://127.0.0.1:${port}`, { sessionTimeoutMs });
  const backend = zookeeper(client);
  const terms: { isLeading(): boolean }[] = [];
  return {
    async lead(name) {
      terms.push(await createElection({ name, backend }).campaign());
    },
    // Nobody waits for it: what a caller keeps is not ours.
    join: (name) => void createElection({ name, backend }).campaign(),
    outstanding: () => client.counters.outstanding,
    leading: () => terms.filter((term) => term.isLeading()).length,
  };
}

/** One multi with a check for each election, at the pace of ours. */
async function openBare(port: number, sessionTimeoutMs: number): Promise<Many> {
  const { connect } = await import('../candidates/bare.ts');
  const client = await connect(port, sessionTimeoutMs);
  const places: string[] = [];
  return {
    async lead(election) {
      const path = `/bench-many-bare/${election}`;
      await client.ensure(path);
      places.push(await client.enter(`${path}/n_`));
    },
    allLed() {
      setInterval(() => void client.checkAll(places), 0.1 * sessionTimeoutMs);
    },
    leading: () => places.length,
  };
}
