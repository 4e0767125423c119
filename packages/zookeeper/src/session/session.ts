/**
 * A session: what outlives connections. Finds a server, attaches, notices when one has gone silent,
 * moves on to the next, and counts by its own clock when the session must have expired.
 *
 *     connecting ──► connected ──► suspended ──► connected (same session)
 *                        ▲              │
 *                        └── expired ◄──┘        (then a new session)
 *
 * At most one socket exists at any time: on another server the old connection of a session would go
 * on answering reads from an older view.
 */
import type { Clock, Timer } from '../clock.ts';
import type { HostAndPort } from '../connection-string.ts';
import { formatHost } from '../connection-string.ts';
import type { Tally } from '../counters.ts';
import { isWatched, publish } from '../diagnostics.ts';
import type { ErrorContext } from '../errors.ts';
import {
  AuthError,
  ClosedError,
  ProtocolError,
  RequestTimeoutError,
  sessionExpired,
} from '../errors.ts';
import type { Address, ConnectionHandlers } from '../net/connection.ts';
import { Connection } from '../net/connection.ts';
import type { CheckedTls } from '../net/tls-options.ts';
import { onAbort } from '../on-abort.ts';
import type { Chroot } from '../paths.ts';
import { connectResponse } from '../protocol/connect.ts';
import { errorCodes, eventTypes, watcherTypes, xids } from '../protocol/constants.ts';
import { JuteReader } from '../protocol/jute.ts';
import { replyHeader, watcherEvent } from '../protocol/messages.ts';
import { requests } from '../protocol/requests.ts';
import type { ExportedSession, SessionInfo, State, StateChange } from '../state.ts';
import type { AuthWaiter } from './authenticator.ts';
import { Authenticator } from './authenticator.ts';
import type { Credentials } from './handshake.ts';
import { writeConnectRequest, writePing, writeSetWatches } from './handshake.ts';
import { Hosts } from './hosts.ts';
import { PendingRequest } from './pending-request.ts';
import type { PipelineLimits } from './pipeline.ts';
import { Pipeline } from './pipeline.ts';
import { findReadWriteServer } from './read-write-search.ts';
import { exchangeSasl } from './sasl-exchange.ts';
import type { AttemptOutcome, SearchTarget } from './server-search.ts';
import { ServerSearch } from './server-search.ts';
import type { SessionTiming } from './timing.ts';
import { sessionTiming } from './timing.ts';
import type { RawEventType, WatchType } from './watch-registry.ts';
import { WatchRegistry } from './watch-registry.ts';

export interface SessionOptions extends PipelineLimits {
  readonly hosts: readonly HostAndPort[];
  readonly sessionTimeoutMs: number;
  readonly closeTimeoutMs: number;
  readonly maxFrameBytes: number;
  readonly tls: CheckedTls | undefined;
  readonly sasl: { readonly username: string; readonly password: string } | undefined;
  readonly readOnly: boolean;
  readonly session: ExportedSession | undefined;
  /** False for servers before 3.6. */
  readonly setWatches2: boolean;
  /** False for servers before 3.5: they close the connection on it. */
  readonly removeWatches: boolean;
  readonly chroot: Chroot;
  readonly clock: Clock;
  readonly random: () => number;
}

/** A connection that lived shorter counts as a failed attempt: a server that drops us is no help. */
const shortLivedMs = 1_000;
const noPassword = new Uint8Array(16);

export class Session {
  readonly #options: SessionOptions;
  readonly #number: number;
  readonly #tally: Tally;
  readonly #onState: (change: StateChange) => void;
  readonly #search: ServerSearch;
  readonly #auth: Authenticator;
  readonly pipeline: Pipeline;
  readonly watches: WatchRegistry;

  #state: State = 'connecting';
  #timing: SessionTiming;
  #id = 0n;
  #password: Uint8Array = noPassword;
  #lastZxid = 0n;
  /**
   * What the watches have been told of. Behind `#lastZxid` until all packets of a SetWatches are
   * answered: if the connection ends between two of them, the reply to the first must not hide a
   * change from the watches of the second.
   */
  #watchZxid = 0n;
  #server = '';
  #attachedReadOnly = false;
  /** A server with a quorum knows the session. Until then its id means nothing elsewhere. */
  #seenReadWrite = false;

