/** Our connections to PostgreSQL: few, bounded, and to the primary where there are several servers. */
import { userInfo } from 'node:os';
import type { ClientBase, ClientConfig, Pool } from 'pg';
import type { StoreNeeds } from '../context.ts';
import { CommandError, exitCodes } from '../failure.ts';
import { UnusableStoreError } from '../unusable.ts';
import type { Host } from '../url/parts.ts';
import { codeOf, endWithin, isNetworkError, reach, reasonOf, unreachable } from '../url/reach.ts';
import type { Machine } from '../url/secrets.ts';
import { lineOf } from '../url/secrets.ts';
import type { Verification } from './tls.ts';
import { readPostgresTls } from './tls.ts';
import type { PostgresLocation } from './url.ts';
import { hostWords } from './url.ts';

/** One for notifications, one for renewals, one for all other queries. */
const poolSize = 3;
/** Longer than candidates wait between two looks. */
const idleMs = 60_000;
const closeTimeoutMs = 500;
/** A connection that takes longer than this is given up, even when more time is left. */
const longestConnectMs = 10_000;

export interface PostgresConnections {
  readonly pool: Pool;
  readonly location: PostgresLocation;
  /** Undefined: without TLS. */
  readonly verification: Verification | undefined;
  close(): Promise<void>;
}

/** @throws CommandError, UnusableStoreError that names host and reason */
export async function connectPostgres(
  location: PostgresLocation,
  needs: StoreNeeds,
  machine: Machine,
): Promise<PostgresConnections> {
  const [{ default: pg }, tls, password] = await Promise.all([
    import('pg'),
    readPostgresTls(location, machine),
    passwordOf(location, machine),
  ]);
  let isTls = tls !== undefined;
  const open = (): Pool => {
    const hosts = new Hosts(location.hosts);
    // The pool waits for the result, although its types do not say so.
    const insist = (client: ClientBase): unknown => hosts.insistOnPrimary(client);
    const pool = new pg.Pool({
      user: location.user ?? userInfo().username,
      ...(location.database === undefined ? {} : { database: location.database }),
      ...(password === undefined ? {} : { password }),
      ssl: isTls && tls !== undefined ? tls.options : false,
      application_name: location.applicationName,
      ...(location.sessionOptions === undefined ? {} : { options: location.sessionOptions }),
      enableChannelBinding: true,
      keepAlive: true,
      max: poolSize,
      connectionTimeoutMillis: Math.min(needs.timeoutMs, longestConnectMs),
      idleTimeoutMillis: idleMs,
      Client: clientOn(hosts, pg.Client),
      ...(hosts.areSeveral ? { onConnect: insist } : {}),
    });
    // A query that fails rejects for its caller. A connection that breaks while idle needs no
    // report.
    pool.on('error', () => {});
    pool.on('connect', (client) => client.on('error', () => {}));
    return pool;
  };
  let pool = open();
  const known = { url: location.url, origin: location.origin };
  const attempt = async () => {
    // Every server is asked. A server that has no TLS is asked once more without it.
    for (let left = location.hosts.length; ; left -= 1) {
      try {
        await pool.query('select 1');
        return;
      } catch (error) {
        if (isTls && location.ssl.mode === 'prefer' && hasNoTls(error)) {
          isTls = false;
          await endWithin(closeTimeoutMs, () => pool.end());
          pool = open();
          left = location.hosts.length + 1;
        } else if (left <= 1) throw error;
      }
    }
  };
  try {
    await reach(needs, attempt, mayPass);
  } catch (error) {
    await endWithin(closeTimeoutMs, () => pool.end());
    needs.signal.throwIfAborted();
    if (error instanceof CommandError) throw error;
    throw (
      refused(error, location) ?? unreachable(nameOf(location), error, needs, known, hintOf(error))
    );
  }
  const opened = pool;
  return {
    pool: opened,
    location,
    verification: isTls ? tls?.verification : undefined,
    close: () => endWithin(closeTimeoutMs, () => opened.end()),
  };
}

/** Servers of which one is the primary: whichever was the last known to be, or the next. */
class Hosts {
  readonly #hosts: readonly Host[];
  readonly #placed = new WeakMap<ClientBase, Host>();
  #at = 0;

