import { execFile, spawnSync } from 'node:child_process';
import { get } from 'node:http';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import type { TestCertificates } from '@incumbent/zookeeper-testing';
import { createCertificates, freePorts } from '@incumbent/zookeeper-testing';
import { LocalServer, makeServerDirectory, waitFor } from './local-server.ts';

const run = promisify(execFile);

/** Leases of one second are possible with an election timeout below 667 ms. */
const oneServerTiming = { heartbeatMs: 20, electionMs: 100 };
const clusterTiming = { heartbeatMs: 50, electionMs: 500 };

/** Where one member listens, and what its process is put into. */
export interface EtcdSeat {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Put before the program: `["nsenter", "--net=/run/netns/a"]`. */
  readonly within?: readonly string[];
}

export interface EtcdOptions {
  readonly seat?: EtcdSeat;
  /** TLS for clients, with certificates made for the purpose; `require`: theirs are checked too. */
  readonly tls?: 'server' | 'require';
  /** Default 20 and 100 ms, in a cluster 50 and 500 ms. The smallest lease grows with `electionMs`. */
  readonly timing?: { readonly heartbeatMs: number; readonly electionMs: number };
}

export interface EtcdClusterOptions extends Omit<EtcdOptions, 'seat'> {
  /** One for each member. Default: all on 127.0.0.1. */
  readonly seats?: readonly EtcdSeat[];
}

/** One member: it can be killed, frozen and started again on the same data. */
export class EtcdServer extends LocalServer {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly peerPort: number;
  /** With `tls`. */
  readonly certificates: TestCertificates | undefined;
  readonly #metricsPort: number;

  constructor(plan: MemberPlan, members: readonly MemberPlan[], mustBeHealthy: boolean) {
    const { host, directory } = plan;
    const ports = { metrics: plan.metricsPort };
    super({
      program: plan.within[0] ?? 'etcd',
      arguments: [
        ...plan.within.slice(1),
        ...(plan.within.length > 0 ? ['etcd'] : []),
        ...flagsOf(plan, members),
      ],
      directory,
      isReady: async () => {
        const health = await healthAt(host, ports.metrics);
        return mustBeHealthy ? health === 'true' : health !== undefined;
      },
    });
    this.name = plan.name;
    this.host = host;
    this.port = plan.port;
    this.peerPort = plan.peerPort;
    this.certificates = plan.certificates;
    this.#metricsPort = plan.metricsPort;
  }

  /** The address for clients: `127.0.0.1:2379`. */
  get endpoint(): string {
    return `${this.host}:${this.port}`;
  }

  /** For the JSON gateway and `etcdctl`. */
  get url(): string {
    return `${this.certificates === undefined ? 'http' : 'https'}://${this.endpoint}`;
  }