  /** The connection in use, or being tried. */
  #connection: Connection | undefined;
  /** Set until the whole handshake is over, with SASL and the answers to authentication. */
  #attemptDeadlineMs: number = Number.POSITIVE_INFINITY;
  #handshakeDone = false;
  /** When this connection was ready for requests; never: not yet. */
  #readyAtMs: number = Number.POSITIVE_INFINITY;
  #lastReceivedMs: number = Number.NEGATIVE_INFINITY;
  #pingSentMs: number | undefined;
  /** This connection was told who we are and what we watch. */
  #introduced = false;
  /** The handshake is over but for the answers to its authentication. */
  #awaitsAuths = false;
  #unansweredSetWatches = 0;
  /** This connection has all our watches. */
  #watchesRestored = false;
  #lastError: Error | undefined;
  /** Since when, in an expired session, every attempt of every round was shut out. */
  #shutOutSinceMs: number | undefined;
  /** The next round asks without saying what we have seen. */
  #doubtsView = false;
  #readWriteSearch: AbortController | undefined;

  #timer: Timer | undefined;
  #timerAtMs: number = Number.POSITIVE_INFINITY;
  #closing: Promise<void> | undefined;
  #reader: JuteReader | undefined;
  #readerBytes: Uint8Array | undefined;

  constructor(
    options: SessionOptions,
    credentials: readonly Credentials[],
    number: number,
    tally: Tally,
    onState: (change: StateChange) => void,
  ) {
    this.#options = options;
    this.#auth = new Authenticator(credentials);
    this.#number = number;
    this.#tally = tally;
    this.#onState = onState;
    // What is asked for may be granted or not. Until then nothing waits shorter or longer than is usual.
    const usualMs = Math.min(Math.max(options.sessionTimeoutMs, 1_000), 60_000);
    this.#timing = sessionTiming(usualMs);
    this.pipeline = new Pipeline(options, options.clock, tally, (deadlineMs) => {
      if (deadlineMs < this.#timerAtMs) this.#setTimer(deadlineMs);
    });
    this.watches = new WatchRegistry(
      (path) => options.chroot.toUser(path),
      (path, type) => this.removeFromServer(path, type),
    );
    if (options.session !== undefined) {
      this.#id = options.session.id;
      this.#password = options.session.password;
      this.#lastZxid = options.session.lastZxid;
      this.#watchZxid = this.#lastZxid;
      this.#timing = sessionTiming(options.session.timeoutMs);
      this.#seenReadWrite = true;
      // Nobody knows when its server last heard of it; from now on we do.
      this.pipeline.confirmedMs = options.clock.monotonicMs();
    }
    const hosts = new Hosts(options.hosts, options.random);
    this.#search = new ServerSearch(hosts, options.clock, options.random, this.#searchTarget());
    void this.#search.run(); // never rejects
  }

  // What can be seen -------------------------------------------------------------------------------

  get state(): State {
    // Judged where it is used: after a stall the timer may not have run yet.
    this.#expireIfHopeless();
    return this.#isOpen() && this.#isOverdue() ? 'suspended' : this.#state;
  }

  /** The state that was told last, and that the next change begins from. */
  get toldState(): State {
    this.#expireIfHopeless();
    return this.#state;
  }

  get info(): SessionInfo | undefined {
    if (this.#id === 0n) return undefined;
    return {
      id: this.#id,
      timeoutMs: this.#timing.timeoutMs,
      server: this.#server,
      readOnly: this.#attachedReadOnly,
    };
  }

  get lastZxid(): bigint {
    return this.#lastZxid;
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
    if (this.#id === 0n) return undefined;
    return {
      id: this.#id,
      password: Uint8Array.from(this.#password),
      timeoutMs: this.#timing.timeoutMs,
      lastZxid: this.#lastZxid,
    };
  }

  /** What a call fails with at once, if the client takes no more. */
  refusal({ operation, path }: ErrorContext): Error | undefined {
    if (this.#closing === undefined && !this.#isFinal()) return undefined;
    const context = { operation, path };
    return this.#state === 'auth-failed' ? this.#authError(context) : new ClosedError(context);
  }

  submit(request: PendingRequest, body: unknown): void {
    this.pipeline.submit(request, body);
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
      if (this.#isOpen()) this.pipeline.writeHandshake((writer) => this.#auth.writeUnsent(writer));
    });
  }

  /**
   * Ends the session on the server, and the client in any case within `closeTimeoutMs`.
   * @param keepSession true leaves the session to whoever attaches to it
   */
  close(keepSession: boolean): Promise<void> {
    this.#closing ??= this.#close(keepSession);
    return this.#closing;
  }

  // The search for a server ------------------------------------------------------------------------

  #searchTarget(): SearchTarget {
    const session = this;
    return {
      get timing() {
        return session.#timing;
      },
      get leftMs() {
        return session.#expiryDueMs() - session.#options.clock.monotonicMs();
      },
      get lastServer() {
        return session.#server;
      },
      wantsServer: () => {
        this.#expireIfOverdue();
        // Only then: a listener that was just told of the expiry may have closed the client.
        return !this.#isFinal();
      },
      attach: (address, boundMs) => this.#attach(address, boundMs),
      onRoundFailed: (allShutUsOut) => this.#doubtViewIfHopeless(allShutUsOut),
      onUnresolved: (error) => {
        this.#lastError = error;
        publish('incumbent:zookeeper:trouble', this.#number, { what: 'resolving a host', error });
      },
    };
  }

  /** Tries one server. Resolves when its connection has ended. */
  #attach(address: Address, boundMs: number): Promise<AttemptOutcome> {
    const { clock } = this.#options;
    const server = formatHost(address);
    const startMs = clock.monotonicMs();
    this.#tally.attempts += 1;
    publish('incumbent:zookeeper:attempt', this.#number, { server });
    if (this.#isFinal()) return Promise.resolve('failed');
    return new Promise((resolve) => {
      let opened = false;
      let answered = false;
      let connection: Connection;
      const handlers: ConnectionHandlers = {
        onOpen: () => {
          opened = true;
          this.#handshake(connection);
        },
        onReceive: (bytes) => {
          answered = true;
          this.#lastReceivedMs = clock.monotonicMs();
          this.#tally.bytesReceived += bytes;
        },
        onFrame: (bytes, start, end) => {
          if (this.#handshakeDone) this.#onFrame(bytes, start, end);
          else this.#onConnectResponse(bytes, start, end, server, startMs);
        },
        onDrain: () => this.pipeline.resume(),
        onClose: (error) => {
          const nowMs = clock.monotonicMs();
          const served = nowMs - this.#readyAtMs >= shortLivedMs;
          const closedOnUs = error === undefined || isReset(error);
          this.#onDisconnect(server, error);
          if (served) resolve('served');
          else if (opened && closedOnUs) resolve(answered ? 'dropped' : 'shut-out');
          else resolve('failed');
        },
      };
      const { tls, maxFrameBytes } = this.#options;
      try {
        connection = new Connection(address, { tls, maxFrameBytes }, handlers);
      } catch (error) {
        handlers.onClose(error as Error);
        return;
      }
      this.#connection = connection;
      this.#attemptDeadlineMs = startMs + boundMs;
      this.#schedule();
    });
  }

  #handshake(connection: Connection): void {
    const { pipeline } = this;
    pipeline.attach(connection);
    this.#attachSentMs = pipeline.writeHandshake((writer) => {
      const attaches = this.#id !== 0n && this.#seenReadWrite;
      writeConnectRequest(writer, {
        protocolVersion: 0,
        lastZxidSeen: this.#doubtsView ? 0n : this.#lastZxid,
        timeoutMs: this.#options.sessionTimeoutMs,
        sessionId: attaches ? this.#id : 0n,
        password: attaches ? this.#password : noPassword,
        readOnly: this.#options.readOnly,
      });
    }).monotonicMs;
    // These take round trips of their own, and everything else must come after them.
    if (this.#options.sasl !== undefined || this.#doubtsView) return;
    this.#introduce();
    pipeline.rideAlong();
  }
  /** When the ConnectRequest of the present connection was sent. */
  #attachSentMs: number = Number.NEGATIVE_INFINITY;

  /** Who we are and what we watch, in front of all requests. */
  #introduce(): void {
    this.#introduced = true;
    this.pipeline.writeHandshake((writer) => {
      this.#auth.writeAll(writer);
      const lists = this.watches.lists();
      this.#unansweredSetWatches = writeSetWatches(
        writer,
        this.#watchZxid,
        lists,
        this.#options.maxRequestBytes,
      );
      this.#watchesRestored = this.#unansweredSetWatches === 0;
    });
  }

  #onConnectResponse(
    bytes: Uint8Array,
    start: number,
    end: number,
    server: string,
    startMs: number,
  ): void {
    const connection = this.#connection;
    const reader = new JuteReader(bytes, start, end);
    if (end - start === replyHeader.minBytes) {
      const header = replyHeader.read(reader);
      // A server on Netty may answer what stands behind the handshake before the handshake itself.
      if (header.xid === xids.auth && this.#introduced) {
        this.#onAuthReply(header.error);
        return;
      }
      // A read-only server of 3.8 without local sessions answers with a bare reply header.
      throw new ProtocolError('the server answers the handshake with an error: it is read-only');
    }
    const response = connectResponse.read(reader);
    reader.expectEnd('ConnectResponse');
    const attaching = this.#id !== 0n && this.#seenReadWrite;
    if (response.timeoutMs <= 0 || response.sessionId === 0n) {
      // A read-only server does not know the quorum's sessions: that says nothing about ours.
      if (response.readOnly || !attaching) {
        throw new ProtocolError('the server gives no session');
      }
      this.#expire(new Error(`${server} says that the session has expired`));
      return;
    }
    if (attaching && response.sessionId !== this.#id) {
      throw new ProtocolError('the server attached us to another session');
    }
    this.#id = response.sessionId;
    this.#password = response.password ?? noPassword;
    this.#timing = sessionTiming(response.timeoutMs);
    this.#server = server;
    this.#attachedReadOnly = response.readOnly;
    if (!response.readOnly) this.#seenReadWrite = true;
    this.pipeline.confirmedMs = this.#attachSentMs;
    this.#handshakeDone = true;
    this.#tally.connects += 1;
    publish('incumbent:zookeeper:connected', this.#number, {
      server,
      elapsedMs: this.#options.clock.monotonicMs() - startMs,
      sessionId: this.#id,
    });
    this.#schedule();
    // A subscriber may have ended the client, or found that the session has expired.
    if (connection !== this.#connection) return;
    if (this.#options.sasl === undefined) this.#goOn();
    else this.#authenticate(this.#options.sasl);
  }

  /** The handshake goes on behind what takes round trips of its own. */
  #goOn(): void {
    if (this.#doubtsView) {
      this.#settleDoubt();
      return;
    }
    if (!this.#introduced) this.#introduce();
    this.#readyWhenKnown();
  }

  #authenticate(user: { readonly username: string; readonly password: string }): void {
    const connection = this.#connection;
    exchangeSasl(
      this.pipeline,
      user,
      () => this.#goOn(),
      (error) => {
        if (error instanceof AuthError) this.#failAuth();
        else connection?.destroy(error as Error);
      },
    );
  }

  /**
   * Refused credentials are told within the same round trip, and before anything else is answered:
   * so `connected` means that they were taken.
   */
  #readyWhenKnown(): void {
    this.#awaitsAuths = !this.#auth.isAnswered;
    if (!this.#awaitsAuths) this.#ready();
  }

  #ready(): void {
    const connection = this.#connection;
    this.#attemptDeadlineMs = Number.POSITIVE_INFINITY;
    this.#readyAtMs = this.#options.clock.monotonicMs();
    // Before the events of this connection: what comes after a gap is told after the gap.
    const sameSession = this.#state === 'suspended';
    if (this.#state !== 'connecting') this.watches.gap(sameSession ? 'reconnected' : 'expired');
    // Those added since the handshake was written.
    this.pipeline.writeHandshake((writer) => this.#auth.writeUnsent(writer));
    this.#setState(this.#attachedReadOnly ? 'read-only' : 'connected', undefined);
    // A listener may have closed the client, or taken so long that the session expired.
    if (connection !== this.#connection) return;
    if (this.#closeSent === false) this.#sendClose();
    else this.pipeline.open();
    if (this.#attachedReadOnly) this.#searchReadWrite();
  }

  #onDisconnect(server: string, error: Error | undefined): void {
    const wasConnected = this.#handshakeDone;
    this.#connection = undefined;
    this.#handshakeDone = false;
    this.#introduced = false;
    this.#readyAtMs = Number.POSITIVE_INFINITY;
    this.#attemptDeadlineMs = Number.POSITIVE_INFINITY;
    this.#pingSentMs = undefined;
    this.#readWriteSearch?.abort();
    this.#lastError = error ?? new Error(`${server} closed the connection`);
    publish('incumbent:zookeeper:disconnected', this.#number, { server, error });
    this.#auth.onDisconnect();
    this.#awaitsAuths = false;
    this.#unansweredSetWatches = 0;
    this.#watchesRestored = false;
    // First nothing more can be sent there, then listeners are called: they may make calls. Who waits
    // for a lost call goes on after this, and finds the state that explains it.
    this.pipeline.detach(this.#lastError);
    if (wasConnected && this.#isOpen()) {
      this.#setState('suspended', this.#lastError);
    }
    this.#schedule();
  }

  /**
   * After a loss of the servers' data every server shuts us out, as if it lagged behind. Once the
   * session has expired, and for another timeout every server did nothing else, they are asked
   * without saying what we have seen.
   */
  #doubtViewIfHopeless(allShutUsOut: boolean): void {
    this.#doubtsView = false;
    if (this.#state !== 'expired' || !allShutUsOut || this.#lastZxid === 0n) {
      this.#shutOutSinceMs = undefined;
      return;
    }
    const nowMs = this.#options.clock.monotonicMs();
    this.#shutOutSinceMs ??= nowMs;
    this.#doubtsView = nowMs - this.#shutOutSinceMs >= this.#timing.timeoutMs;
  }

  /**
   * Servers that have lost their quorum shut out everybody, too. So one that takes us now says how
   * far its quorum has come: after a `sync` it has all that the leader has. Only if that is less than
   * what we have seen, it is forgotten.
   */
  #settleDoubt(): void {
    const connection = this.#connection;
    if (this.#attachedReadOnly) {
      throw new ProtocolError('a server without a quorum cannot say how far it has come');
    }
    const request = new PendingRequest(
      requests.sync,
      undefined,
      {
        complete: (_, { zxid }) => {
          if (zxid < this.#lastZxid) this.#forgetView(zxid);
          this.#doubtsView = false;
          this.#shutOutSinceMs = undefined;
          this.#goOn();
        },
      },
      () => {},
      (error) => connection?.destroy(error as Error),
    );
    this.pipeline.sendInHandshake(request, { path: '/' });
  }

  #forgetView(zxid: bigint): void {
    publish('incumbent:zookeeper:trouble', this.#number, {
      what: 'the servers have lost what was seen; starting from what they have',
      error: new Error(`the quorum is at transaction ${zxid}, ${this.#lastZxid} was seen`),
    });
    this.#lastZxid = zxid;
    this.#watchZxid = zxid;
  }

  #searchReadWrite(): void {
    const stop = new AbortController();
    this.#readWriteSearch = stop;
    const connection = this.#connection;
    void findReadWriteServer(this.#options, this.#timing, stop.signal).then((found) => {
      if (found) connection?.destroy(new Error('a server with a quorum was found'));
    }); // never rejects
  }

  // What arrives -----------------------------------------------------------------------------------

  #onFrame(bytes: Uint8Array, start: number, end: number): void {
    let reader = this.#reader;
    if (reader !== undefined && bytes === this.#readerBytes) {
      reader.seek(start, end);
    } else {
      reader = new JuteReader(bytes, start, end);
      this.#reader = reader;
      this.#readerBytes = bytes;
    }
    const xid = reader.int32();
    const zxid = reader.int64();
    const error = reader.int32();
    switch (xid) {
      case xids.notification:
        this.#onNotification(reader, zxid);
        return;
      case xids.ping:
        if (this.#pingSentMs === undefined) throw new ProtocolError('a ping was answered unasked');
        this.pipeline.confirmedMs = Math.max(this.pipeline.confirmedMs, this.#pingSentMs);
        this.#pingSentMs = undefined;
        this.#sawZxid(zxid);
        return;
      case xids.auth:
        this.#onAuthReply(error);
        return;
      case xids.setWatches:
        this.#onSetWatchesReply(error);
        this.#sawZxid(zxid);
        return;
      default: {
        // Nothing of a reply is believed before it is known to be one.
        this.pipeline.checkNext(xid);
        this.#sawZxid(zxid);
        if (isWatched('incumbent:zookeeper:reply')) this.#publishReply(error);
        this.pipeline.onReply(zxid, error, reader, this.#lastReceivedMs);
        if (error === errorCodes.sessionMoved) {
          throw new ProtocolError('the session has moved to another server');
        }
        if (error === errorCodes.sessionExpired || error === errorCodes.unknownSession) {
          this.#expire(new Error(`${this.#server} says that the session has expired`));
        }
      }
    }
  }

  #onNotification(reader: JuteReader, zxid: bigint): void {
    this.#tally.notifications += 1;
    const { type, path } = watcherEvent.read(reader);
    reader.expectEnd('notification');
    const name = eventNames.get(type);
    // Events about the session (type -1) say nothing that the connection does not.
    if (name === undefined) return;
    publish('incumbent:zookeeper:event', this.#number, { type: name, path });
    this.watches.dispatch({ type: name, path, zxid: zxid > 0n ? zxid : undefined });
  }

  #onAuthReply(error: number): void {
    if (error !== errorCodes.ok) {
      this.#failAuth();
      return;
    }
    if (!this.#auth.onTaken()) throw new ProtocolError('authentication was answered unasked');
    if (this.#awaitsAuths) this.#readyWhenKnown();
  }

  #onSetWatchesReply(error: number): void {
    if (this.#unansweredSetWatches === 0) throw new ProtocolError('watches were confirmed unasked');
    this.#unansweredSetWatches -= 1;
    this.#watchesRestored = this.#unansweredSetWatches === 0;
    if (error !== errorCodes.ok) {
      throw new ProtocolError(`the server refuses to restore watches: error ${error}`);
    }
  }

  /** Auth replies carry 0 and notifications -1: taking those would make watches miss changes. */
  #sawZxid(zxid: bigint): void {
    if (zxid > this.#lastZxid) this.#lastZxid = zxid;
    if (this.#watchesRestored) this.#watchZxid = this.#lastZxid;
  }

  #publishReply(error: number): void {
    const head = this.pipeline.oldest;
    if (head === undefined) return;
    publish('incumbent:zookeeper:reply', this.#number, {
      operation: head.operation,
      path: head.path,
      error,
      elapsedMs: this.#lastReceivedMs - head.sentAt.monotonicMs,
    });
  }

  // Time -------------------------------------------------------------------------------------------

  /** Sets the timer for whatever is due next. */
  #schedule(): void {
    if (this.#isFinal()) return;
    const nowMs = this.#options.clock.monotonicMs();
    let dueMs = this.pipeline.expireOverdue(nowMs);
    dueMs = Math.min(dueMs, this.#attemptDeadlineMs, this.#expiryDueMs());
    if (this.#handshakeDone) {
      dueMs = Math.min(dueMs, this.#silentDueMs());
      if (this.#pingSentMs === undefined) dueMs = Math.min(dueMs, this.#pingDueMs());
    }
    if (dueMs === Number.POSITIVE_INFINITY) this.#clearTimer();
    else this.#setTimer(dueMs);
  }

  #silentDueMs(): number {
    return this.#lastReceivedMs + this.#timing.silenceMs;
  }

  #pingDueMs(): number {
    return this.pipeline.lastSentMs + this.#timing.pingMs;
  }

  #expiryDueMs(): number {
    if (this.#id === 0n) return Number.POSITIVE_INFINITY;
    return this.pipeline.confirmedMs + this.#timing.expiryMs;
  }

  #onTimer(): void {
    const nowMs = this.#options.clock.monotonicMs();
    this.#expireIfHopeless();
    if (this.#isOverdue()) this.#expireAfterPendingInput();
    this.pipeline.expireOverdue(nowMs);
    if (this.#connection !== undefined && nowMs >= this.#attemptDeadlineMs) {
      this.#afterPendingInput(() => this.#options.clock.monotonicMs() >= this.#attemptDeadlineMs);
    } else if (this.#handshakeDone && nowMs >= this.#silentDueMs()) {
      this.#afterPendingInput(
        () => this.#handshakeDone && this.#options.clock.monotonicMs() >= this.#silentDueMs(),
      );
    } else if (
      this.#handshakeDone &&
      this.#pingSentMs === undefined &&
      nowMs >= this.#pingDueMs()
    ) {
      this.#tally.pings += 1;
      this.#pingSentMs = this.pipeline.writeHandshake(writePing).monotonicMs;
    }
    this.#schedule();
  }

  /** A process that stood still finds its timers due before it has read what waits in the socket. */
  #afterPendingInput(stillSilent: () => boolean): void {
    const connection = this.#connection;
    if (this.#checkPending || connection === undefined) return;
    this.#checkPending = true;
    setImmediate(() => {
      this.#checkPending = false;
      if (connection !== this.#connection || !stillSilent()) return;
      connection.destroy(new Error(`the server said nothing for ${this.#describeSilence()}`));
    });
  }
  #checkPending = false;

  #describeSilence(): string {
    const nowMs = this.#options.clock.monotonicMs();
    return this.#handshakeDone
      ? `${Math.round(nowMs - this.#lastReceivedMs)} ms`
      : 'the time of one attempt';
  }

  /** Overdue, and even an answer to the last thing that was sent would not change it. */
  #expireIfHopeless(): void {
    const { lastSentMs } = this.pipeline;
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#handshakeDone && nowMs < lastSentMs + this.#timing.expiryMs) return;
    this.#expireIfOverdue();
  }

  /** The answer to a ping may be among what waits, and count from later than what was read. */
  #expireAfterPendingInput(): void {
    if (this.#expiryCheckPending) return;
    this.#expiryCheckPending = true;
    setImmediate(() => {
      this.#expiryCheckPending = false;
      this.#expireIfOverdue();
      this.#schedule();
    });
  }
  #expiryCheckPending = false;

  #isOverdue(): boolean {
    return this.#options.clock.monotonicMs() >= this.#expiryDueMs();
  }

  #expireIfOverdue(): void {
    if (this.#isFinal() || !this.#isOverdue()) return;
    this.#expire(
      new Error(`no server has confirmed the session for ${Math.round(this.#timing.expiryMs)} ms`),
    );
  }