  constructor(hosts: readonly Host[]) {
    this.#hosts = hosts;
  }

  get areSeveral(): boolean {
    return this.#hosts.length > 1;
  }

  get current(): Host {
    return this.#hosts[this.#at % this.#hosts.length] as Host;
  }

  /** The next connection goes to another server, unless another caller has moved on already. */
  leave(host: Host): void {
    if (host === this.current) this.#at += 1;
  }

  /** Rejects for a standby: then the pool gives the connection up. */
  async insistOnPrimary(client: ClientBase): Promise<void> {
    const { rows } = await client.query('select pg_is_in_recovery() as standby');
    if (rows[0]?.standby !== true) return;
    this.leave(this.placeOf(client));
    throw new Error('none of the servers is the primary: those that answer are standbys');
  }

  placeOf(client: ClientBase): Host {
    return this.#placed.get(client) ?? this.current;
  }

  place(client: ClientBase): void {
    this.#placed.set(client, this.current);
  }
}

/** A client that connects to the current one of several servers. */
function clientOn(hosts: Hosts, Base: typeof ClientBase): new () => ClientBase {
  return class extends Base {
    constructor(config?: string | ClientConfig) {
      const { current } = hosts;
      const given = typeof config === 'string' ? {} : config;
      super({ ...given, ...secretsOf(given), host: current.host, port: current.port });
      hosts.place(this);
      this.on('error', () => hosts.leave(current));
    }

    override connect(callback?: unknown): Promise<ClientBase> {
      // The pool waits by a callback, and an attempt that failed is not an event.
      const done = callback as (error: Error | null, client?: ClientBase) => void;
      super.connect((error: Error | null, client?: ClientBase) => {
        if (error) hosts.leave(hosts.placeOf(this));
        done(error, client);
      });
      return Promise.resolve(this);
    }
  };
}

/** The pool hides what is secret from being copied. */
function secretsOf(config: ClientConfig | undefined): ClientConfig {
  const password = config?.password;
  return password === undefined ? {} : { password };
}

/** Read anew for every connection: passwords in files are replaced. */
async function passwordOf(
  { password, origin }: PostgresLocation,
  machine: Machine,
): Promise<string | (() => Promise<string>) | undefined> {
  if (password === undefined) return undefined;
  const read = () => lineOf(password, `password of ${origin}`, machine);
  const text = await read();
  return password.kind === 'file' ? read : text;
}

function hasNoTls(error: unknown): boolean {
  return /does not support SSL/i.test(reasonOf(error));
}

/** It is starting, stopping, or has no connection to spare. */
function mayPass(error: unknown): boolean {
  return (
    isNetworkError(error) ||
    /^(?:57P0|53|08)/.test(codeOf(error)) ||
    /timeout|terminated|standbys/i.test(reasonOf(error))
  );
}

/** Translates a refusal of the server. */
function refused(error: unknown, location: PostgresLocation): CommandError | undefined {
  const code = codeOf(error);
  const known = { url: location.url, origin: location.origin };
  const said = reasonOf(error);
  if (/^28/.test(code) || /SASL|password must be a string|no password/i.test(said)) {
    return new UnusableStoreError(
      'AUTH_FAILED',
      `${nameOf(location)} does not take our credentials (${said}): look at PGPASSWORD, PGPASSFILE, ` +
        'and at user and password of the URL',
      known,
      { cause: error },
    );
  }
  if (code !== '3D000') return undefined;
  return new CommandError(
    'NO_DATABASE',
    exitCodes.storeUnavailable,
    `${nameOf(location)} says: ${said}; name one that exists, as in postgres://host/database`,
    { cause: error },
  );
}

function hintOf(error: unknown): string {
  if (hasNoTls(error)) return '; without TLS, if that is meant: sslmode=disable';
  if (/CERT|certificate|ALTNAME/i.test(`${codeOf(error)} ${reasonOf(error)}`)) {
    return '; sslrootcert (PGSSLROOTCERT) names whom to trust';
  }
  return '';
}

export function nameOf(location: PostgresLocation): string {
  return `PostgreSQL at ${hostWords(location)}`;
}
