import type { ZooKeeper } from '@incumbent/zookeeper';
import { connect, ZooKeeperError } from '@incumbent/zookeeper';
import { formatDuration, parseDuration } from 'incumbent';
import { zookeeper } from 'incumbent/zookeeper';
import type { Environment, OpenStore, Servers, StoreNeeds } from '../context.ts';
import { CommandError, exitCodes, UsageError } from '../failure.ts';
import type { ZooKeeperLocation } from './location.ts';
import { electionNodes, electionsNode } from './location.ts';
import { nodeAcl } from './node-acl.ts';
import { readSecrets, readTls } from './secrets.ts';
import type { ServerReport } from './servers.ts';
import { askServers } from './servers.ts';
import type { KnownOfZooKeeper } from './unusable.ts';
import { UnusableZooKeeperError } from './unusable.ts';

/** The session that the elections of one command share. */
export interface OpenZooKeeper {
  readonly client: ZooKeeper;
  readonly location: ZooKeeperLocation;
  /**
   * The session timeout that we asked for, and the setting that it came from. The servers may have
   * cut it.
   */
  readonly askedTimeoutMs: number;
  readonly askedBy: string;
  /** Asks every server for itself. */
  askServers(timeoutMs: number, signal: AbortSignal): Promise<readonly ServerReport[]>;
}

/** The default of ZooKeeper's clients. */
const defaultSessionTimeoutMs = 10_000;
/** A session that is not closed stays for its timeout. The command ends after this time anyway. */
const closeTimeoutMs = 2_000;
/** The part of the time to connect that is kept for asking the servers about the fault. */
const diagnosisMs = 1_000;

/**
 * Connects, and makes sure that elections can be held there.
 * @throws CommandError that names the hosts and the fault; UnusableZooKeeperError
 */
export async function openZooKeeper(
  location: ZooKeeperLocation,
  needs: StoreNeeds,
  machine: { readonly env: Environment; readonly cwd: string },
): Promise<OpenStore> {
  const { timeoutMs, signal } = needs;
  const [askedTimeoutMs, askedBy] = sessionTimeout(location, needs);
  const [secrets, tls] = await Promise.all([
    readSecrets(location, machine),
    readTls(location, machine),
  ]);
  const ask = (forMs: number, until: AbortSignal) =>
    askServers(location.hosts, { tls, timeoutMs: forMs, signal: until });
  const reserveMs = Math.min(diagnosisMs, timeoutMs / 5);
  let client: ZooKeeper;
  try {
    client = await connect(location.connectionString, {
      ...secrets,
      ...(tls === undefined ? {} : { tls }),
      compatibility: location.parameters.compatibility,
      sessionTimeoutMs: askedTimeoutMs,
      connectTimeoutMs: timeoutMs - reserveMs,
      closeTimeoutMs,
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ZooKeeperError)) throw error;
    if (error.code === 'INVALID_ARGUMENT') {
      throw new CommandError(
        'BAD_STORE_URL',
        exitCodes.usage,
        `${location.origin}: ${error.message}`,
      );
    }
    const servers = await ask(reserveMs, signal);
    throw unreachable(error, { location, servers, askedTimeoutMs }, needs);
  }
  try {
    const chroot = await findChroot(client, location, needs);
    if (chroot === 'missing') {
      const servers = await ask(reserveMs, signal);
      throw noChroot({ location, servers, askedTimeoutMs });
    }
    return {
      url: location.url,
      origin: location.origin,
      backend: zookeeper(client, location.parameters.options),
      ...(needs.setUp === true ? { prepare: () => prepare(client, location, chroot, signal) } : {}),
      servers: serversOf({ client, location, askedTimeoutMs, askedBy, askServers: ask }),
      close: () => client.close(),
    };
  } catch (error) {
    await client.close();
    throw error;
  }
}

/**
 * The questions that commands put to the ensemble. Modules that only `doctor` needs are loaded when
 * it asks.
 */
function serversOf(store: OpenZooKeeper): Servers {
  const { client, location, askedTimeoutMs } = store;
  return {
    async examine({ timing, timeoutMs, signal }) {
      const { examineZooKeeper } = await import('../doctor/zookeeper.ts');
      return examineZooKeeper(store, timing, timeoutMs, signal);
    },
    async scratch(unique, signal) {
      const { scratchOnZooKeeper } = await import('../doctor/zookeeper-scratch.ts');
      return scratchOnZooKeeper(unique, store, signal);
    },
    check: (signal) => client.confirm(['/'], { signal }),
    observesMissing: true,
    ...(location.parameters.options.layout === 'golea' && { reopensMissing: true }),
    async missingPlace(election, signal) {
      const nodes = electionNodes(location.parameters.options, election);
      for (const node of nodes) {
        if ((await client.stat(node, { signal })).stat !== null) return undefined;
      }
      return `node ${nodes[0]}`;
    },
    checkLease(leastMs) {
      const givenMs = client.session?.timeoutMs ?? askedTimeoutMs;
      if (givenMs >= leastMs) return;
      const asked =
        givenMs === askedTimeoutMs ? '' : ` (asked for: ${formatDuration(askedTimeoutMs)})`;
      throw new UsageError(
        `a session timeout of ${formatDuration(givenMs)}${asked} is too short for a program, which ` +
          'has to be stopped and killed before the belief ends; give ' +
          `${formatDuration(leastMs)} or more, as timeout of the URL or as --lease`,
      );
    },
    async follow(events) {
      const { followConnection } = await import('../run/connection-events.ts');
      return followConnection(store, events);
    },
  };
}

