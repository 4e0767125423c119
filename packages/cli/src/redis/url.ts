/** `redis://` and `rediss://` URLs: one server, several sentinels, or the nodes of a cluster. */
import type { RedisOptions } from 'incumbent/redis';
import type { Environment, OpenStore } from '../context.ts';
import type { Host, UrlParts } from '../url/parts.ts';
import { readHosts, refuser, showHost, showUser, splitUrl } from '../url/parts.ts';
import type { Parameter, ValuesOf } from '../url/query.ts';
import { given, readQuery } from '../url/query.ts';
import type { SecretSource } from '../url/secrets.ts';
import { secretSource, showSource } from '../url/secrets.ts';
import type { TlsNames } from '../url/tls.ts';
import { tlsNames, tlsTable } from '../url/tls.ts';
import type { Refuse } from '../url/values.ts';
import { choice, duration, flag, quote, wholeNumber, word } from '../url/values.ts';

/** The parts of a `redis:` URL. REDIS_PASSWORD and the variables like it fill the gaps. */
export interface RedisLocation {
  /** The role of the hosts: one server, the sentinels of `master`, or nodes of a cluster. */
  readonly kind: 'server' | 'sentinel' | 'cluster';
  readonly hosts: readonly Host[];
  readonly master: string | undefined;
  readonly user: string | undefined;
  readonly password: SecretSource | undefined;
  readonly sentinelUser: string | undefined;
  readonly sentinelPassword: SecretSource | undefined;
  readonly database: number;
  /** Undefined: without TLS. */
  readonly tls: TlsNames | undefined;
  /** Handed on to the library. */
  readonly options: RedisOptions;
  /** In its plain form, with *** for secrets. */
  readonly url: string;
  readonly origin: OpenStore['origin'];
}

const form =
  'redis://host:6379/0, redis://s1:26379,s2:26379,s3:26379?sentinel=NAME or ' +
  'redis://h1:6379,h2:6379,h3:6379?cluster=true';

const secret: Parameter<SecretSource> = {
  read: secretSource({ name: 'REDIS_PASSWORD', path: '/run/secrets/redis' }),
  show: showSource,
  isSecret: true,
};

const table = {
  sentinel: { read: word },
  cluster: { read: flag },
  password: secret,
  'sentinel-user': { read: word },
  'sentinel-password': secret,
  ...tlsTable,
  prefix: { read: word },
  age: { read: choice('on', 'off') },
  'clock-step': { read: duration },
  'token-floor': { read: token },
  wait: { read: wholeNumber(1, 100) },
  'wait-timeout': { read: duration },
  durable: { read: flag },
  listen: { read: flag },
} satisfies Readonly<Record<string, Parameter<unknown>>>;

type Values = ValuesOf<typeof table>;

export const redisParameters: readonly string[] = Object.keys(table);

/**
 * @param env for parts that the URL leaves out: REDIS_USERNAME, REDIS_PASSWORD or, as redis-cli has
 * it, REDISCLI_AUTH
 * @throws CommandError that names the part that cannot be used; never with any secret
 */
