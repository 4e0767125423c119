import { checkCount, checkOptions, checkTimeout, describe, namesOf } from './arguments.ts';
import type { Clock } from './clock.ts';
import { systemClock } from './clock.ts';
import type { ConnectionString } from './connection-string.ts';
import { parseConnectionString, parseDuration } from './connection-string.ts';
import { InvalidArgumentError } from './errors.ts';
import { checkTls } from './net/secure-context.ts';
import type { TlsOptions } from './net/tls-options.ts';
import { Chroot } from './paths.ts';
import { defaultMaxFrameBytes } from './protocol/constants.ts';
import type { Credentials } from './session/handshake.ts';
import type { SessionOptions } from './session/session-options.ts';
import type { ExportedSession } from './state.ts';

/**
 * Options of `createClient` and `connect`. Every duration is a number of milliseconds, and its name
 * ends in `Ms`. Names of limits on bytes or counts begin with `max`.
 */
export interface ClientOptions {
  /**
   * The session timeout to ask for, in ms. Default: the `timeout` of the connection string, or 10
   * s. The server keeps it within its limits, by default 2 to 20 of its ticks (4 to 40 s).
   */
  readonly sessionTimeoutMs?: number | undefined;
  /**
   * @deprecated Use `sessionTimeoutMs`. This one, in ms or as "10s", still works. It emits one
   *   warning in a process, with the code INCUMBENT_ZK_SESSION_TIMEOUT.
   */
  readonly sessionTimeout?: number | string | undefined;
  /** How long `connect` waits for a session, in ms (default: the session timeout). */
  readonly connectTimeoutMs?: number | undefined;
  /** How long a call waits for its reply, in ms (default: the session timeout). */
  readonly requestTimeoutMs?: number | undefined;
  /** How long `close` waits for the server, in ms (default 800). */
  readonly closeTimeoutMs?: number | undefined;
  /**
   * Credentials for every connection, sent before anything else:
   * `{scheme: 'digest', credentials: 'joe:secret'}`.
   */
  readonly auth?:
    | readonly { readonly scheme: string; readonly credentials: string | Uint8Array }[]
    | undefined;
  /** Authenticate with SASL DIGEST-MD5. */
  readonly sasl?: { readonly username: string; readonly password: string } | undefined;
  /** TLS options; only with `zks://`. */
  readonly tls?: TlsOptions | undefined;
  /**
   * Accept servers that have no quorum. The state is then `read-only`, and writes are refused.
   * Meanwhile the client looks for a server with a quorum. Default false.
   */
  readonly readOnly?: boolean | undefined;
  /** A session of another client to attach to; see `exportSession`. */
  readonly session?: ExportedSession | undefined;
  /** How many calls may wait to be sent (default 100,000). More reject with QueueFullError. */
  readonly maxQueuedRequests?: number | undefined;
  /**
   * How many bytes of requests may wait to be sent (default 64 MiB). More reject with
   * QueueFullError.
   */
  readonly maxQueuedBytes?: number | undefined;
  /**
   * How many requests may be sent and unanswered. More of them wait. Default 1,000, a server's own
   * default limit.
   */
  readonly maxInFlight?: number | undefined;
  /**
   * The longest request, in bytes. Set it together with the server's `jute.maxbuffer`. Default
   * 1,048,575.
   */
  readonly maxRequestBytes?: number | undefined;
  /**
   * The longest reply, in bytes. A longer one ends the connection. Default 16 MiB. Pings are
   * answered behind a reply, so the session timeout must be longer than the longest reply takes to
   * arrive.
   */
  readonly maxReplyBytes?: number | undefined;
  /**
   * For older servers. `'3.4'`: creates give no Stat, and persistent watches do not exist. `'3.5'`:
   * no persistent watches. Default: servers of 3.6 and later.
   */
  readonly compatibility?: '3.4' | '3.5' | undefined;
  /**
   * A source of time, for tests, such as `SimulatedClock` of `incumbent/testing`. Default: the
   * machine's clocks.
   */
  readonly clock?: Clock | undefined;
}

const clientOptions = namesOf<ClientOptions>({
  ...{ sessionTimeoutMs: true, connectTimeoutMs: true, requestTimeoutMs: true },
  ...{ closeTimeoutMs: true, auth: true, sasl: true, tls: true, readOnly: true, session: true },
  ...{ maxQueuedRequests: true, maxQueuedBytes: true, maxInFlight: true, maxRequestBytes: true },
  ...{ maxReplyBytes: true, compatibility: true, clock: true, sessionTimeout: true },
});
export const connectOptions: readonly string[] = [...clientOptions, 'signal'];
const saslOptions = namesOf<{ username: string; password: string }>({
  ...{ username: true, password: true },
});
const authOptions = namesOf<{ scheme: string; credentials: string }>({
  ...{ scheme: true, credentials: true },
});

export interface ResolvedOptions {
  readonly session: SessionOptions;
  readonly credentials: readonly Credentials[];
  readonly connectTimeoutMs: number;
  readonly compatibility: '3.4' | '3.5' | undefined;
}