  /** Whether it knows a leader, and no alarm is on. */
  async isHealthy(): Promise<boolean> {
    return (await healthAt(this.host, this.#metricsPort)) === 'true';
  }

  /** Runs `etcdctl` against this member. @returns what it prints */
  async etcdctl(...words: readonly string[]): Promise<string> {
    const { stdout } = await run('etcdctl', [`--endpoints=${this.url}`, ...words], {
      env: { ...process.env, ETCDCTL_API: '3' },
    });
    return stdout;
  }
}

/** Members that form one cluster. */
export class EtcdCluster implements AsyncDisposable {
  readonly members: readonly EtcdServer[];

  constructor(members: readonly EtcdServer[]) {
    this.members = members;
  }

  get endpoints(): readonly string[] {
    return this.members.map(({ endpoint }) => endpoint);
  }

  /** Starts all that do not run, and waits until each of them knows the leader. */
  async start(): Promise<void> {
    await Promise.all(
      this.members.map(async (member) => {
        if (member.pid === undefined) await member.start();
      }),
    );
    await waitFor('all members are healthy', async () => {
      const healthy = await Promise.all(this.members.map((member) => member.isHealthy()));
      return healthy.every(Boolean);
    });
  }

  /** The member that leads the cluster, as those see it who can be asked. */
  async leader(): Promise<EtcdServer> {
    for (const member of this.members) {
      const answer = await member
        .etcdctl('endpoint', 'status', '--write-out=json', '--command-timeout=1s')
        .catch(() => undefined);
      if (answer === undefined) continue;
      // Ids are 64 bits: kept as they are written.
      const leader = /"leader":(\d+)/.exec(answer)?.[1];
      const list = await member.etcdctl('member', 'list', '--write-out=simple', '--hex');
      const line = list
        .split('\n')
        .find((each) => each.startsWith(BigInt(leader ?? 0).toString(16)));
      const found = this.members.find(({ name }) => line?.split(', ')[2] === name);
      if (found !== undefined) return found;
    }
    throw new Error('no member knows the leader');
  }

  async close(): Promise<void> {
    await Promise.all(this.members.map((member) => member.close()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

interface MemberPlan {
  readonly name: string;
  readonly directory: string;
  readonly host: string;
  readonly within: readonly string[];
  readonly port: number;
  readonly peerPort: number;
  readonly metricsPort: number;
  readonly timing: { readonly heartbeatMs: number; readonly electionMs: number };
  readonly certificates: TestCertificates | undefined;
  readonly checksClients: boolean;
}

/** Why no server can be had here; undefined when one can. */
export function etcdAvailable(): string | undefined {
  for (const program of ['etcd', 'etcdctl']) {
    const { status } = spawnSync(program, [program === 'etcd' ? '--version' : 'version'], {
      env: { ...process.env, ETCDCTL_API: '3' },
    });
    if (status !== 0) {
      return `there is no \`${program}\`. On Debian: apt-get install -y --no-install-recommends etcd-server etcd-client`;
    }
  }
  return undefined;
}

/** Started, and ready for clients. */
export async function startEtcd(options: EtcdOptions = {}): Promise<EtcdServer> {
  const { seat, timing = oneServerTiming } = options;
  const plan = await planMember('one', seat, { ...options, timing });
  const server = new EtcdServer(plan, [plan], true);
  await startOrClose(server, () => server.start());
  return server;
}

/** Started, with a leader that all members know. */
export async function startEtcdCluster(
  count = 3,
  options: EtcdClusterOptions = {},
): Promise<EtcdCluster> {
  const { seats = [], timing = clusterTiming } = options;
  const plans = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      planMember(`member-${index + 1}`, seats[index], { ...options, timing }),
    ),
  );
  const cluster = new EtcdCluster(plans.map((plan) => new EtcdServer(plan, plans, false)));
  await startOrClose(cluster, () => cluster.start());
  return cluster;
}

async function startOrClose(
  server: { close(): Promise<void> },
  start: () => Promise<void>,
): Promise<void> {
  try {
    await start();
  } catch (error) {
    await server.close();
    throw error;
  }
}

async function planMember(
  name: string,
  { host = '127.0.0.1', within = [] }: EtcdSeat = {},
  { tls, timing }: Pick<EtcdOptions, 'tls'> & Required<Pick<EtcdOptions, 'timing'>>,
): Promise<MemberPlan> {
  const directory = await makeServerDirectory('etcd');
  const [port, peerPort, metricsPort] = (await freePorts(3)) as [number, number, number];
  const certificates =
    tls === undefined ? undefined : await createCertificates(join(directory, 'tls'));
  const checksClients = tls === 'require';
  return {
    name,
    directory,
    host,
    within,
    port,
    peerPort,
    metricsPort,
    timing,
    certificates,
    checksClients,
  };
}

function flagsOf(plan: MemberPlan, members: readonly MemberPlan[]): readonly string[] {
  const { certificates, timing } = plan;
  const client = `${certificates === undefined ? 'http' : 'https'}://${plan.host}:${plan.port}`;
  const peerOf = ({ host, peerPort }: MemberPlan) => `http://${host}:${peerPort}`;
  const flags = {
    name: plan.name,
    'data-dir': join(plan.directory, 'data'),
    'listen-client-urls': client,
    'advertise-client-urls': client,
    'listen-peer-urls': peerOf(plan),
    'initial-advertise-peer-urls': peerOf(plan),
    'initial-cluster': members.map((each) => `${each.name}=${peerOf(each)}`).join(','),
    // Health without certificates, and without a place among the clients.
    'listen-metrics-urls': `http://${plan.host}:${plan.metricsPort}`,
    'heartbeat-interval': String(timing.heartbeatMs),
    'election-timeout': String(timing.electionMs),
    logger: 'zap',
    'log-level': 'warn',
    ...(certificates === undefined
      ? {}
      : {
          'cert-file': certificates.server.certificate.path,
          'key-file': certificates.server.key.path,
          ...(plan.checksClients
            ? { 'client-cert-auth': 'true', 'trusted-ca-file': certificates.ca.path }
            : {}),
        }),
  };
  return Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
}

/** `true` or `false` as the server says it; undefined when it does not answer. */
function healthAt(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const request = get({ host, port, path: '/health', timeout: 1_000 }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve(/"health":\s*"?(true|false)/.exec(text)?.[1]));
      response.on('error', () => resolve(undefined));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(undefined));
  });
}
