/** `postgres://` URLs: as libpq has them, with parameters of ours beside its own. */
import type { PostgresOptions } from 'incumbent/postgres';
import type { Environment, OpenStore } from '../context.ts';
import type { Host } from '../url/parts.ts';
import { readHosts, refuser, showHost, showUser, splitUrl } from '../url/parts.ts';
import type { Parameter, ValuesOf } from '../url/query.ts';
import { given, readQuery } from '../url/query.ts';
import type { SecretSource } from '../url/secrets.ts';
import { secretSource, showSource } from '../url/secrets.ts';
import type { Refuse } from '../url/values.ts';
import { choice, duration, flag, quote, word } from '../url/values.ts';

/** The values of libpq's `sslmode`. */
export type SslMode = 'disable' | 'prefer' | 'require' | 'verify-ca' | 'verify-full';

/** The parts of a `postgres:` URL. PGHOST and the variables like it fill the gaps. */
export interface PostgresLocation {
  /** More than one: whichever is the primary. A host that begins with "/" is a directory of sockets. */
  readonly hosts: readonly Host[];
  readonly user: string | undefined;
  readonly database: string | undefined;
  readonly password: SecretSource | undefined;
  readonly ssl: {
    readonly mode: SslMode;
    /** Names of PEM files; `system`: the authorities that Node.js trusts. */
    readonly rootCert: string | undefined;
    readonly cert: string | undefined;
    readonly key: string | undefined;
  };
  readonly applicationName: string;
  /** Settings of the session, as `-c name=value`. */
  readonly sessionOptions: string | undefined;
  /** Handed on to the library. */
  readonly options: PostgresOptions;
  /** In its plain form, with *** for secrets. */
  readonly url: string;
  readonly origin: OpenStore['origin'];
}

const form = 'postgres://user@host:5432/database';
const defaultPort = 5432;

const table = {
  user: { read: word },
  password: {
    read: secretSource({ name: 'PGPASSWORD', path: '/run/secrets/postgres' }),
    show: showSource,
    isSecret: true,
  },
  host: { read: word },
  sslmode: { read: sslMode },
  sslrootcert: { read: word },
  sslcert: { read: word },
  sslkey: { read: word },
  application_name: { read: word },
  options: { read: word },
  channel_binding: { read: channelBinding },
  table: { read: tableName },
  listen: { read: flag },
  age: { read: choice('on', 'off') },
  'clock-step': { read: duration },
} satisfies Readonly<Record<string, Parameter<unknown>>>;

type Values = ValuesOf<typeof table>;

export const postgresParameters: readonly string[] = Object.keys(table);

/**
 * @param env for parts that the URL leaves out: PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE,
 * PGSSLMODE, PGSSLROOTCERT, PGSSLCERT, PGSSLKEY, PGAPPNAME and PGOPTIONS, as libpq has it
 * @throws CommandError that names the part that cannot be used; never with any secret
 */
export function parsePostgresUrl(
  text: string,
  origin: '--store' | 'INCUMBENT_STORE',
  env: Environment,
): PostgresLocation {
  const refuse = refuser('PostgreSQL', origin, form);
  const parts = splitUrl(text, refuse);
  const { values, shown } = readQuery(table, parts.query, refuse);
  if (parts.user !== undefined && values.user !== undefined) {
    refuse('has two users: one in front of the host and one as a parameter');
  }
  if (parts.password !== undefined && values.password !== undefined) {
    refuse('has two passwords: one in front of the host and one as a parameter');
  }
  const hosts = hostsOf(parts.authority, values, env, refuse);
  const { user = values.user?.[0] ?? (env['PGUSER'] || undefined) } = parts;
  const { path: database = env['PGDATABASE'] || undefined } = parts;
  const ssl = sslOf(values, env, refuse);
  const place = `${values.host === undefined ? hosts.map(showHost).join(',') : ''}`;
  const shownPath = database === undefined ? '' : `/${encodeURIComponent(database)}`;
  return {
    hosts,
    user,
    database,
    password: passwordOf(parts.password, values, env),
    ssl,
    applicationName: values.application_name?.[0] ?? (env['PGAPPNAME'] || 'incumbent'),
    sessionOptions: values.options?.[0] ?? (env['PGOPTIONS'] || undefined),
    options: optionsOf(values, refuse),
    url:
      `postgres://${showUser({ user: parts.user ?? (values.user ? undefined : user), password: parts.password })}` +
      `${place}${shownPath}${shown === '' ? '' : `?${shown}`}`,
    origin,
  };
}

