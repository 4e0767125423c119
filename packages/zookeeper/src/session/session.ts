/**
 * A session: what outlives connections. `session-machine.ts` says what it is, and what is to be done when something
 * happens; here that is done, on a socket and by a clock.
 *
 * At most one socket exists at any time: on another server the old connection of a session would go on answering reads
 * from an older view.
 */
import { formatHost } from '../connection-string.ts';
import type { Tally } from '../counters.ts';
import { publish } from '../diagnostics.ts';
import type { ErrorContext } from '../errors.ts';
import { AuthError, ClosedError, RequestTimeoutError, sessionExpired } from '../errors.ts';
import type { Address } from '../net/connection.ts';
import { Connection } from '../net/connection.ts';
import { onAbort } from '../on-abort.ts';
import type { ConnectResponse } from '../protocol/connect.ts';
import { errorCodes, watcherTypes } from '../protocol/constants.ts';
import { requests } from '../protocol/requests.ts';
import type { ExportedSession, SessionInfo, State, StateChange } from '../state.ts';
import type { AuthWaiter } from './authenticator.ts';
import { Authenticator } from './authenticator.ts';
import type { Credentials } from './handshake.ts';
import { writeConnectRequest, writePing, writeSetWatches } from './handshake.ts';
import type { Pulse } from './heartbeat.ts';
import { Heartbeat, maxTimerMs } from './heartbeat.ts';
import { Hosts } from './hosts.ts';
import type { Recipients } from './inbound.ts';
import { Inbound } from './inbound.ts';
import { PendingRequest } from './pending-request.ts';
import { Pipeline } from './pipeline.ts';
import { findReadWriteServer } from './read-write-search.ts';
import { exchangeSasl } from './sasl-exchange.ts';
import type { AttemptOutcome, SearchTarget } from './server-search.ts';
import { ServerSearch } from './server-search.ts';
import {
  firstSessionAt,
  hasWatches,
  isFinal,
  isGranted,
  isIntroduced,
  isTrying,
  nextSessionAt,
} from './session-machine.ts';
import type { SessionOptions } from './session-options.ts';
import type { SessionAt, SessionEffect, SessionEvent } from './session-states.ts';
import { sessionTiming } from './timing.ts';
import { View } from './view.ts';
import type { WatchType } from './watch-registry.ts';
import { WatchRegistry } from './watch-registry.ts';

/** A connection that lived shorter counts as a failed attempt: a server that drops us is no help. */
const shortLivedMs = 1_000;
const noPassword = new Uint8Array(16);

/** Of the present connection. */
interface Attempt {
  readonly server: string;
  readonly startMs: number;
}

/** The client of a session. */
export interface SessionOwner {
  /** For diagnostics. */
  readonly number: number;
  readonly tally: Tally;
  readonly onState: (change: StateChange) => void;
}

export class Session {
  readonly #options: SessionOptions;
  readonly #number: number;
  readonly #tally: Tally;
  readonly #onState: (change: StateChange) => void;
  readonly #search: ServerSearch;
  readonly #auth: Authenticator;
  readonly #heartbeat: Heartbeat;
  readonly #view: View;
  readonly #inbound: Inbound;
  readonly pipeline: Pipeline;
  readonly watches: WatchRegistry;

  #at: SessionAt;
  /** Asked at every reply. */
  #isGranted = false;
  #hasWatches = false;
  /** What has happened and was not acted on yet. */
  readonly #events: SessionEvent[] = [];
  #isActing = false;
  /** Calls that wait until what is over is buried. */
  readonly #held: (readonly [PendingRequest, unknown])[] = [];
  /** What listeners were told last. */
  #told: State = 'connecting';

  #id = 0n;
  #password: Uint8Array = noPassword;
  #server = '';
  #isReadOnly = false;