  /** The session is gone. Nothing of it may reach a server any more: its connection goes first. */
  #expire(error: Error): void {
    this.#id = 0n;
    this.#password = noPassword;
    this.#seenReadWrite = false;
    this.#tally.expirations += 1;
    this.#connection?.destroy(error);
    this.pipeline.failAll((context) => sessionExpired({ ...context, cause: error }));
    this.watches.expire();
    this.#onSessionClosed?.();
    // Last, for what listeners call belongs to the next session.
    if (this.#closing === undefined) this.#setState('expired', error);
    this.#search.hurry();
  }

  #setTimer(atMs: number): void {
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    const delayMs = Math.max(1, atMs - this.#options.clock.monotonicMs());
    this.#timer = this.#options.clock.setTimer(
      () => {
        this.#timer = undefined;
        this.#timerAtMs = Number.POSITIVE_INFINITY;
        this.#onTimer();
      },
      Math.min(delayMs, maxTimerMs),
    );
  }

  #clearTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAtMs = Number.POSITIVE_INFINITY;
  }

  // The end ----------------------------------------------------------------------------------------

  async #close(keepSession: boolean): Promise<void> {
    if (this.#isFinal()) {
      this.#end('closed', undefined);
      return;
    }
    // A session that is merely suspended is closed too if a server can be reached in time: else its
    // ephemeral nodes would stay until it expires.
    if (!keepSession && this.#id !== 0n) {
      const { clock, closeTimeoutMs } = this.#options;
      let timer: Timer | undefined;
      this.#closeSent = false;
      await new Promise<void>((resolve) => {
        this.#onSessionClosed = resolve;
        timer = clock.setTimer(resolve, closeTimeoutMs);
        // Not before the handshake is over: what waits would be sent without our credentials.
        if (this.#isOpen()) this.#sendClose();
      });
      timer?.cancel();
    }
    this.#end('closed', undefined);
  }
  /** Undefined: not closing. False: closing, and the request is still to be sent. */
  #closeSent: boolean | undefined;
  #onSessionClosed: (() => void) | undefined;

  #sendClose(): void {
    this.#closeSent = true;
    this.pipeline.open();
    const request = new PendingRequest(
      requests.closeSession,
      undefined,
      {
        complete: () => this.#onSessionClosed?.(),
        // The connection was lost first: the next one is to close it, if there is still time.
        failed: () => {
          this.#closeSent = false;
        },
      },
      () => {},
      () => {},
    );
    request.cleansUp = true;
    this.pipeline.submit(request, {});
  }

  #failAuth(): void {
    this.#end('auth-failed', this.#authError({ operation: 'auth' }));
  }

  #authError(context: ErrorContext): AuthError {
    return new AuthError(
      'AUTH_FAILED',
      `${context.operation ?? 'zookeeper'}: the server refuses the credentials`,
      { ...context, serverCode: errorCodes.authFailed },
    );
  }

  #end(state: 'closed' | 'auth-failed', error: Error | undefined): void {
    if (this.#state === 'closed') return;
    this.#setState(state, error);
    this.#readWriteSearch?.abort();
    if (this.#closeSent === true) this.#connection?.end();
    else this.#connection?.destroy(error);
    this.pipeline.failAll((context) =>
      state === 'closed' ? new ClosedError(context) : this.#authError(context),
    );
    this.#auth.rejectAll(error ?? new ClosedError({ operation: 'auth' }));
    this.watches.close();
    this.#onSessionClosed?.();
    this.#search.hurry();
    this.#clearTimer();
  }

  #isOpen(): boolean {
    return this.#state === 'connected' || this.#state === 'read-only';
  }

  #isFinal(): boolean {
    return this.#state === 'closed' || this.#state === 'auth-failed';
  }

  #setState(state: State, error: Error | undefined): void {
    const previous = this.#state;
    if (previous === state || previous === 'closed') return;
    if (previous === 'auth-failed' && state !== 'closed') return;
    this.#state = state;
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

  /** Nobody needs these watches of a path any more: the server need not tell of them. */
  removeFromServer(path: string, type: WatchType): void {
    // A connection that has not been told of our watches will not be told of this one.
    if (this.refusal({}) !== undefined || !this.#introduced || !this.#options.removeWatches) return;
    // Reads that were sent before it have registered their watches by now, and lose them with it;
    // none that was sent after it is answered yet.
    const removed = () => this.watches.lose(path, type);
    const request = new PendingRequest(
      requests.removeWatches,
      undefined,
      { complete: removed, noWatcher: removed },
      () => {},
      () => {}, // watches go with the connection, and come back with the next
    );
    // Without a bound: a reply that nobody takes would leave dead watches behind.
    request.hasOwnTimer = true;
    request.cleansUp = true;
    this.submit(request, { path, type: watcherTypes[type] });
  }
}

const maxTimerMs = 0x7fff_ffff;

const eventNames: ReadonlyMap<number, RawEventType> = new Map([
  [eventTypes.created, 'created'],
  [eventTypes.deleted, 'deleted'],
  [eventTypes.dataChanged, 'changed'],
  [eventTypes.childrenChanged, 'children-changed'],
]);

function isReset(error: Error & { readonly code?: string }): boolean {
  return error.code === 'ECONNRESET' || error.code === 'EPIPE';
}
