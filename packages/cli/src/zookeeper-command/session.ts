import { readFile } from 'node:fs/promises';
import type { ClientOptions, ConnectionString, TlsOptions, ZooKeeper } from '@incumbent/zookeeper';
import { connect, parseConnectionString } from '@incumbent/zookeeper';
import type { Arguments } from './arguments.ts';
import type { Context, Environment } from './context.ts';
import { CommandError, exitCodes, UsageError } from './failure.ts';

const defaultServer = 'zk://localhost:2181';
const defaultTimeoutMs = 10_000;

/** Where to connect to, by `--server` and related options. */
export interface Target {
  readonly url: string;
  readonly parsed: ConnectionString;
  readonly timeoutMs: number;
  readonly tls: TlsOptions | undefined;
}

/** @throws UsageError, InvalidArgumentError, CommandError for a file that cannot be read */
export async function targetOf(args: Arguments, env: Environment): Promise<Target> {
  const url = args.value('server') ?? (env['INCUMBENT_ZK'] || defaultServer);
  const parsed = parseConnectionString(url);
  const timeoutMs = args.durationMs('timeout') ?? defaultTimeoutMs;
  const tls = await tlsOptions(args, env);
  if (tls !== undefined && !parsed.tls) {
    throw new UsageError('--tls-… options are for TLS: write --server zks://HOST:PORT');
  }
  return { url, parsed, timeoutMs, tls };
}

/**
 * Runs `work` with a session, which is closed afterwards: also when the command is interrupted.
 * @returns what `work` returned
 */
export async function withClient<T>(
  args: Arguments,
  context: Context,
  work: (client: ZooKeeper) => Promise<T>,
): Promise<T> {
  const { signal, env } = context;
  const { url, timeoutMs, tls } = await targetOf(args, env);
  const options: ClientOptions = {
    connectTimeoutMs: timeoutMs,
    requestTimeoutMs: timeoutMs,
    auth: authOf(args, env),
    sasl: saslOf(args, env),
    tls,
    readOnly: args.has('read-only'),
  };
  const client = await connect(url, { ...options, signal });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

/** Tells people on stderr about the connection while they wait. */
export function noteStates(client: ZooKeeper, context: Context): void {
  client.onState(({ state, previous, session }) => {
    if (context.signal.aborted) return;
    if (state === 'suspended') context.note('the connection is lost; looking for a server');
    if (state === 'expired') context.note('the session has expired; beginning another one');
    if (state === 'connected' && previous !== 'read-only') {
      context.note(`connected again, to ${session?.server}`);
    }
  });
}

function authOf(args: Arguments, env: Environment): ClientOptions['auth'] {
  const given = args.all('auth');
  const fromEnvironment = (env['INCUMBENT_ZK_AUTH'] ?? '').split('\n').filter((each) => each);
  return [...fromEnvironment, ...given].map((text) => {
    const colon = text.indexOf(':');
    if (colon < 1) {
      const origin = given.includes(text) ? '--auth' : 'INCUMBENT_ZK_AUTH';
      // Not shown: it may be a password.
      throw new UsageError(`${origin} is SCHEME:CREDENTIALS, such as digest:USER:PASSWORD`);
    }
    return { scheme: text.slice(0, colon), credentials: text.slice(colon + 1) };
  });
}

function saslOf(args: Arguments, env: Environment): ClientOptions['sasl'] {
  const text = args.value('sasl') ?? (env['INCUMBENT_ZK_SASL'] || undefined);
  if (text === undefined) return undefined;
  const colon = text.indexOf(':');
  if (colon < 1) {
    const origin = args.has('sasl') ? '--sasl' : 'INCUMBENT_ZK_SASL';
    throw new UsageError(`${origin} is USER:PASSWORD`);
  }
  return { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

async function tlsOptions(args: Arguments, env: Environment): Promise<TlsOptions | undefined> {
  const servername = args.value('tls-servername');
  const names = ['tls-ca', 'tls-cert', 'tls-key'] as const;
  if (servername === undefined && names.every((name) => !args.has(name))) return undefined;
  if (args.has('tls-cert') !== args.has('tls-key')) {
    throw new UsageError('--tls-cert and --tls-key belong together: give both');
  }
  const [ca, cert, key] = await Promise.all(names.map((name) => contentOf(name, args.value(name))));
  const passphrase = env['INCUMBENT_ZK_TLS_PASSPHRASE'];
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(passphrase ? { passphrase } : {}),
    ...(servername === undefined ? {} : { servername }),
  };
}

async function contentOf(option: string, file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw fileError(option, file, error);
  }
}

export function fileError(option: string, file: string, error: unknown): CommandError {
  const { code = 'UNREADABLE', message } = error as Error & { code?: string };
  return new CommandError(
    code,
    exitCodes.missing,
    `--${option} "${file}" cannot be read: ${message}`,
    { cause: error },
  );
}
