/** The servers and candidates that the benchmarks of elections on ZooKeeper share. */
import { fileURLToPath } from 'node:url';
import type { TestServer } from '@incumbent/zookeeper-testing';
import { startEnsemble, startServer } from '@incumbent/zookeeper-testing';
import { Remote } from '../calls/remote.ts';
import type { Surroundings } from '../surroundings.ts';
import type { Peers } from '../zookeeper/peers.ts';
import type { Curator } from './curator.ts';
import type { CandidateMethods, ManyMethods, PeerName } from './messages.ts';

/** ZooKeeper's own default. */
export const tickTimeMs = 2_000;
/** The session timeout that a client asks for by default. */
export const sessionTimeoutMs = 10_000;

export const topologies = ['standalone', 'ensemble'] as const;
export type Topology = (typeof topologies)[number];

export interface Stage {
  readonly surroundings: Surroundings;
  /** Why a peer does not take part. */
  readonly absent: ReadonlyMap<PeerName, string>;
  readonly python: string | undefined;
  readonly curator: Curator | undefined;
  /** Started when they are first asked for. An ensemble's leader is the first. */
  servers(topology: Topology): Promise<readonly TestServer[]>;
  close(): Promise<void>;
}

export type Candidate = Remote<CandidateMethods>;
export type Many = Remote<ManyMethods>;

export function makeStage(
  surroundings: Surroundings,
  peers: Peers,
  curator: Curator | Error,
): Stage {
  const absent = new Map<PeerName, string>();
  for (const [ours, theirs] of [
    ['kazoo', 'kazoo'],
    ['node-zookeeper-client', 'NZC'],
    ['zookeeper (C client)', 'native'],
  ] as const) {
    const reason = peers.absent.get(theirs);
    if (reason !== undefined) absent.set(ours, reason);
  }
  if (curator instanceof Error) absent.set('Curator', curator.message);
  const started = new Map<Topology, Promise<readonly TestServer[]>>();
  return {
    surroundings,
    absent,
    python: peers.python,
    curator: curator instanceof Error ? undefined : curator,
    servers(topology) {
      const servers = started.get(topology) ?? start(topology, surroundings.newDirectory());
      started.set(topology, servers);
      return servers;
    },
    async close() {
      const all = await Promise.allSettled(started.values());
      const servers = all.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}

/** A commit is on the disk before it is answered, as in every ensemble that is meant seriously. */
async function start(topology: Topology, dataDirectory: string): Promise<readonly TestServer[]> {
  const options = {
    tickTimeMs,
    minSessionTimeoutMs: 2 * tickTimeMs,
    heapMb: 256,
    dataDirectory,
    systemProperties: { 'zookeeper.forceSync': 'yes' },
  };
  if (topology === 'standalone') return [await startServer(options)];
  const ensemble = await startEnsemble(3, options);
  const leader = await ensemble.leader();
  return [leader, ...ensemble.members.filter((member) => member !== leader)];
}

/** Those of `names` that are there. */
export function present(stage: Stage, names: readonly PeerName[]): readonly PeerName[] {
  return names.filter((name) => !stage.absent.has(name));
}

/** Another one first at each turn. */
export function rotated<T>(items: readonly T[], by: number): readonly T[] {
  const first = by % Math.max(1, items.length);
  return [...items.slice(first), ...items.slice(0, first)];
}

const kazoo = fileURLToPath(new URL('../../zookeeper/kazoo_election.py', import.meta.url));
const worker = (name: string) => fileURLToPath(new URL(`./workers/${name}.js`, import.meta.url));

/** With a connection, and in no election. */
export async function startCandidate(
  { surroundings, python = '', curator }: Stage,
  name: PeerName,
  connection: CandidateMethods['open']['params'],
): Promise<Candidate> {
  let command: readonly string[] = [process.execPath, worker('candidate'), name];
  if (name === 'kazoo') command = [python, kazoo];
  if (name === 'Curator') command = curator?.command ?? [];
  const candidate: Candidate = new Remote(surroundings, name, command);
  try {
    await candidate.call('open', connection);
    return candidate;
  } catch (error) {
    await candidate.kill();
    throw error;
  }
}

/** V8's young generation has its full size from the start: else it grows by up to 32 MiB between. */
const memoryOptions = ['--expose-gc', '--min-semi-space-size=16'];

export function startMany({ surroundings }: Stage, kind: 'ours' | 'bare socket'): Many {
  const command = [process.execPath, ...memoryOptions, worker('many'), kind];
  return new Remote(surroundings, kind, command);
}