export function parseRedisUrl(
  text: string,
  origin: '--store' | 'INCUMBENT_STORE',
  env: Environment,
): RedisLocation {
  const refuse = refuser('Redis', origin, form);
  const parts = splitUrl(text, refuse);
  const { values, shown } = readQuery(table, parts.query, refuse);
  const isTls = parts.scheme === 'rediss';
  if (parts.password !== undefined && values.password !== undefined) {
    refuse('has two passwords: one in front of the host and one as a parameter');
  }
  const tls = tlsNames(values, refuse);
  const [firstTls] = Object.keys(tls);
  if (!isTls && firstTls !== undefined) {
    refuse(`has the parameter tls-${firstTls}, which is for TLS: write rediss://`);
  }
  const kind = kindOf(values, refuse);
  const port = kind === 'sentinel' ? 26_379 : 6379;
  const named = readHosts(parts.authority, port, refuse);
  const hosts = named.length > 0 ? named : [{ host: 'localhost', port }];
  if (kind === 'server' && hosts.length > 1) {
    refuse(
      'has several hosts: for sentinels add sentinel=NAME (of the master they watch), for nodes of ' +
        'a cluster cluster=true; servers that know nothing of each other would elect a leader each',
    );
  }
  const database = databaseOf(parts.path, refuse);
  if (kind === 'cluster' && database !== 0) {
    refuse(`has the database ${database}, and a cluster has only 0`);
  }
  const { user = env['REDIS_USERNAME'] || undefined } = parts;
  const password = passwordOf(parts, values, env);
  // Without a password the client would not log in at all, and be the user "default".
  if (user !== undefined && password === undefined) {
    refuse(
      `has the user ${quote(user)}${parts.user === undefined ? ' (REDIS_USERNAME)' : ''} and no ` +
        'password: set REDIS_PASSWORD, or add password=env:NAME or password=file:/PATH (a user ' +
        'with "nopass" takes any)',
    );
  }
  const shownPath = parts.path === undefined ? '' : `/${database}`;
  return {
    kind,
    hosts,
    master: values.sentinel?.[0],
    user,
    password,
    sentinelUser: values['sentinel-user']?.[0],
    sentinelPassword: values['sentinel-password']?.[0],
    database,
    tls: isTls ? tls : undefined,
    options: optionsOf(values, kind, refuse),
    url:
      `${parts.scheme}://${showUser({ user, password: parts.password })}` +
      `${hosts.map(showHost).join(',')}${shownPath}${shown === '' ? '' : `?${shown}`}`,
    origin,
  };
}

function optionsOf(values: Values, kind: RedisLocation['kind'], refuse: Refuse): RedisOptions {
  const [replicas, timeout] = [values.wait?.[0], values['wait-timeout']?.[0]];
  if (replicas !== undefined && kind === 'cluster') {
    refuse('has the parameter wait, which a cluster cannot do');
  }
  if (replicas === undefined && timeout !== undefined) {
    refuse('has the parameter wait-timeout and no wait=REPLICAS');
  }
  if (values.age?.[0] === 'off' && values['clock-step'] !== undefined) {
    refuse('has the parameter clock-step, which means nothing with age=off');
  }
  return {
    ...given('prefix', values.prefix?.[0]),
    ...given('age', values.age?.[0]),
    ...given('clockStep', values['clock-step']?.[0]),
    ...given('tokenFloor', values['token-floor']?.[0]),
    ...(replicas === undefined ? {} : { wait: { replicas, ...given('timeout', timeout) } }),
    ...given('durable', values.durable?.[0]),
    ...given('listen', values.listen?.[0]),
  };
}

function kindOf(values: Values, refuse: Refuse): RedisLocation['kind'] {
  const isCluster = values.cluster?.[0] === true;
  const isSentinel = values.sentinel !== undefined;
  if (isCluster && isSentinel)
    refuse('has both sentinel and cluster: the hosts are one or the other');
  if (!isSentinel) {
    const inVain = (['sentinel-user', 'sentinel-password'] as const).find((name) => values[name]);
    if (inVain) refuse(`has the parameter ${inVain} and no sentinel=NAME`);
  }
  if (values['sentinel-user'] !== undefined && values['sentinel-password'] === undefined) {
    refuse(
      `has the sentinel-user ${quote(values['sentinel-user'][0] ?? '')} and no password: add ` +
        'sentinel-password=env:NAME or sentinel-password=file:/PATH',
    );
  }
  return isCluster ? 'cluster' : isSentinel ? 'sentinel' : 'server';
}

function passwordOf(
  { password }: UrlParts,
  values: Values,
  env: Environment,
): SecretSource | undefined {
  if (password !== undefined) return { kind: 'literal', text: password };
  const source = values.password?.[0];
  if (source !== undefined) return source;
  const name = ['REDIS_PASSWORD', 'REDISCLI_AUTH'].find((each) => env[each]);
  return name === undefined ? undefined : { kind: 'env', name };
}

function databaseOf(path: string | undefined, refuse: Refuse): number {
  if (path === undefined) return 0;
  if (!/^\d{1,5}$/.test(path)) refuse(`has the database ${quote(path)}, which is a number: /0`);
  return Number(path);
}

function token(text: string, refuse: Refuse): bigint {
  return /^\d{1,30}$/.test(text)
    ? BigInt(text)
    : refuse(`is a token such as 42, not ${quote(text)}`);
}

/** `host:port` of each. */
export function hostWords({ hosts }: Pick<RedisLocation, 'hosts'>): string {
  return hosts.map(showHost).join(', ');
}
