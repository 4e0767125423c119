/** The process of a candidate that is written in JavaScript. Its argument names the candidate. */

import { serve } from '../../calls/serve.ts';
import { monotonicMs, sleep } from '../../clock.ts';
import { median } from '../../figure.ts';
import type { Adapter, Connection } from '../adapters/adapter.ts';
import { promiseLoop } from '../adapters/adapter.ts';
import type { CandidateName, ClientMethods, Rate } from '../messages.ts';
import { numberedPath } from '../messages.ts';

const loaders: Readonly<Record<CandidateName | 'none', () => Promise<Adapter | undefined>>> = {
  ours: async () => (await import('../adapters/ours.ts')).adapter,
  NZC: async () => (await import('../adapters/nzc.ts')).adapter,
  native: async () => (await import('../adapters/native.ts')).adapter,
  kazoo: () => Promise.reject(new Error('kazoo has a process of its own')),
  raw: async () => (await import('../adapters/raw.ts')).rawAdapter(false),
  'raw+decode': async () => (await import('../adapters/raw.ts')).rawAdapter(true),
  none: () => Promise.resolve(undefined),
};

const laneCount = 100;
const probeEveryMs = 2;
const probeAgainAfterMs = 1;
const sessionTimeoutMs = 30_000;

let connection: Connection | undefined;
let successes: number[] = [];
let waitsForSuccess: { readonly ms: number; readonly resolve: (atMs: number) => void } | undefined;

const beforeImportMs = performance.now();
const loaded = await loaders[process.argv[2] as CandidateName | 'none']();
const importMs = performance.now() - beforeImportMs;

serve<ClientMethods>({
  hello: () => ({ importMs }),
  async connect(params) {
    connection = await adapter().connect(params);
    return null;
  },
  async gets({ path, window, warmUpMs, measureMs }) {
    const run = (operations: number, completed?: () => void) =>
      opened().gets(path, operations, window, completed);
    const perS = await warmUp(run, window, warmUpMs);
    const operations = Math.max(4 * window, Math.round((perS * measureMs) / 1e3));
    if (window > 1) return { ...(await rate(operations, () => run(operations))), p50Ms: null };
    const latencies: number[] = [];
    let lastMs = performance.now();
    const completed = () => {
      const nowMs = performance.now();
      latencies.push(nowMs - lastMs);
      lastMs = nowMs;
    };
    return {
      ...(await rate(operations, () => run(operations, completed))),
      p50Ms: median(latencies),
    };
  },
  async creates({ parent, window, warmUp: first, operations }) {
    await opened().creates(parent, 0, first, window);
    return rate(operations, () => opened().creates(parent, first, operations, window));
  },
  async watchDelivery({ port, path, times }) {
    const writer = await adapter().connect({ port, sessionTimeoutMs, auth: false });
    const delays: number[] = [];
    for (let i = 0; i < times; i += 1) {
      let told = (_atMs: number) => {};
      const toldAtMs = new Promise<number>((resolve) => {
        told = resolve;
      });
      await opened().watch(path, () => told(performance.now()));
      const setAtMs = performance.now();
      const written = writer.set(path);
      delays.push((await toldAtMs) - setAtMs);
      await written;
    }
    return { p50Ms: median(delays) };
  },
  async connectToReady({ port, path, times }) {
    const durations: number[] = [];
    for (let i = 0; i < times; i += 1) {
      const startMs = performance.now();
      const opened = await adapter().connectAndGet({ port, sessionTimeoutMs, auth: false }, path);
      durations.push(performance.now() - startMs);
      await opened.close();
    }
    return { p50Ms: median(durations) };
  },
  async watchAll({ parent, count }) {
    await promiseLoop(count, laneCount, (i) => opened().watch(numberedPath(parent, i), () => {}));
    return null;
  },
  probe({ path }) {
    void probe(path);
    return null;
  },
  async successAfter({ ms }) {
    const found = successes.find((atMs) => atMs > ms);
    const atMs =
      found ??
      (await new Promise<number>((resolve) => {
        waitsForSuccess = { ms, resolve };
      }));
    successes = [];
    return { atMs };
  },
  cpu: () => ({ us: cpuUs() }),
  async readAll({ parent, count, watch }) {
    const changed = () => {};
    await promiseLoop(count, laneCount, (i) => {
      const path = numberedPath(parent, i);
      return watch ? opened().watch(path, changed) : opened().get(path);
    });
    for (let i = 0; i < 4; i += 1) {
      globalThis.gc?.();
      await sleep(50);
    }
    return { rssBytes: process.memoryUsage.rss() };
  },
  rss: () => ({ bytes: process.memoryUsage.rss() }),
});

function adapter(): Adapter {
  if (loaded === undefined) throw new Error('this process has no client');
  return loaded;
}

function opened(): Connection {
  if (connection === undefined) throw new Error('there is no connection');
  return connection;
}

/** @returns operations a second at its end */
async function warmUp(
  run: (operations: number) => Promise<void>,
  window: number,
  warmUpMs: number,
): Promise<number> {
  const startMs = performance.now();
  let operations = Math.max(100, window);
  for (;;) {
    const chunkMs = performance.now();
    await run(operations);
    const nowMs = performance.now();
    const perS = (operations / (nowMs - chunkMs)) * 1e3;
    if (nowMs - startMs >= warmUpMs) return perS;
    operations = Math.max(window, Math.round((perS * warmUpMs) / 4e3));
  }
}

async function rate(operations: number, run: () => Promise<void>): Promise<Rate> {
  const startMs = performance.now();
  const startUs = cpuUs();
  await run();
  const usedUs = cpuUs() - startUs;
  return {
    perS: (operations / (performance.now() - startMs)) * 1e3,
    cpuUs: usedUs / operations,
  };
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

async function probe(path: string): Promise<never> {
  for (;;) {
    try {
      await opened().get(path);
      const atMs = monotonicMs();
      successes.push(atMs);
      if (waitsForSuccess !== undefined && atMs > waitsForSuccess.ms) {
        waitsForSuccess.resolve(atMs);
        waitsForSuccess = undefined;
      }
      await sleep(probeEveryMs);
    } catch {
      await sleep(probeAgainAfterMs);
    }
  }
}