  /** The connection in use, or being tried. */
  #connection: Connection | undefined;
  /** When the handshake of this connection was sent. */
  #greetedMs: number = Number.NEGATIVE_INFINITY;
  #attempt: Attempt | undefined;
  /** A session that its server has granted, before it is ours. */
  #offer: ConnectResponse | undefined;
  /** When this connection was ready for requests; never: not yet. */
  #readyAtMs: number = Number.POSITIVE_INFINITY;
  #lastError: Error | undefined;
  #readWriteSearch: AbortController | undefined;
  #closing: Promise<void> | undefined;
  #onClosed: (() => void) | undefined;

  constructor(
    options: SessionOptions,
    credentials: readonly Credentials[],
    { number, tally, onState }: SessionOwner,
  ) {
    const { session: exported, clock, chroot } = options;
    this.#options = options;
    this.#auth = new Authenticator(credentials);
    this.#number = number;
    this.#tally = tally;
    this.#onState = onState;
    this.#at = firstSessionAt(exported === undefined ? 'none' : 'known');
    this.#view = new View(exported?.lastZxid ?? 0n);
    this.pipeline = new Pipeline(options, tally, (deadlineMs) =>
      this.#heartbeat.scheduleBy(deadlineMs),
    );
    // What is asked for may be granted or not. Until then nothing waits shorter or longer than is usual.
    const usualMs = Math.min(Math.max(options.sessionTimeoutMs, 1_000), 60_000);
    const timing = sessionTiming(exported?.timeoutMs ?? usualMs);
    this.#heartbeat = new Heartbeat(clock, this.pipeline, timing, this.#pulse());
    this.watches = new WatchRegistry(
      (path) => chroot.toUser(path),
      (path, type) => this.removeFromServer(path, type),
    );
    this.#inbound = new Inbound(this.#recipients());
    if (exported !== undefined) {
      this.#id = exported.id;
      this.#password = exported.password;
      // Nobody knows when its server last heard of it; from now on we do.
      this.pipeline.confirmedMs = clock.monotonicMs();
    }
    const hosts = new Hosts(options.hosts, options.random);
    this.#search = new ServerSearch(hosts, clock, options.random, this.#searchTarget());
    void this.#search.run(); // never rejects
  }

  // What can be seen -------------------------------------------------------------------------------