/** The session timeout to ask for, and the setting that it comes from. */
function sessionTimeout(
  { parameters: { timeoutMs }, origin }: ZooKeeperLocation,
  { lease, asksOnly }: StoreNeeds,
): [ms: number, by: string] {
  if (asksOnly) return [Math.max(timeoutMs ?? 0, defaultSessionTimeoutMs), 'the default'];
  const leaseMs = lease === undefined ? undefined : parseDuration('--lease', lease);
  if (timeoutMs !== undefined && leaseMs !== undefined && leaseMs !== timeoutMs) {
    throw new UsageError(
      `--lease ${lease} and the timeout=${formatDuration(timeoutMs)} of ${origin} differ: on ` +
        'ZooKeeper both are the timeout of the session; give one of them',
    );
  }
  if (timeoutMs !== undefined) return [timeoutMs, `the timeout of ${origin}`];
  if (leaseMs !== undefined) return [leaseMs, '--lease'];
  return [defaultSessionTimeoutMs, 'the default'];
}

function unreachable(
  error: ZooKeeperError,
  known: KnownOfZooKeeper,
  { timeoutMs, timeoutName }: StoreNeeds,
): UnusableZooKeeperError {
  const fail = (code: string, message: string) =>
    new UnusableZooKeeperError(code, message, known, { cause: error });
  const { location, servers } = known;
  const hosts = servers.map(({ server }) => server).join(', ');
  if (error.code === 'AUTH_FAILED' || error.code === 'SASL_REQUIRED') {
    return fail(
      'AUTH_FAILED',
      `the ZooKeeper servers ${hosts} do not take our credentials (${error.message}): look at ` +
        'INCUMBENT_ZK_AUTH and INCUMBENT_ZK_SASL, and at auth and sasl of the URL',
    );
  }
  const bound = formatDuration(timeoutMs) + (timeoutName === undefined ? '' : ` (${timeoutName})`);
  const within = `no session with ZooKeeper within ${bound}`;
  if (
    servers.some(({ mode }) => mode !== undefined && mode !== 'read-only' && mode !== 'unknown')
  ) {
    const last = error.cause instanceof Error ? error.cause.message : error.message;
    return fail(
      'STORE_UNAVAILABLE',
      `${within} although a server serves: ${servers.map(inWords).join('; ')}; the last attempt: ${last}`,
    );
  }
  const noQuorum = servers.some(
    ({ mode, problem }) => mode === 'read-only' || /not currently serving/.test(problem ?? ''),
  );
  if (noQuorum) {
    return fail(
      'NO_QUORUM',
      `${within}: the servers have no quorum: ${servers.map(inWords).join('; ')}`,
    );
  }
  const tls = location.scheme === 'zks' ? '' : '; a server that speaks TLS there wants zks://';
  const silent = servers.some(({ problem }) =>
    /^(?:it answers nothing|no answer)/.test(problem ?? ''),
  );
  return fail(
    'STORE_UNAVAILABLE',
    `${within}: ${servers.map(inWords).join('; ')}${silent ? tls : ''}`,
  );
}

function noChroot(known: KnownOfZooKeeper): UnusableZooKeeperError {
  const { location, servers } = known;
  return new UnusableZooKeeperError(
    'NO_CHROOT',
    `the chroot ${location.chroot} of ${location.origin} does not exist on ` +
      `${servers.map(({ server }) => server).join(', ')}: is it misspelt? \`incumbent init\` ` +
      'makes it, and so does the parameter create=true',
    known,
  );
}

function inWords({ server, mode, problem }: ServerReport): string {
  if (mode === 'read-only') return `${server} is read-only`;
  if (mode === 'unknown') return `${server} does not say whether it serves`;
  // The message of the operating system names the address already.
  if (problem?.includes(server)) return problem;
  return `${server}: ${mode ?? problem ?? ''}`;
}

/** The node below which elections are, where it is ours alone. @returns what was made */
async function prepare(
  client: ZooKeeper,
  { chroot, parameters: { options } }: ZooKeeperLocation,
  found: 'there' | 'made',
  signal: AbortSignal,
): Promise<string | undefined> {
  const made = found === 'made' ? [`the chroot ${chroot}`] : [];
  const node = electionsNode(options);
  if (node !== '/' && (await client.stat(node, { signal })).stat === null) {
    await client.ensurePath(node, { signal, acl: nodeAcl(options) });
    made.push(`the node ${node}`);
  }
  return made.length === 0 ? undefined : made.join(' and ');
}

/** A chroot that is not there is more often a misspelling than meant. */
async function findChroot(
  client: ZooKeeper,
  { chroot, parameters: { options } }: ZooKeeperLocation,
  { setUp, signal, timeoutMs }: StoreNeeds,
): Promise<'there' | 'missing' | 'made'> {
  if (chroot === '/') return 'there';
  const { stat } = await client.stat('/', { signal, timeoutMs });
  if (stat !== null) return 'there';
  if (setUp !== true && options.create !== true) return 'missing';
  await client.ensurePath('/', { signal, timeoutMs, acl: nodeAcl(options) });
  return 'made';
}
