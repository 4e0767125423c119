import { Client, credentials } from '@grpc/grpc-js';
import type { EtcdCluster, EtcdServer } from '@incumbent/servers';
import { etcdAvailable, startEtcd, startEtcdCluster } from '@incumbent/servers';
import type { TestProxy } from '@incumbent/zookeeper-testing';
import { startProxy } from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll } from 'vitest';
import type { EtcdGuard, EtcdOptions, GrpcClient } from '../../src/backends/etcd/index.ts';
import { etcd } from '../../src/backends/etcd/index.ts';
import type { Backend } from '../../src/core/contest.ts';
import type { Election } from '../../src/core/election.ts';
import { createElection } from '../../src/core/election.ts';
import type { ElectionOptions } from '../../src/core/options.ts';
import type { CandidateStatus } from '../../src/core/status.ts';
import type { Term } from '../../src/core/term.ts';

/** Why no server can be started. In CI that is a failure. */
export const missing: string | undefined = etcdAvailable();
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

/** Belief is 2.4 s: long enough for a loaded machine. */
export const ttlMs = 6_000;

/** The clients, proxies and elections of one test. They end with it. */
export interface EtcdScene {
  readonly server: EtcdServer;
  readonly cluster: EtcdCluster;
  /** The election's name in this test. */
  readonly name: string;
  connect(to?: { readonly port: number }): Client;
  proxy(to?: { readonly port: number }): Promise<TestProxy>;
  backend(clients?: GrpcClient | readonly GrpcClient[], options?: EtcdOptions): Backend<EtcdGuard>;
  election(
    backend: Backend<EtcdGuard>,
    id: string,
    more?: Partial<ElectionOptions<EtcdGuard>>,
  ): Election<EtcdGuard>;
  /** The names of all places, in order, from the server itself. */
  places(name?: string): Promise<readonly string[]>;
}

export interface EtcdStand {
  readonly server: EtcdServer;
  readonly cluster: EtcdCluster;
  scene(onTestFinished: (cleanUp: () => Promise<void>) => void): EtcdScene;
}

let scenes = 0;

/**
 * Servers for all tests of a file.
 * @param members 1: one server. More: a cluster
 */
export function useEtcd(members = 1): EtcdStand {
  let server: EtcdServer | undefined;
  let cluster: EtcdCluster | undefined;
  beforeAll(async () => {
    if (missing !== undefined) return;
    if (members === 1) server = await startEtcd();
    else cluster = await startEtcdCluster(members);
  });
  afterAll(async () => {
    await server?.close();
    await cluster?.close();
  });
  const stand: EtcdStand = {
    get server() {
      return server ?? (cluster?.members[0] as EtcdServer);
    },
    get cluster() {
      return cluster as EtcdCluster;
    },
    scene(onTestFinished) {
      const cleanUps: (() => unknown)[] = [];
      const elections: Election<EtcdGuard>[] = [];
      onTestFinished(async () => {
        // Handles first, all at once: one with a term that was not ended waits for that.
        await Promise.all(elections.map((election) => election.close()));
        for (const cleanUp of cleanUps.reverse()) await cleanUp();
      });
      scenes += 1;
      const name = `test-${process.pid}-${scenes}`;
      return makeScene(stand, name, members, elections, (cleanUp) => cleanUps.push(cleanUp));
    },
  };
  return stand;
}

function makeScene(
  { server, cluster }: EtcdStand,
  name: string,
  members: number,
  elections: Election<EtcdGuard>[],
  onCleanUp: (action: () => unknown) => void,
): EtcdScene {
  const scene: EtcdScene = {
    server,
    cluster,
    name,
    connect(to = server) {
      const client = new Client(`127.0.0.1:${to.port}`, credentials.createInsecure(), {
        // A connection of its own.
        'grpc.use_local_subchannel_pool': 1,
        'grpc.initial_reconnect_backoff_ms': 100,
        'grpc.max_reconnect_backoff_ms': 500,
      });
      onCleanUp(() => client.close());
      return client;
    },
    async proxy(to = server) {
      const proxy = await startProxy({ port: to.port });
      onCleanUp(() => proxy.close());
      return proxy;
    },
    backend(clients = scene.connect(), options = {}) {
      const electionTimeout = members === 1 ? 100 : 500;
      return etcd(clients, { ttl: ttlMs, electionTimeout, ...options });
    },
    election(backend, id, more = {}) {
      const election = createElection({ name, backend, candidate: { id }, ...more });
      elections.push(election);
      return election;
    },
    async places(of = name) {
      const words = ['get', `${of}/`, '--prefix', '--keys-only', '--sort-by=CREATE'];
      const printed = await server.etcdctl(...words, '--order=ASCEND');
      return printed.split('\n').filter((line) => line !== '');
    },
  };
  return scene;
}

/** Asks until the answer is true. The bound only turns a hang into a failure. */
export async function until(what: string, ask: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 120_000;
  while (!(await ask())) {
    if (performance.now() > deadlineMs) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** A campaign that goes on, and its reports. */
export function waiting(election: Election<EtcdGuard>): {
  readonly won: Promise<Term<EtcdGuard>>;
  readonly stop: AbortController;
  /** The places that it followed, in order. */
  readonly following: readonly string[];
  /** Its own places, in order. */
  readonly places: readonly string[];
} {
  const stop = new AbortController();
  const following: string[] = [];
  const places: string[] = [];
  const add = (list: string[], value: string | undefined) => {
    if (value !== undefined && list.at(-1) !== value) list.push(value);
  };
  const onStatus = (status: CandidateStatus) => {
    add(following, status.following);
    add(places, status.candidateId);
  };
  const won = election.campaign({ signal: stop.signal, onStatus });
  won.catch(() => {});
  return { won, stop, following, places };
}

export async function end(term: Term<EtcdGuard>): Promise<Awaited<Term['ended']>> {
  await term[Symbol.asyncDispose]();
  return term.ended;
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** The lease in a key, as etcdctl writes it. */
export function leaseIn(key: string): string {
  return (key.split('/').at(-1) as string).replace(/@.*$/, '');
}