  get state(): State {
    // Judged where it is used: after a stall the timer may not have run yet.
    this.#heartbeat.expireIfHopeless();
    if (this.#isOverNext) return 'expired';
    return this.#at.at === 'serving' && this.#heartbeat.isOverdue ? 'suspended' : this.#told;
  }

  /** The state that was told last, and that the next change begins from. */
  get toldState(): State {
    this.#heartbeat.expireIfHopeless();
    return this.#isOverNext ? 'expired' : this.#told;
  }

  /** Its end is known, and waits for its turn: who asks meanwhile is told of it already. */
  get #isOverNext(): boolean {
    if (this.#events.length === 0 || this.#id === 0n || isFinal(this.#at)) return false;
    return this.#events.some(({ on }) => on === 'over');
  }

  get info(): SessionInfo | undefined {
    if (this.#id === 0n || this.#isOverNext) return undefined;
    return {
      id: this.#id,
      timeoutMs: this.#heartbeat.timing.timeoutMs,
      server: this.#server,
      readOnly: this.#isReadOnly,
    };
  }

  get lastZxid(): bigint {
    return this.#view.lastZxid;
  }

  /** The bound of a call that tries again after a lost connection: twice that of one request. */
  get retryTimeoutMs(): number {
    return Math.min(2 * this.#options.requestTimeoutMs, maxTimerMs);
  }

  get setWatches2(): boolean {
    return this.#options.setWatches2;
  }

  get removeWatches(): boolean {
    return this.#options.removeWatches;
  }

  get lastError(): Error | undefined {
    return this.#lastError;
  }

  /** Undefined before there is a session. */
  export(): ExportedSession | undefined {
    if (this.#id === 0n || this.#isOverNext) return undefined;
    return {
      id: this.#id,
      password: Uint8Array.from(this.#password),
      timeoutMs: this.#heartbeat.timing.timeoutMs,
      lastZxid: this.#view.lastZxid,
    };
  }

  // What can be asked ------------------------------------------------------------------------------

  /** What a call fails with at once, if the client takes no more. */
  refusal({ operation, path }: ErrorContext): Error | undefined {
    if (this.#closing === undefined && !isFinal(this.#at)) return undefined;
    const context = { operation, path };
    return this.#at.at === 'refused' ? authError(context) : new ClosedError(context);
  }

  submit(request: PendingRequest, body: unknown): void {
    // It belongs to the next session.
    if (this.#isOverNext) this.#held.push([request, body]);
    else this.pipeline.submit(request, body);
  }

  #submitHeld(): void {
    for (const [request, body] of this.#held.splice(0)) this.pipeline.submit(request, body);
  }

  /**
   * Authenticates now, and on every connection from now on.
   * @param boundMs rejects after it, and with the reason of `signal`; the credentials are kept
   */
  addAuth(
    credentials: Credentials,
    boundMs: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const timeoutMs = boundMs ?? this.#options.requestTimeoutMs;
      const settle = (act: () => void) => {
        timer.cancel();
        stopListening();
        this.#auth.forget(waiter);
        act();
      };
      const waiter: AuthWaiter = {
        resolve: () => settle(resolve),
        reject: (error) => settle(() => reject(error)),
      };
      const timer = this.#options.clock.setTimer(
        () => waiter.reject(new RequestTimeoutError(timeoutMs, false, { operation: 'auth' })),
        timeoutMs,
      );
      const stopListening = onAbort(signal, () => waiter.reject(signal?.reason));
      this.#auth.add(credentials, waiter);
      if (this.#at.at === 'serving' && this.#connection !== undefined) {
        this.pipeline.writeHandshake((writer) => this.#auth.writeUnsent(writer));
      }
    });
  }

  /** Nobody needs these watches of a path any more: the server need not tell of them. */
  removeFromServer(path: string, type: WatchType): void {
    // A connection that has not been told of our watches will not be told of this one.
    if (this.refusal({}) !== undefined || !isIntroduced(this.#at)) return;
    if (!this.#options.removeWatches || this.#connection === undefined) return;
    // Reads that were sent before it have registered their watches by now, and lose them with it;
    // none that was sent after it is answered yet.
    const removed = () => this.watches.lose(path, type);
    const request = new PendingRequest(
      { kind: requests.removeWatches, complete: removed, noWatcher: removed },
      undefined,
      () => {},
      () => {}, // watches go with the connection, and come back with the next
    );
    // Without a bound: a reply that nobody takes would leave dead watches behind.
    request.hasOwnTimer = true;
    request.cleansUp = true;
    this.submit(request, { path, type: watcherTypes[type] });
  }

  /**
   * Ends the session on the server, and the client in any case within `closeTimeoutMs`. A session that is merely
   * suspended is closed too if a server can be reached in time: else its ephemeral nodes would stay until it expires.
   * @param keepSession true leaves the session to whoever attaches to it
   */
  close(keepSession: boolean): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    const { clock, closeTimeoutMs } = this.#options;
    // Both before anything happens: a listener that is told of the end may close the client again.
    const timer = clock.setTimer(() => this.#happen({ on: 'waited-enough' }), closeTimeoutMs);
    this.#closing = new Promise((resolve) => {
      this.#onClosed = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#happen({ on: 'close-asked', keepSession });
    return this.#closing;
  }

  // The machine ------------------------------------------------------------------------------------

  /** Acts on what has happened: after what is being acted on already, for listeners make things happen, too. */
  #happen(event: SessionEvent): void {
    this.#act(() => this.#events.push(event));
  }

  #act(first: () => void): void {
    if (this.#isActing) {
      first();
      return;
    }
    this.#isActing = true;
    let failure: { readonly error: unknown } | undefined;
    try {
      first();
      for (let event = this.#events.shift(); event !== undefined; event = this.#events.shift()) {
        const usesSasl = this.#options.sasl !== undefined;
        const { next, effects } = nextSessionAt(this.#at, event, usesSasl);
        this.#at = next;
        this.#isGranted = isGranted(next);
        this.#hasWatches = hasWatches(next);
        for (const effect of effects) {
          // What follows is done all the same: a client must not be left half closed.
          try {
            this.#carryOut(effect);
          } catch (error) {
            failure ??= { error };
          }
        }
      }
      this.#submitHeld();
    } finally {
      this.#isActing = false;
    }
    if (failure !== undefined) throw failure.error;
  }

  #carryOut(effect: SessionEffect): void {
    switch (effect.do) {
      case 'greet':
        this.#greet(effect.attaches, effect.doubts);
        break;
      case 'introduce':
        this.#introduce();
        break;
      case 'let-reads-ride':
        this.pipeline.rideAlong();
        break;
      case 'adopt':
        this.#adopt();
        break;
      case 'start-sasl':
        this.#startSasl();
        break;
      case 'ask-sync':
        this.#askSync();
        break;
      case 'forget-view':
        this.#forgetView(effect.zxid);
        break;
      case 'catch-up':
        this.#readyAtMs = this.#options.clock.monotonicMs();
        if (effect.gap !== undefined) this.watches.gap(effect.gap);
        // Those added since the handshake was written.
        this.pipeline.writeHandshake((writer) => this.#auth.writeUnsent(writer));
        break;
      case 'tell':
        this.#tell(effect.state, effect.error);
        break;
      case 'open':
        this.pipeline.open();
        break;
      case 'send-close':
        this.#sendClose();
        break;
      case 'search-read-write':
        this.#searchReadWrite();
        break;
      case 'drop':
        if (effect.isDone === true) this.#connection?.end();
        else this.#connection?.destroy(effect.error);
        break;
      case 'forget-session':
        this.#id = 0n;
        this.#password = noPassword;
        this.#tally.expirations += 1;
        break;
      case 'bury':
        this.pipeline.failAll((context) => sessionExpired({ ...context, cause: effect.error }));
        this.watches.expire();
        this.#submitHeld();
        break;
      case 'finish':
        this.#finish();
        break;
      case 'hurry':
        this.#search.hurry();
        break;
      case 'go-on':
        this.#events.push(effect.event);
        break;
    }
  }

  #greet(attaches: boolean, doubts: boolean): void {
    this.#greetedMs = this.pipeline.writeHandshake((writer) =>
      writeConnectRequest(writer, {
        protocolVersion: 0,
        lastZxidSeen: doubts ? 0n : this.#view.lastZxid,
        timeoutMs: this.#options.sessionTimeoutMs,
        sessionId: attaches ? this.#id : 0n,
        password: attaches ? this.#password : noPassword,
        readOnly: this.#options.readOnly,
      }),
    ).monotonicMs;
  }

  #introduce(): void {
    let watches = 0;
    this.pipeline.writeHandshake((writer) => {
      this.#auth.writeAll(writer);
      const { maxRequestBytes } = this.#options;
      const lists = this.watches.lists();
      watches = writeSetWatches(writer, this.#view.watchZxid, lists, maxRequestBytes);
    });
    this.#happen({ on: 'introduced', taken: this.#auth.isAnswered, watches });
  }

  #adopt(): void {
    const response = this.#offer;
    if (response === undefined || this.#attempt === undefined) return;
    const { server, startMs } = this.#attempt;
    this.#id = response.sessionId;
    this.#password = response.password ?? noPassword;
    this.#heartbeat.timing = sessionTiming(response.timeoutMs);
    this.#server = server;
    this.#isReadOnly = response.readOnly;
    this.pipeline.confirmedMs = this.#greetedMs;
    this.#tally.connects += 1;
    publish('incumbent:zookeeper:connected', this.#number, {
      server,
      elapsedMs: this.#options.clock.monotonicMs() - startMs,
      sessionId: this.#id,
    });
    this.#heartbeat.schedule();
  }

  #startSasl(): void {
    const { sasl } = this.#options;
    if (sasl === undefined) return;
    const connection = this.#connection;
    exchangeSasl(
      this.pipeline,
      sasl,
      () => this.#happen({ on: 'sasl-done' }),
      (error) => {
        if (error instanceof AuthError) this.#refuse();
        else connection?.destroy(error as Error);
      },
    );
  }

  #askSync(): void {
    const connection = this.#connection;
    const request = new PendingRequest(
      {
        kind: requests.sync,
        complete: (_, { zxid }) => {
          const behind = zxid < this.#view.lastZxid;
          this.#happen({ on: 'synced', behind, zxid });
        },
      },
      undefined,
      () => {},
      (error) => connection?.destroy(error as Error),
    );
    this.pipeline.sendInHandshake(request, { path: '/' });
  }

  #forgetView(zxid: bigint): void {
    publish('incumbent:zookeeper:trouble', this.#number, {
      what: 'the servers have lost what was seen; starting from what they have',
      error: new Error(`the quorum is at transaction ${zxid}, ${this.#view.lastZxid} was seen`),
    });
    this.#view.forget(zxid);
  }

