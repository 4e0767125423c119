/** Our clients for the members of an etcd cluster. */
import { createSecureContext } from 'node:tls';
import type { ChannelCredentials, Client } from '@grpc/grpc-js';
import { ElectionError } from 'incumbent';
import type { EtcdAuth, EtcdStatus } from 'incumbent/etcd';
import { etcdStatus } from 'incumbent/etcd';
import type { StoreNeeds } from '../context.ts';
import { UnusableStoreError } from '../unusable.ts';
import { showHost } from '../url/parts.ts';
import { boundWords, reach, reasonOf, within } from '../url/reach.ts';
import type { Machine } from '../url/secrets.ts';
import { lineOf } from '../url/secrets.ts';
import type { TlsContents } from '../url/tls.ts';
import { readTlsFiles } from '../url/tls.ts';
import { wantsUsers } from './raw-calls.ts';
import type { EtcdLocation } from './url.ts';
import { hostWords } from './url.ts';

/** One member, and its last answer. */
export interface EtcdReport {
  readonly server: string;
  readonly status: EtcdStatus | undefined;
  /** Why there is none. */
  readonly problem: unknown;
}

export interface EtcdConnections {
  readonly clients: readonly Client[];
  readonly auth: EtcdAuth | undefined;
  readonly location: EtcdLocation;
  askMembers(timeoutMs: number, signal: AbortSignal): Promise<readonly EtcdReport[]>;
  close(): void;
}

/** etcd takes pings from 5 s on, and ends the connections of clients that ping more often. */
const keepAlive = { 'grpc.keepalive_time_ms': 10_000, 'grpc.keepalive_timeout_ms': 3_000 };
const reconnect = {
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.min_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
};

/** @throws CommandError, UnusableStoreError that names the members and the answer of each */
export async function connectEtcd(
  location: EtcdLocation,
  needs: StoreNeeds,
  machine: Machine,
): Promise<EtcdConnections> {
  const { hosts, origin, tls: names, user, password } = location;
  const [grpc, tls, secret] = await Promise.all([
    import('@grpc/grpc-js'),
    names && readTlsFiles(names, origin, machine, machine.env['INCUMBENT_ETCD_TLS_PASSPHRASE']),
    password && lineOf(password, `password of ${origin}`, machine),
  ]);
  // The driver writes warnings of its own to stderr, which is `run`'s.
  grpc.setLogVerbosity(grpc.logVerbosity.NONE);
  const known = { url: location.url, origin };
  const credentials = credentialsOf(grpc.credentials, tls, location);
  const channel = {
    ...keepAlive,
    ...reconnect,
    ...(tls?.servername === undefined
      ? {}
      : {
          'grpc.ssl_target_name_override': tls.servername,
          'grpc.default_authority': tls.servername,
        }),
  };
  const clients = hosts.map((host) => new grpc.Client(showHost(host), credentials, channel));
  const { Metadata } = grpc;
  const auth: EtcdAuth | undefined =
    user === undefined || secret === undefined ? undefined : { user, password: secret, Metadata };
  const close = () => {
    for (const client of clients) client.close();
  };
  const ask = async (index: number, ms: number, until: AbortSignal): Promise<EtcdReport> => {
    const server = showHost(hosts[index] ?? { host: '', port: 0 });
    const client = clients[index] as Client;
    const stop = new AbortController();
    const asking = etcdStatus(client, { ...(auth && { auth }), signal: stop.signal });
    try {
      return { server, status: await within(ms, until, asking), problem: undefined };
    } catch (problem) {
      until.throwIfAborted();
      return { server, status: undefined, problem };
    } finally {
      stop.abort();
    }
  };
  const askAll = (ms: number, until: AbortSignal) =>
    hosts.map((_host, index) => ask(index, ms, until));
  const attempt = async (leftMs: number) => {
    const asked = askAll(leftMs, needs.signal);
    // One member that serves is enough: we do not wait for the others.
    const serves = asked.map(async (report, index) => {
      if (((await report).status?.leader ?? 0n) === 0n) throw new Error('it does not serve');
      return index;
    });
    for (const report of asked) report.catch(() => {});
    return Promise.any(serves).catch(async () => {
      throw new NobodyServesError(await Promise.all(asked));
    });
  };
  try {
    const first = await reach(
      needs,
      attempt,
      (error) => !(error instanceof NobodyServesError && error.isFinal),
    );
    const key = `${location.options.root ?? ''}incumbent/record/`;
    if (auth === undefined && (await wantsUsers(clients[first] as Client, key))) {
      throw new UnusableStoreError(
        'AUTH_FAILED',
        `etcd at ${hostWords(location)} wants to know users: set ETCDCTL_USER=name:password, or write the ` +
          'user in front of the hosts and add password=env:NAME or password=file:/PATH',
        known,
      );
    }
    return {
      ...{ auth, location, close },
      // Begins with a member that serves, because a command asks only once.
      clients: [...clients.slice(first), ...clients.slice(0, first)],
      askMembers: (ms, until) => Promise.all(askAll(ms, until)),
    };
  } catch (error) {
    close();
    needs.signal.throwIfAborted();
    if (error instanceof UnusableStoreError) throw error;
    const reports = error instanceof NobodyServesError ? error.reports : [];
    throw unusable(error, reports, location, needs, known);
  }
}

