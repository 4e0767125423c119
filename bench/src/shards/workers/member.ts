/**
 * A process that owns shards. Its argument names the store. `lasting`: its work is nothing but to wait,
 * and writes no log.
 */
import { credentials, Client as GrpcClient } from '@grpc/grpc-js';
import type { Shards, ShardTerm } from '@incumbent/shards';
import { createShards } from '@incumbent/shards';
import { connect } from '@incumbent/zookeeper';
import type { Backend } from 'incumbent';
import { etcd } from 'incumbent/etcd';
import { postgres } from 'incumbent/postgres';
import { redis } from 'incumbent/redis';
import { zookeeper } from 'incumbent/zookeeper';
import pg from 'pg';
import { createClient } from 'redis';
import { serve } from '../../calls/serve.ts';
import { monotonicMs, sleep } from '../../clock.ts';
import { urlOf } from '../../stores/contenders/postgres-probe.ts';
import type { MemberMethods, OwnedEvent, SetOfShards, StoreName } from '../messages.ts';

interface Opened {
  readonly backend: Backend;
  /** ZooKeeper's and etcd's are those of the session and of the `ttl`. */
  readonly timing: { readonly lease?: number };
}

const open: Readonly<Record<StoreName, (port: number, leaseMs: number) => Promise<Opened>>> = {
  async zookeeper(port, leaseMs) {
    const client = await connect(`zk://127.0.0.1:${port}`, { sessionTimeoutMs: leaseMs });
    return { backend: zookeeper(client), timing: {} };
  },
  async postgres(port, leaseMs) {
    const pool = new pg.Pool({ connectionString: urlOf(port) });
    return { backend: postgres(pool), timing: { lease: leaseMs } };
  },
  async redis(port, leaseMs) {
    const client = createClient({ socket: { host: '127.0.0.1', port } });
    client.on('error', () => {});
    await client.connect();
    return { backend: redis(client), timing: { lease: leaseMs } };
  },
  async etcd(port, leaseMs) {
    const client = new GrpcClient(`127.0.0.1:${port}`, credentials.createInsecure());
    return { backend: etcd(client, { ttl: leaseMs }), timing: {} };
  },
};

const events: OwnedEvent[] = [];
let shards: Shards<number> | Shards<string> | undefined;
let opened: Promise<Opened> | undefined;
const [, , store, form] = process.argv;

function storeAt({ port, leaseMs }: SetOfShards): Promise<Opened> {
  opened ??= open[store as StoreName](port, leaseMs);
  return opened;
}

function until(signal: AbortSignal, stopped: () => void): void {
  if (signal.aborted) stopped();
  else signal.addEventListener('abort', stopped, { once: true });
}

const own = (shard: number | string, { signal }: Pick<ShardTerm, 'signal'>): Promise<void> =>
  new Promise((resolve) => {
    if (form === 'lasting') return until(signal, resolve);
    events.push({ shard: Number(shard), atMs: monotonicMs(), isOwned: true });
    until(signal, () => {
      events.push({ shard: Number(shard), atMs: monotonicMs(), isOwned: false });
      resolve();
    });
  });

/** @param work none: the handle only asks */
function shardsOf(set: SetOfShards, { backend, timing }: Opened, work?: typeof own) {
  const { name, shards: count, areNamed } = set;
  const common = {
    ...({ name, backend, init: 'auto', ...timing } as const),
    ...(work !== undefined && { own: work }),
    onTrouble: (trouble: unknown) => console.error(String(trouble)),
  };
  if (!areNamed) return createShards({ ...common, shards: count });
  const names = Array.from({ length: count }, (_, index) => `tenant-${index}`);
  return createShards({ ...common, shards: names });
}

serve<MemberMethods>({
  async join(set) {
    shards = shardsOf(set, await storeAt(set), own);
    await shards.joined;
    return null;
  },
  async leave() {
    await shards?.close();
    shards = undefined;
    return null;
  },
  async observe(set) {
    const views = shardsOf(set, await storeAt(set)).observe();
    await views.next();
    // It goes on listening, and keeps the last view.
    void views.next();
    return null;
  },
  async memory() {
    // Objects that were given up just now go with the second collection.
    for (let turn = 0; turn < 3; turn += 1) {
      await sleep(50);
      globalThis.gc?.();
    }
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  },
  owned: () => shards?.owned().length ?? 0,
  log: () => events,
  async drain() {
    await shards?.drain();
    return null;
  },
});