  #refuse(): void {
    this.#happen({ on: 'credentials-refused', error: authError({ operation: 'auth' }) });
  }

  #tell(state: State, error: Error | undefined): void {
    const previous = this.#told;
    this.#told = state;
    const change: StateChange = {
      state,
      previous,
      atMs: this.#options.clock.monotonicMs(),
      session: this.info,
      error,
    };
    publish('incumbent:zookeeper:state', this.#number, change);
    this.#onState(change);
  }

  #sendClose(): void {
    this.pipeline.open();
    const request = new PendingRequest(
      {
        kind: requests.closeSession,
        complete: () => this.#happen({ on: 'close-answered' }),
        // The connection was lost first: the next one is to close it, if there is still time.
        failed: () => this.#happen({ on: 'close-failed' }),
      },
      undefined,
      () => {},
      () => {},
    );
    request.cleansUp = true;
    this.pipeline.submit(request, {});
  }

  #searchReadWrite(): void {
    const stop = new AbortController();
    this.#readWriteSearch = stop;
    const connection = this.#connection;
    void findReadWriteServer(this.#options, this.#heartbeat.timing, stop.signal).then((found) => {
      if (found) connection?.destroy(new Error('a server with a quorum was found'));
    }); // never rejects
  }

  #finish(): void {
    const isClosed = this.#at.at === 'closed';
    this.#submitHeld();
    this.pipeline.failAll((context) => (isClosed ? new ClosedError(context) : authError(context)));
    const context = { operation: 'auth' };
    this.#auth.rejectAll(isClosed ? new ClosedError(context) : authError(context));
    this.watches.close();
    this.#heartbeat.stop();
    if (isClosed) this.#onClosed?.();
  }

  // The search for a server ------------------------------------------------------------------------

  #searchTarget(): SearchTarget {
    const session = this;
    const { clock } = this.#options;
    return {
      get timing() {
        return session.#heartbeat.timing;
      },
      get leftMs() {
        return session.#heartbeat.expiryDueMs - clock.monotonicMs();
      },
      get lastServer() {
        return session.#server;
      },
      wantsServer: () => {
        this.#heartbeat.expireIfOverdue();
        // Only then: a listener that was just told of the expiry may have closed the client.
        return !isFinal(this.#at);
      },
      attach: (address, boundMs) => this.#attach(address, boundMs),
      onRoundFailed: (allShutUsOut) => {
        const { timeoutMs } = this.#heartbeat.timing;
        const shutOut = allShutUsOut && this.#view.lastZxid !== 0n;
        const nowMs = clock.monotonicMs();
        this.#happen({ on: 'round-failed', shutOut, nowMs, timeoutMs });
      },
      onUnresolved: (error) => {
        this.#lastError = error;
        publish('incumbent:zookeeper:trouble', this.#number, { what: 'resolving a host', error });
      },
    };
  }

  #pulse(): Pulse {
    const session = this;
    return {
      get isFinal() {
        return isFinal(session.#at);
      },
      get hasSession() {
        return session.#id !== 0n;
      },
      get hasConnection() {
        return session.#connection !== undefined;
      },
      get isGranted() {
        return session.#isGranted;
      },
      get isTrying() {
        return isTrying(session.#at);
      },
      ping: () => {
        this.#tally.pings += 1;
        this.#heartbeat.pingSentMs = this.pipeline.writeHandshake(writePing).monotonicMs;
      },
      giveUp: (why) => this.#connection?.destroy(new Error(why)),
      expire: (why) => this.#happen({ on: 'over', error: new Error(why) }),
    };
  }

  #recipients(): Recipients {
    const session = this;
    return {
      ...{ number: this.#number, tally: this.#tally, auth: this.#auth, view: this.#view },
      ...{ heartbeat: this.#heartbeat, pipeline: this.pipeline, watches: this.watches },
      get isGranted() {
        return session.#isGranted;
      },
      get isIntroduced() {
        return isIntroduced(session.#at);
      },
      get hasWatches() {
        return session.#hasWatches;
      },
      happen: (event) => this.#happen(event),
      offer: (response) => {
        this.#offer = response;
        const isOurs = response.sessionId === this.#id;
        this.#happen({ on: 'granted', readOnly: response.readOnly, isOurs });
      },
      refuse: () => this.#refuse(),
    };
  }

  /** Tries one server. Resolves when its connection has ended. */
  #attach(address: Address, boundMs: number): Promise<AttemptOutcome> {
    const { clock, tls, maxFrameBytes } = this.#options;
    const server = formatHost(address);
    const startMs = clock.monotonicMs();
    this.#tally.attempts += 1;
    publish('incumbent:zookeeper:attempt', this.#number, { server });
    if (isFinal(this.#at)) return Promise.resolve('failed');
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
      this.#happen({ on: 'opening' });
      try {
        const connection: Connection = new Connection(
          address,
          { tls, maxFrameBytes },
          {
            onOpen: () => {
              isOpen = true;
              this.pipeline.attach(connection);
              this.#happen({ on: 'opened' });
            },
            onReceive: (bytes) => {
              hasAnswered = true;
              this.#heartbeat.lastReceivedMs = clock.monotonicMs();
              this.#tally.bytesReceived += bytes;
            },
            onFrame: (bytes, start, end) => this.#inbound.take(bytes, start, end, server),
            onDrain: () => this.pipeline.resume(),
            onClose,
          },
        );
        this.#connection = connection;
      } catch (error) {
        onClose(error as Error);
        return;
      }
      this.#heartbeat.beginAttempt(startMs + boundMs);
    });
  }

  /** First nothing more can be sent there, then listeners are called: they may make calls. */
  #onClose(server: string, error: Error | undefined): void {
    this.#act(() => {
      const cause = error ?? new Error(`${server} closed the connection`);
      this.#connection = undefined;
      this.#offer = undefined;
      this.#readyAtMs = Number.POSITIVE_INFINITY;
      this.#lastError = cause;
      this.#readWriteSearch?.abort();
      this.#heartbeat.endConnection();
      this.#auth.onDisconnect();
      // Who waits for a lost call goes on after this, and finds the state that explains it.
      this.pipeline.detach(cause);
      this.#events.push({ on: 'disconnected', error: cause });
      publish('incumbent:zookeeper:disconnected', this.#number, { server, error });
    });
    this.#heartbeat.schedule();
  }
}

function authError(context: ErrorContext): AuthError {
  return new AuthError(
    'AUTH_FAILED',
    `${context.operation ?? 'zookeeper'}: the server refuses the credentials`,
    { ...context, serverCode: errorCodes.authFailed },
  );
}

function isReset(error: Error & { readonly code?: string }): boolean {
  return error.code === 'ECONNRESET' || error.code === 'EPIPE';
}