class NobodyServesError extends Error {
  override readonly name: string = 'NobodyServesError';
  readonly reports: readonly EtcdReport[];

  constructor(reports: readonly EtcdReport[]) {
    super('no member serves');
    this.reports = reports;
  }

  /** Waiting cures none of it. */
  get isFinal(): boolean {
    return this.reports.every(
      ({ problem }) => problem instanceof ElectionError && !problem.retryable,
    );
  }
}

function credentialsOf(
  { createInsecure, createFromSecureContext }: typeof import('@grpc/grpc-js').credentials,
  tls: TlsContents | undefined,
  { origin, url }: EtcdLocation,
): ChannelCredentials {
  if (tls === undefined) return createInsecure();
  try {
    return createFromSecureContext(createSecureContext(tls));
  } catch (error) {
    throw new UnusableStoreError(
      'BAD_CERTIFICATE',
      `the certificates or the key of ${origin} cannot be used: ${reasonOf(error)}`,
      { url, origin },
      { cause: error },
    );
  }
}

function unusable(
  error: unknown,
  reports: readonly EtcdReport[],
  location: EtcdLocation,
  needs: StoreNeeds,
  known: { readonly url: string; readonly origin: EtcdLocation['origin'] },
): UnusableStoreError {
  const said = reports.map(inWords).join('; ');
  const fail = (code: string, message: string) =>
    new UnusableStoreError(code, message, known, { cause: error });
  const within = boundWords(needs, `${said} ${reasonOf(error)}`);
  if (reports.length === 0) {
    return fail(
      'STORE_UNAVAILABLE',
      `etcd at ${hostWords(location)} cannot be reached${within}: ${reasonOf(error)}`,
    );
  }
  if (/authentication failed|invalid user|user name is empty|invalid auth/i.test(said)) {
    return fail(
      'AUTH_FAILED',
      `etcd does not take our credentials: ${said}; look at ETCDCTL_USER and ETCDCTL_PASSWORD, and at ` +
        'user and password of the URL',
    );
  }
  if (reports.some(({ status }) => status !== undefined)) {
    return fail('NO_QUORUM', `the members of etcd know no leader${within}: ${said}`);
  }
  return fail(
    'STORE_UNAVAILABLE',
    `no member of etcd can be reached${within}: ${said}${hintFor(location, said)}`,
  );
}

function hintFor({ tls }: EtcdLocation, said: string): string {
  if (tls === undefined) {
    const isCut = /Failed to connect|ECONNRESET|closed|dropped|protocol/i.test(said);
    return isCut ? '; a server that speaks TLS there wants etcds://' : '';
  }
  // Which of them is seen when a server answers TLS with something else is a matter of time.
  if (/before secure TLS connection|wrong version number|ECONNRESET/i.test(said)) {
    return '; a server that speaks no TLS there wants etcd://';
  }
  return /certificate|altnames/i.test(said) ? '; tls-ca names whom to trust' : '';
}

/** Of one member, for people. */
export function inWords({ server, status, problem }: EtcdReport): string {
  if (status !== undefined) return `${server} ${status.leader === 0n ? 'has no leader' : 'serves'}`;
  // The message of gRPC is about gRPC itself, with the reason in the middle.
  const why = reasonOf(problem).replace(/^etcd, asking for the status: /, '');
  const last = /Last error: (?:Error: )?(.*?)(?: \(\d{4}-[^)]*\))?\.? Resolution note:/.exec(
    why,
  )?.[1];
  const cause =
    /(connect E[A-Z]+ \S*[^\s.]|getaddrinfo E[A-Z_]+ \S*[^\s.])/.exec(why)?.[1] ?? last ?? why;
  return cause.includes(server) ? cause : `${server}: ${cause}`;
}
