/**
 * Attaches a session to a server: makes its connection, and does the handshake before the server
 * serves requests.
 *
 * At most one socket exists at any time. Otherwise the session's old connection to another server
 * could go on answering reads from an older view.
 */
import { formatHost } from '../connection-string.ts';
import { publish } from '../diagnostics.ts';
import { AuthError, credentialsRefused } from '../errors.ts';
import type { Address } from '../net/connection.ts';
import { Connection } from '../net/connection.ts';
import type { ConnectResponse } from '../protocol/connect.ts';
import { requests } from '../protocol/requests.ts';
import { writeConnectRequest, writeSetWatches } from './handshake.ts';
import { Inbound } from './inbound.ts';
import { PendingRequest } from './pending-request.ts';
import { findReadWriteServer } from './read-write-search.ts';
import { exchangeSasl } from './sasl-exchange.ts';
import type { AttemptOutcome } from './server-search.ts';
import type { SessionParts } from './session-parts.ts';
import { sessionTiming } from './timing.ts';

/**
 * A connection that lived shorter counts as a failed attempt. A server that drops the connection is
 * of no use.
 */
const shortLivedMs = 1_000;

/** The attempt of the present connection. */
interface Attempt {
  readonly server: string;
  readonly startMs: number;
}

export class Attachment {
  readonly #parts: SessionParts;
  readonly #inbound: Inbound;
  /** The connection in use, or being tried. */
  #connection: Connection | undefined;
  /** When the handshake of this connection was sent. */
  #greetedMs: number = Number.NEGATIVE_INFINITY;
  #attempt: Attempt | undefined;
  /** A session that the server has granted, and that was not adopted yet. */
  #offer: ConnectResponse | undefined;
  /** When this connection was ready for requests; infinite before that. */
  #readyAtMs: number = Number.POSITIVE_INFINITY;
  #lastError: Error | undefined;
  #readWriteSearch: AbortController | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.#inbound = new Inbound(parts, (response) => {
      this.#offer = response;
      const isOurs = response.sessionId === parts.identity.id;
      parts.machine.happen({ on: 'granted', readOnly: response.readOnly, isOurs });
    });
  }

  get hasConnection(): boolean {
    return this.#connection !== undefined;
  }

  get lastError(): Error | undefined {
    return this.#lastError;
  }

  // From the attempt to the end ----------------------------------------------------------------------

  /** Tries one server. Resolves when its connection has ended. */
  attach(address: Address, boundMs: number): Promise<AttemptOutcome> {
    const { options, number, tally, machine, heartbeat, pipeline } = this.#parts;
    const { clock, tls, maxFrameBytes } = options;
    const server = formatHost(address);
    const startMs = clock.monotonicMs();
    tally.attempts += 1;
    publish('incumbent:zookeeper:attempt', number, { server });
    if (machine.isFinal) return Promise.resolve('failed');
    return new Promise((resolve) => {
      let isOpen = false;
      let hasAnswered = false;
      const onClose = (error: Error | undefined) => {
        const hasServed = clock.monotonicMs() - this.#readyAtMs >= shortLivedMs;
        this.#onClose(server, error);
        if (hasServed) resolve('served');
        else if (!isOpen || !(error === undefined || isReset(error))) resolve('failed');
        else resolve(hasAnswered ? 'dropped' : 'shut-out');
      };
      this.#attempt = { server, startMs };
      machine.happen({ on: 'opening' });
      try {
        const connection: Connection = new Connection(
          address,
          { tls, maxFrameBytes },
          {
            onOpen: () => {
              isOpen = true;
              pipeline.attach(connection);
              machine.happen({ on: 'opened' });
            },
            onReceive: (bytes) => {
              hasAnswered = true;
              heartbeat.lastReceivedMs = clock.monotonicMs();
              tally.bytesReceived += bytes;
            },
            onFrame: (bytes, start, end) => this.#inbound.take(bytes, start, end, server),
            onDrain: () => pipeline.resume(),
            onClose,
          },
        );
        this.#connection = connection;
      } catch (error) {
        onClose(error as Error);
        return;
      }
      heartbeat.beginAttempt(startMs + boundMs);
    });
  }

  /**
   * First makes sure that nothing more is sent on the connection, and then calls listeners, which
   * may make calls.
   */
  #onClose(server: string, error: Error | undefined): void {
    const { number, machine, heartbeat, auth, pipeline } = this.#parts;
    machine.act(() => {
      const cause = error ?? new Error(`${server} closed the connection`);
      this.#connection = undefined;
      this.#offer = undefined;
      this.#readyAtMs = Number.POSITIVE_INFINITY;
      this.#lastError = cause;
      this.#readWriteSearch?.abort();
      heartbeat.endConnection();
      auth.onDisconnect();
      // A caller that waited for a lost call goes on after this, and finds the state that explains
      // the loss.
      pipeline.detach(cause);
      machine.happen({ on: 'disconnected', error: cause });
      publish('incumbent:zookeeper:disconnected', number, { server, error });
    });
    heartbeat.schedule();
  }

  /** @param isDone nothing is left to send, so the connection need not be reset */
  drop(error: Error | undefined, isDone: boolean): void {
    if (isDone) this.#connection?.end();
    else this.#connection?.destroy(error);
  }

  /** Notes that a host could not be resolved. */
  failed(error: Error): void {
    this.#lastError = error;
  }

  // The handshake ---------------------------------------------------------------------------------

  greet(attaches: boolean, doubts: boolean): void {
    const { options, identity, pipeline, view } = this.#parts;
    this.#greetedMs = pipeline.writeHandshake((writer) =>
      writeConnectRequest(writer, {
        protocolVersion: 0,
        lastZxidSeen: doubts ? 0n : view.lastZxid,
        timeoutMs: options.sessionTimeoutMs,
        ...identity.claim(attaches),
        readOnly: options.readOnly,
      }),
    ).monotonicMs;
  }

  introduce(): void {
    const { options, machine, auth, pipeline, view, watches } = this.#parts;
    let packets = 0;
    pipeline.writeHandshake((writer) => {
      auth.writeAll(writer);
      const lists = watches.lists();
      packets = writeSetWatches(writer, view.watchZxid, lists, options.maxRequestBytes);
    });
    machine.happen({ on: 'introduced', taken: auth.isAnswered, watches: packets });
  }

  /** Adopts the session that the server has granted. */
  adopt(): void {
    if (this.#offer === undefined || this.#attempt === undefined) return;
    const { options, number, tally, identity, heartbeat, pipeline } = this.#parts;
    const { server, startMs } = this.#attempt;
    identity.adopt(this.#offer, server);
    heartbeat.timing = sessionTiming(this.#offer.timeoutMs);
    pipeline.confirmedMs = this.#greetedMs;
    tally.connects += 1;
    publish('incumbent:zookeeper:connected', number, {
      server,
      elapsedMs: options.clock.monotonicMs() - startMs,
      sessionId: identity.id,
    });
    heartbeat.schedule();
  }

  startSasl(): void {
    const { options, machine, pipeline } = this.#parts;
    if (options.sasl === undefined) return;
    const connection = this.#connection;
    exchangeSasl(
      pipeline,
      options.sasl,
      () => machine.happen({ on: 'sasl-done' }),
      (error) => {
        if (!(error instanceof AuthError)) connection?.destroy(error as Error);
        else {
          const refused = credentialsRefused({ operation: 'auth' });
          machine.happen({ on: 'credentials-refused', error: refused });
        }
      },
    );
  }

  askSync(): void {
    const { machine, pipeline, view } = this.#parts;
    const connection = this.#connection;
    const request = new PendingRequest(
      {
        kind: requests.sync,
        complete: (_, { zxid }) => {
          machine.happen({ on: 'synced', behind: zxid < view.lastZxid, zxid });
        },
      },
      undefined,
      () => {},
      (error) => connection?.destroy(error as Error),
    );
    pipeline.sendInHandshake(request, { path: '/' });
  }

  /** The handshake is over, so requests may follow. */
  ready(): void {
    this.#readyAtMs = this.#parts.options.clock.monotonicMs();
  }

  /** Leaves a server without a quorum as soon as another server has one. */
  searchReadWrite(): void {
    const { options, heartbeat } = this.#parts;
    const stop = new AbortController();
    this.#readWriteSearch = stop;
    const connection = this.#connection;
    void findReadWriteServer(options, heartbeat.timing, stop.signal).then((found) => {
      if (found) connection?.destroy(new Error('a server with a quorum was found'));
    }); // It never rejects.
  }
}

function isReset(error: Error & { readonly code?: string }): boolean {
  return error.code === 'ECONNRESET' || error.code === 'EPIPE';
}