/** @throws InvalidArgumentError that names the option, its value and the rule */
export function resolveOptions(url: string, options: ClientOptions): ResolvedOptions {
  const target = parseConnectionString(url);
  checkOptions('a client', options, clientOptions);
  if (options.tls !== undefined && !target.tls) {
    throw new InvalidArgumentError('the option tls needs a connection string with zks://');
  }
  const sessionTimeoutMs = sessionTimeout(target, options);
  const timeout = (name: 'connectTimeoutMs' | 'requestTimeoutMs' | 'closeTimeoutMs', or: number) =>
    checkTimeout(name, options[name] ?? or);
  const { compatibility } = options;
  if (compatibility !== undefined && compatibility !== '3.4' && compatibility !== '3.5') {
    throw new InvalidArgumentError(
      `compatibility is '3.4', '3.5' or absent, not ${describe(compatibility)}`,
    );
  }
  return {
    session: {
      hosts: target.hosts,
      sessionTimeoutMs,
      closeTimeoutMs: timeout('closeTimeoutMs', 800),
      requestTimeoutMs: timeout('requestTimeoutMs', sessionTimeoutMs),
      tls: target.tls ? checkTls(options.tls ?? {}) : undefined,
      sasl: checkSasl(options.sasl),
      readOnly: options.readOnly ?? false,
      session: checkSession(options.session),
      setWatches2: compatibility === undefined,
      removeWatches: compatibility !== '3.4',
      maxQueuedRequests: checkCount('maxQueuedRequests', options.maxQueuedRequests ?? 100_000, 0),
      maxQueuedBytes: checkCount('maxQueuedBytes', options.maxQueuedBytes ?? 64 * 1024 * 1024, 0),
      maxInFlight: checkCount('maxInFlight', options.maxInFlight ?? 1_000),
      maxRequestBytes: checkCount(
        'maxRequestBytes',
        options.maxRequestBytes ?? defaultMaxFrameBytes,
      ),
      maxFrameBytes: checkCount('maxReplyBytes', options.maxReplyBytes ?? 16 * 1024 * 1024),
      chroot: new Chroot(target.chroot),
      clock: options.clock ?? systemClock,
      random: Math.random,
    },
    credentials: checkAuth(options.auth ?? []),
    connectTimeoutMs: timeout('connectTimeoutMs', sessionTimeoutMs),
    compatibility,
  };
}

function checkAuth(auth: NonNullable<ClientOptions['auth']>): readonly Credentials[] {
  if (!Array.isArray(auth)) {
    throw new InvalidArgumentError(
      `auth is a list such as [{scheme: 'digest', credentials: 'joe:secret'}], not ${describe(auth)}`,
    );
  }
  return auth.map((one) => {
    checkOptions('auth', one ?? null, authOptions);
    return toCredentials(one.scheme, one.credentials);
  });
}

export function toCredentials(scheme: string, credentials: string | Uint8Array): Credentials {
  if (typeof scheme !== 'string' || scheme === '') {
    throw new InvalidArgumentError(`a scheme is a name such as "digest", not ${describe(scheme)}`);
  }
  if (typeof credentials === 'string') return { scheme, credentials: Buffer.from(credentials) };
  if (credentials instanceof Uint8Array) return { scheme, credentials };
  throw new InvalidArgumentError(
    `credentials are a string or a Uint8Array, not ${describe(credentials)}`,
  );
}

function sessionTimeout(target: ConnectionString, options: ClientOptions): number {
  const { sessionTimeoutMs, sessionTimeout: former } = options;
  if (former === undefined) {
    return Math.round(
      checkSessionTimeout(
        'sessionTimeoutMs',
        sessionTimeoutMs ?? target.sessionTimeoutMs ?? 10_000,
      ),
    );
  }
  if (sessionTimeoutMs !== undefined) {
    throw new InvalidArgumentError(
      'sessionTimeout is the former name of sessionTimeoutMs: give one of them',
    );
  }
  const ms = typeof former === 'string' ? (parseDuration(former) ?? former) : former;
  const checked = Math.round(checkSessionTimeout('sessionTimeout', ms));
  warnOfSessionTimeout(checked);
  return checked;
}

function checkSessionTimeout(name: string, ms: number | string): number {
  if (typeof ms !== 'number' || !Number.isFinite(ms) || ms < 1 || ms > 2 ** 31 - 1) {
    const parsed = typeof ms === 'string' ? parseDuration(ms) : undefined;
    throw new InvalidArgumentError(
      `${name}, the session timeout, is a number of 1 to 2^31 - 1 ms, not ${describe(ms)}` +
        (parsed === undefined
          ? ''
          : `; write ${parsed}, or ?timeout=${ms} in the connection string`),
    );
  }
  return ms;
}

let warned = false;

/** Warns once in a process. */
function warnOfSessionTimeout(ms: number): void {
  if (warned) return;
  warned = true;
  process.emitWarning(
    `the option sessionTimeout of @incumbent/zookeeper is now sessionTimeoutMs, in ms: write sessionTimeoutMs: ${ms}`,
    { type: 'DeprecationWarning', code: 'INCUMBENT_ZK_SESSION_TIMEOUT' },
  );
}

function checkSasl(sasl: ClientOptions['sasl']): SessionOptions['sasl'] {
  if (sasl === undefined) return undefined;
  checkOptions('sasl', sasl ?? null, saslOptions);
  if (typeof sasl.username !== 'string' || typeof sasl.password !== 'string') {
    throw new InvalidArgumentError('sasl is {username, password}, both strings');
  }
  return sasl;
}

function checkSession(session: ExportedSession | undefined): ExportedSession | undefined {
  if (session === undefined) return undefined;
  const { id, password, timeoutMs, lastZxid } = session;
  if (
    typeof id !== 'bigint' ||
    id === 0n ||
    !(password instanceof Uint8Array) ||
    password.length !== 16 ||
    BigInt.asIntN(64, id) !== id ||
    typeof lastZxid !== 'bigint' ||
    BigInt.asIntN(64, lastZxid) !== lastZxid ||
    !(timeoutMs > 0 && timeoutMs < 2 ** 31)
  ) {
    throw new InvalidArgumentError(
      'session is what exportSession() gave: id, password, timeoutMs, lastZxid',
    );
  }
  return session;
}
