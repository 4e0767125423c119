/** The servers and contenders that the benchmarks of the stores share. */
import { fileURLToPath } from 'node:url';
import type { Meter, ProtocolName, Traveller } from '@incumbent/servers';
import {
  etcdAvailable,
  postgresAvailable,
  redisAvailable,
  startEtcd,
  startMeter,
  startPostgres,
  startRedis,
} from '@incumbent/servers';
import { createElection } from 'incumbent';
import { postgres } from 'incumbent/postgres';
import pg from 'pg';
import { Remote } from '../calls/remote.ts';
import { monotonicMs, sleep } from '../clock.ts';
import type { Surroundings } from '../surroundings.ts';
import type {
  Address,
  ApiServerMethods,
  CandidateMethods,
  ContenderName,
  StoreName,
} from './messages.ts';
import { contenderNames, contenders } from './messages.ts';
import type { Scale } from './scale.ts';

export type Candidate = Remote<CandidateMethods>;

interface Server {
  readonly port: number;
  readonly version: string;
  close(): Promise<void>;
}

export interface Stage {
  readonly surroundings: Surroundings;
  readonly scale: Scale;
  /** Says on stderr what is being done. */
  readonly progress: (text: string) => void;
  /** The contenders that take part. */
  readonly names: readonly ContenderName[];
  /** Why others do not. */
  readonly absent: ReadonlyMap<StoreName, string>;
  readonly versions: readonly string[];
  address(name: ContenderName): Address;
  /** A proxy before the store that counts; undefined where there is no server. */
  meter(name: ContenderName, traveller?: Traveller): Promise<Meter | undefined>;
  close(): Promise<void>;
}

const protocolOf: Readonly<Record<StoreName, ProtocolName | undefined>> = {
  file: undefined,
  postgres: 'postgres',
  redis: 'redis',
  etcd: 'grpc',
  kubernetes: 'http',
};
/** A bound on steps of the server's clock, which is believed a little less than it says. */
const clockStepMs = 2_000;
const start: Readonly<
  Record<Exclude<StoreName, 'file'>, (surroundings: Surroundings) => Promise<Server>>
> = {
  /** A commit is on the disk before it is answered. */
  async postgres() {
    const server = await startPostgres({ fsync: true });
    const pool = new pg.Pool({ connectionString: server.url });
    const election = createElection({ name: 'init', backend: postgres(pool) });
    await election.init();
    await election.close();
    await pool.end();
    const version = await server.sql('show server_version');
    return {
      port: server.port,
      version: `PostgreSQL ${version.split(' ')[0]}, commits synced`,
      close: () => server.close(),
    };
  },
  async redis() {
    const server = await startRedis();
    const version = /redis_version:(\S+)/.exec(String(await server.command('INFO', 'server')))?.[1];
    return {
      port: server.port,
      version: `Redis ${version}, in memory only`,
      close: () => server.close(),
    };
  },
  async etcd() {
    // As etcd has them by default.
    const server = await startEtcd({ timing: { heartbeatMs: 100, electionMs: 1_000 } });
    const version = /"version":"([^"]+)"/.exec(
      await server.etcdctl('endpoint', 'status', '--write-out=json'),
    )?.[1];
    return {
      port: server.port,
      version: `etcd ${version}, one member, commits synced`,
      close: () => server.close(),
    };
  },
  async kubernetes(surroundings) {
    const server = new Remote<ApiServerMethods>(surroundings, 'API server', [
      process.execPath,
      workerFile('api-server'),
    ]);
    const { port } = await server.call('open', {});
    return {
      port,
      version: 'Kubernetes: a stand-in for the API server, in Node, in memory, without TLS',
      close: () => server.kill(),
    };
  },
};

const whyAbsent: Readonly<Partial<Record<StoreName, () => string | undefined>>> = {
  postgres: postgresAvailable,
  redis: redisAvailable,
  etcd: etcdAvailable,
};

export async function makeStage(
  surroundings: Surroundings,
  scale: Scale,
  progress: (text: string) => void,
): Promise<Stage> {
  const absent = new Map<StoreName, string>();
  const servers = new Map<StoreName, Server>();
  const close = async () => {
    await Promise.all([...servers.values()].map((server) => server.close()));
  };
  try {
    for (const store of ['postgres', 'redis', 'etcd', 'kubernetes'] as const) {
      const reason = whyAbsent[store]?.();
      if (reason === undefined) servers.set(store, await start[store](surroundings));
      else absent.set(store, reason);
    }
    // Where a store may lose what it had confirmed nobody leads before it was there for one lease.
    await sleep(Math.max(scale.leaseMs, ...scale.leasesMs) + clockStepMs);
  } catch (error) {
    await close();
    throw error;
  }
  const address = (name: ContenderName): Address => {
    const { store } = contenders[name];
    const port = servers.get(store)?.port ?? 0;
    return { port, directory: surroundings.directory };
  };
  return {
    surroundings,
    scale,
    progress,
    names: contenderNames.filter((name) => !absent.has(contenders[name].store)),
    absent,
    versions: [...servers.values()].map(({ version }) => version),
    address,
    async meter(name, traveller) {
      const protocol = protocolOf[contenders[name].store];
      if (protocol === undefined) return undefined;
      const metered = { port: address(name).port, protocol };
      return startMeter(traveller === undefined ? metered : { ...metered, traveller });
    },
    close,
  };
}

/** V8's young generation has its full size from the start: else it grows in what is measured. */
const memoryOptions = ['--expose-gc', '--min-semi-space-size=16'];

/** A process with a client, and in no election. */
export async function startCandidate(
  stage: Stage,
  name: ContenderName,
  leaseMs: number,
  address: Address = stage.address(name),
): Promise<Candidate> {
  const command = [process.execPath, ...memoryOptions, workerFile('candidate'), name];
  const candidate: Candidate = new Remote(stage.surroundings, name, command);
  try {
    await candidate.call('open', { address, leaseMs });
    return candidate;
  } catch (error) {
    await candidate.kill();
    throw error;
  }
}

/** Another one first at each turn. */
export function rotated<T>(items: readonly T[], by: number): readonly T[] {
  const first = by % Math.max(1, items.length);
  return [...items.slice(first), ...items.slice(0, first)];
}

/** Names for elections that nobody has had: as Kubernetes allows them. */
export function electionName(what: string, name: ContenderName, round: number): string {
  const plain = name.replaceAll(/[^a-z\d]+/g, '-');
  return `${what}-${plain}-${round}-${Math.floor(monotonicMs())}`;
}

function workerFile(name: string): string {
  return fileURLToPath(new URL(`./workers/${name}.js`, import.meta.url));
}