function hostsOf(
  authority: string,
  values: Values,
  env: Environment,
  refuse: Refuse,
): readonly Host[] {
  const port = portOf(env);
  // `%2Fvar%2Frun%2Fpostgresql`, which libpq takes for a directory of sockets.
  if (/^%2f/i.test(authority)) {
    refuse('has a directory for a host: write postgres:///database?host=/var/run/postgresql');
  }
  const named = values.host?.[0];
  if (named !== undefined) {
    if (authority !== '') refuse('has two hosts: one behind "//" and one as a parameter');
    if (named.startsWith('/')) return [{ host: named, port }];
    const hosts = readHosts(named, port, refuse);
    return hosts.length > 0 ? hosts : refuse('has the parameter host without a host');
  }
  const hosts = readHosts(authority, port, refuse);
  if (hosts.length > 0) return hosts;
  const host = env['PGHOST'] || 'localhost';
  if (host.startsWith('/')) return [{ host, port }];
  return host.split(',').map((each) => ({ host: each, port }));
}

function portOf(env: Environment): number {
  const port = Number(env['PGPORT'] || defaultPort);
  return Number.isInteger(port) && port > 0 && port <= 65_535 ? port : defaultPort;
}

function passwordOf(
  password: string | undefined,
  values: Values,
  env: Environment,
): SecretSource | undefined {
  if (password !== undefined) return { kind: 'literal', text: password };
  const source = values.password?.[0];
  if (source !== undefined) return source;
  // Without one the driver looks into the file that PGPASSFILE names, or ~/.pgpass.
  return env['PGPASSWORD'] ? { kind: 'env', name: 'PGPASSWORD' } : undefined;
}

function sslOf(values: Values, env: Environment, refuse: Refuse): PostgresLocation['ssl'] {
  const refuseVariable: Refuse = (why) =>
    refuse(`is to go by the variable PGSSLMODE, which ${why}`);
  const inEnv = env['PGSSLMODE'] ? sslMode(env['PGSSLMODE'], refuseVariable) : undefined;
  const rootCert = values.sslrootcert?.[0] ?? (env['PGSSLROOTCERT'] || undefined);
  const cert = values.sslcert?.[0] ?? (env['PGSSLCERT'] || undefined);
  const key = values.sslkey?.[0] ?? (env['PGSSLKEY'] || undefined);
  if ((cert === undefined) !== (key === undefined)) {
    refuse('has one of sslcert and sslkey (PGSSLCERT, PGSSLKEY); they belong together');
  }
  const mode = values.sslmode?.[0] ?? inEnv ?? 'prefer';
  const inVain = (['sslrootcert', 'sslcert', 'sslkey'] as const).find((name) => values[name]);
  if (mode === 'disable' && inVain !== undefined) {
    refuse(`has the parameter ${inVain}, which is for TLS, and sslmode=disable`);
  }
  return { mode, rootCert, cert, key };
}

function sslMode(text: string, refuse: Refuse): SslMode {
  // node-postgres knows `require` without verification by this name.
  if (text === 'no-verify') return 'require';
  return choice('disable', 'prefer', 'require', 'verify-ca', 'verify-full')(text, refuse);
}

/** Part of the URLs that some hosters hand out; the driver uses it whenever it can. */
function channelBinding(text: string, refuse: Refuse): string {
  if (text === 'require') refuse('is disable or prefer: this client cannot insist on it');
  return choice('disable', 'prefer')(text, refuse);
}

function tableName(text: string, refuse: Refuse): string {
  // As the library has it.
  const isOne = /^(?:[a-z_][a-z0-9_$]{0,62}\.)?[a-z_][a-z0-9_$]{0,62}$/i.test(text);
  return isOne
    ? text
    : refuse(`is a table such as incumbent_election or app.election, not ${quote(text)}`);
}

/** `host:port` of each. */
export function hostWords({ hosts }: PostgresLocation): string {
  return hosts
    .map((each) =>
      each.host.startsWith('/') ? `${each.host}/.s.PGSQL.${each.port}` : showHost(each),
    )
    .join(', ');
}

/** For psql: where it connects, without secrets. */
export function showTarget({ hosts, database }: PostgresLocation): string {
  const [first] = hosts;
  const at = first === undefined ? '' : `-h ${first.host} -p ${first.port} `;
  return `${at}-d ${database ?? 'DATABASE'}`;
}

function optionsOf(values: Values, refuse: Refuse): PostgresOptions {
  if (values.age?.[0] === 'off' && values['clock-step'] !== undefined) {
    refuse('has the parameter clock-step, which means nothing with age=off');
  }
  return {
    ...given('table', values.table?.[0]),
    ...given('listen', values.listen?.[0]),
    ...given('age', values.age?.[0]),
    ...given('clockStep', values['clock-step']?.[0]),
  };
}
