/** The servers and processes that the benchmarks of shards share. */
import { fileURLToPath } from 'node:url';
import {
  etcdAvailable,
  postgresAvailable,
  redisAvailable,
  startEtcd,
  startPostgres,
  startRedis,
} from '@incumbent/servers';
import { serverAvailable, startServer } from '@incumbent/zookeeper-testing';
import { Remote } from '../calls/remote.ts';
import type { Surroundings } from '../surroundings.ts';
import type { Peers } from '../zookeeper/peers.ts';
import type { ContenderName, MemberMethods, StoreName } from './messages.ts';
import { contenderNames, contenders } from './messages.ts';
import type { CountedServers, RequestCounter } from './request-counter.ts';
import { countRequests } from './request-counter.ts';

/** A session on ZooKeeper lasts as long. */
export const leaseMs = 6_000;
const tickTimeMs = 2_000;
/** Without the second one the heap is collected at other times than it grows. */
const memoryOptions = ['--expose-gc', '--min-semi-space-size=16'];

export type Member = Remote<MemberMethods>;

export interface Stage {
  /** Says on stderr what is being done. */
  readonly progress: (text: string) => void;
  /** The contenders that take part. */
  readonly names: readonly ContenderName[];
  /** Why others do not. */
  readonly absent: ReadonlyMap<ContenderName, string>;
  /** A process that takes part. @param name of the shards */
  join(contender: ContenderName, name: string, shards: number): Promise<Member>;
  /** A process of ours whose work is only to wait. It has joined nothing yet. */
  enter(store: StoreName): Promise<Entered>;
  /** Counts what is asked of the server of a store, from now on. */
  count(store: StoreName): Promise<RequestCounter>;
  close(): Promise<void>;
}

/** A process, and the port of its store. */
export interface Entered {
  readonly member: Member;
  readonly port: number;
}

const start: {
  readonly [Store in StoreName]: (surroundings: Surroundings) => Promise<CountedServers[Store]>;
} = {
  zookeeper: (surroundings) =>
    startServer({
      tickTimeMs,
      heapMb: 256,
      dataDirectory: surroundings.newDirectory(),
      systemProperties: { 'zookeeper.forceSync': 'yes' },
    }),
  postgres: () => startPostgres({ fsync: true }),
  redis: () => startRedis(),
  etcd: () => startEtcd({ timing: { heartbeatMs: 100, electionMs: 1_000 } }),
};

const whyAbsent: Readonly<Record<StoreName, () => string | undefined>> = {
  zookeeper: serverAvailable,
  postgres: postgresAvailable,
  redis: redisAvailable,
  etcd: etcdAvailable,
};

const kazoo = fileURLToPath(new URL('../../zookeeper/kazoo_shards.py', import.meta.url));
const worker = fileURLToPath(new URL('./workers/member.js', import.meta.url));

export function makeStage(
  surroundings: Surroundings,
  peers: Peers,
  progress: (text: string) => void,
): Stage {
  const absent = new Map<ContenderName, string>();
  for (const name of contenderNames) {
    const { store, isOurs } = contenders[name];
    const reason = whyAbsent[store]() ?? (isOurs ? undefined : peers.absent.get('kazoo'));
    if (reason !== undefined) absent.set(name, reason);
  }
  const started: { -readonly [Store in StoreName]?: Promise<CountedServers[Store]> } = {};
  const serverOf = <Store extends StoreName>(store: Store): Promise<CountedServers[Store]> => {
    const server =
      (started[store] as Promise<CountedServers[Store]> | undefined) ?? start[store](surroundings);
    Object.assign(started, { [store]: server });
    return server;
  };
  return {
    progress,
    names: contenderNames.filter((name) => !absent.has(name)),
    absent,
    async join(contender, name, shards) {
      const { store, isOurs } = contenders[contender];
      const { port } = await serverOf(store);
      const command = isOurs ? [process.execPath, worker, store] : [peers.python ?? '', kazoo];
      const member: Member = new Remote(surroundings, contender, command);
      try {
        await member.call('join', { port, leaseMs, name, shards });
        return member;
      } catch (error) {
        await member.kill();
        throw error;
      }
    },
    async enter(store) {
      const { port } = await serverOf(store);
      const command = [process.execPath, ...memoryOptions, worker, store, 'lasting'];
      return { port, member: new Remote(surroundings, `ours on ${store}`, command) };
    },
    count: (store) => countRequests(store, serverOf),
    async close() {
      const all = await Promise.allSettled(Object.values(started));
      const servers = all.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}
