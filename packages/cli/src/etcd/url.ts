/** `etcd://` and `etcds://` URLs. */
import type { EtcdOptions } from 'incumbent/etcd';
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
import { choice, duration, flag, timeout, word } from '../url/values.ts';

/** The parts of an `etcd:` URL. ETCDCTL_USER and the variables like it fill the gaps. */
export interface EtcdLocation {
  readonly hosts: readonly Host[];
  readonly user: string | undefined;
  readonly password: SecretSource | undefined;
  /** Undefined: without TLS. */
  readonly tls: TlsNames | undefined;
  /** The lease to ask for; undefined: that of `--lease`. */
  readonly ttlMs: number | undefined;
  /** Handed on to the library, without the lease and without credentials. */
  readonly options: Omit<EtcdOptions, 'ttl' | 'auth'>;
  /** In its plain form, with *** for secrets. */
  readonly url: string;
  readonly origin: OpenStore['origin'];
}

const form = 'etcd://h1:2379,h2:2379,h3:2379/elections?ttl=10s';

const table = {
  ttl: { read: timeout },
  tls: { read: flag },
  user: { read: word },
  password: {
    read: secretSource({ name: 'ETCDCTL_PASSWORD', path: '/run/secrets/etcd' }),
    show: showSource,
    isSecret: true,
  },
  ...tlsTable,
  root: { read: word },
  'on-disconnect': { read: choice('hold', 'step-down') },
  'predecessor-wait': { read: choice('belief', 'off') },
  recheck: { read: duration },
  'election-timeout': { read: duration },
  'delay-after-win': { read: duration },
} satisfies Readonly<Record<string, Parameter<unknown>>>;

type Values = ValuesOf<typeof table>;

export const etcdParameters: readonly string[] = Object.keys(table);

/**
 * @param env for parts that the URL leaves out: ETCDCTL_USER (`name` or `name:password`),
 * ETCDCTL_PASSWORD, ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY, as etcdctl has it
 * @throws CommandError that names the part that cannot be used; never with any secret
 */
export function parseEtcdUrl(
  text: string,
  origin: '--store' | 'INCUMBENT_STORE',
  env: Environment,
): EtcdLocation {
  const refuse = refuser('etcd', origin, form);
  const parts = splitUrl(text, refuse);
  const { values, shown } = readQuery(table, parts.query, refuse);
  const hosts = readHosts(parts.authority, 2379, refuse);
  if (hosts.length === 0) refuse('names no host');
  const isSecure = parts.scheme === 'etcds';
  if (isSecure && values.tls?.[0] === false) refuse('has etcds: in front and tls=false behind');
  const isTls = isSecure || values.tls?.[0] === true;
  const tls = tlsNames(values, refuse);
  const [firstTls] = Object.keys(tls);
  if (!isTls && firstTls !== undefined) {
    refuse(`has the parameter tls-${firstTls}, which is for TLS: write etcds://`);
  }
  const { user, password } = whoOf(parts, values, env, refuse);
  const { path } = parts;
  if (path !== undefined && values.root !== undefined) {
    refuse('has two roots: one as the path and one as a parameter');
  }
  const shownRoot =
    path === undefined ? '' : `/${path.split('/').map(encodeURIComponent).join('/')}`;
  return {
    hosts,
    user,
    password,
    tls: isTls ? tlsWithEnv(tls, env) : undefined,
    ttlMs: values.ttl?.[0],
    options: {
      ...given('root', values.root?.[0] ?? rootOf(path, refuse)),
      ...given('onDisconnect', values['on-disconnect']?.[0]),
      ...given('predecessorWait', values['predecessor-wait']?.[0]),
      ...given('recheck', values.recheck?.[0]),
      ...given('electionTimeout', values['election-timeout']?.[0]),
      ...given('delayAfterWin', values['delay-after-win']?.[0]),
    },
    url:
      `${parts.scheme}://${showUser({ user: values.user ? undefined : user, password: parts.password })}` +
      `${hosts.map(showHost).join(',')}${shownRoot}${shown === '' ? '' : `?${shown}`}`,
    origin,
  };
}

function whoOf(
  parts: UrlParts,
  values: Values,
  env: Environment,
  refuse: Refuse,
): Pick<EtcdLocation, 'user' | 'password'> {
  const named = values.user?.[0];
  const source = values.password?.[0];
  if (parts.user !== undefined && named !== undefined) {
    refuse('has two users: one in front of the hosts and one as a parameter');
  }
  if (parts.password !== undefined && source !== undefined) {
    refuse('has two passwords: one in front of the hosts and one as a parameter');
  }
  const user = parts.user ?? named;
  const inEnv: SecretSource | undefined = env['ETCDCTL_PASSWORD']
    ? { kind: 'env', name: 'ETCDCTL_PASSWORD' }
    : undefined;
  const literal: SecretSource | undefined =
    parts.password === undefined ? undefined : { kind: 'literal', text: parts.password };
  if (user !== undefined) {
    const password = literal ?? source ?? inEnv;
    if (password !== undefined || isCertificateGiven(values, env)) return { user, password };
    return refuse(
      `has the user ${JSON.stringify(user)} and no password: set ETCDCTL_PASSWORD, or add ` +
        'password=env:NAME or password=file:/PATH',
    );
  }
  if (literal !== undefined || source !== undefined) refuse('has a password and no user');
  const variable = env['ETCDCTL_USER'] || undefined;
  if (variable === undefined) return { user: undefined, password: undefined };
  const colon = variable.indexOf(':');
  if (colon === -1) return { user: variable, password: inEnv };
  const text = variable.slice(colon + 1);
  return { user: variable.slice(0, colon), password: { kind: 'literal', text } };
}

/** Its name may be the user's, and then there is no password. */
function isCertificateGiven(values: Values, env: Environment): boolean {
  return values['tls-cert'] !== undefined || Boolean(env['ETCDCTL_CERT']);
}

function tlsWithEnv(tls: TlsNames, env: Environment): TlsNames {
  const names = { ca: 'ETCDCTL_CACERT', cert: 'ETCDCTL_CERT', key: 'ETCDCTL_KEY' } as const;
  const found = Object.entries(names).flatMap(([name, variable]) =>
    env[variable] ? [[name, env[variable]]] : [],
  );
  return { ...(Object.fromEntries(found) as TlsNames), ...tls };
}

/** Names in etcd begin with a slash, as a rule: the election "x" of `/a/b` is the prefix "/a/b/x/". */
function rootOf(path: string | undefined, refuse: Refuse): string | undefined {
  const root = path?.replace(/^\/+|\/+$/g, '');
  if (root?.includes('//')) refuse('has an empty name in its path: two "/" behind each other');
  return root === undefined || root === '' ? undefined : `/${root}/`;
}

/** `host:port` of each. */
export function hostWords({ hosts }: Pick<EtcdLocation, 'hosts'>): string {
  return hosts.map(showHost).join(', ');
}
