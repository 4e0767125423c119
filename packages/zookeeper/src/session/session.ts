/**
 * A session, which outlives connections. `session-machine.ts` decides which effects are due, and
 * this file carries them out.
 */
import type { Tally } from '../counters.ts';
import { publish } from '../diagnostics.ts';
import type { ErrorContext } from '../errors.ts';
import { ClosedError, credentialsRefused, sessionExpired } from '../errors.ts';
import { watcherTypes } from '../protocol/constants.ts';
import { requests } from '../protocol/requests.ts';
import type { ExportedSession, SessionInfo, State, StateChange } from '../state.ts';
import { Attachment } from './attachment.ts';
import { Authenticator } from './authenticator.ts';
import type { Credentials } from './handshake.ts';
import { writePing } from './handshake.ts';
import type { Pulse } from './heartbeat.ts';
import { Heartbeat, maxTimerMs } from './heartbeat.ts';
import { Hosts } from './hosts.ts';
import { PendingRequest } from './pending-request.ts';
import { Pipeline } from './pipeline.ts';
import type { SearchTarget } from './server-search.ts';
import { ServerSearch } from './server-search.ts';
import { SessionIdentity } from './session-identity.ts';
import { firstSessionAt } from './session-machine.ts';
import type { SessionOptions } from './session-options.ts';
import { SessionRunner } from './session-runner.ts';
import type { ShellEffect } from './session-states.ts';
import { sessionTiming } from './timing.ts';
import { View } from './view.ts';
import type { WatchType } from './watch-registry.ts';
import { WatchRegistry } from './watch-registry.ts';

/** The client that a session belongs to. */
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
  readonly #machine: SessionRunner;
  readonly #identity: SessionIdentity;
  readonly #auth: Authenticator;
  readonly #heartbeat: Heartbeat;
  readonly #view: View;
  readonly #attachment: Attachment;
  readonly #search: ServerSearch;
  readonly pipeline: Pipeline;
  readonly watches: WatchRegistry;
  /** The state that listeners have heard last. */
  #told: State = 'connecting';
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
    this.#identity = new SessionIdentity(exported);
    const first = firstSessionAt(exported === undefined ? 'none' : 'known');
    this.#machine = new SessionRunner(first, options.sasl !== undefined, {
      carryOut: (effect) => this.#carryOut(effect),
      acted: () => this.pipeline.release(),
    });
    this.#view = new View(exported?.lastZxid ?? 0n);
    this.pipeline = new Pipeline(options, tally, (deadlineMs) =>
      this.#heartbeat.scheduleBy(deadlineMs),
    );
    // The server may grant another timeout. Until then no wait is shorter or longer than usual.
    const usualMs = Math.min(Math.max(options.sessionTimeoutMs, 1_000), 60_000);
    const timing = sessionTiming(exported?.timeoutMs ?? usualMs);
    this.#heartbeat = new Heartbeat(clock, this.pipeline, timing, this.#pulse());
    this.watches = new WatchRegistry(
      (path) => chroot.toUser(path),
      (path, type) => this.removeFromServer(path, type),
    );
    // It is unknown when its server last heard of the session, so our own count begins now.
    if (exported !== undefined) this.pipeline.confirmedMs = clock.monotonicMs();
    this.#attachment = new Attachment({
      ...{ options, number, tally, machine: this.#machine, identity: this.#identity },
      ...{ auth: this.#auth, heartbeat: this.#heartbeat, pipeline: this.pipeline },
      ...{ view: this.#view, watches: this.watches },
    });
    const hosts = new Hosts(options.hosts, options.random);
    this.#search = new ServerSearch(hosts, clock, options.random, this.#searchTarget());
    void this.#search.run(); // It never rejects.
  }

  // The state -------------------------------------------------------------------------------------

  get state(): State {
    // Judged when it is read: after a stall the timer may not have run yet.
    this.#heartbeat.expireIfHopeless();
    if (this.#isOverNext) return 'expired';
    return this.#machine.at.at === 'serving' && this.#heartbeat.isOverdue
      ? 'suspended'
      : this.#told;
  }

  /**
   * The state that was told last, and that the next change begins from; `expired` if that is known
   * already.
   */
  get toldState(): State {
    this.#heartbeat.expireIfHopeless();
    return this.#isOverNext ? 'expired' : this.#told;
  }

  /**
   * The state that listeners have heard last. The next changes that they hear of follow from it.
   */
  get lastTold(): State {
    this.#heartbeat.expireIfHopeless();
    return this.#told;
  }

  /**
   * Whether the end of the session is known and waits for its turn. Callers that ask meanwhile hear
   * of it already.
   */
  get #isOverNext(): boolean {
    return this.#machine.isOverNext && this.#identity.isKnown;
  }

  get info(): SessionInfo | undefined {
    if (!this.#identity.isKnown || this.#isOverNext) return undefined;
    const { id, server, isReadOnly } = this.#identity;
    return { id, timeoutMs: this.#heartbeat.timing.timeoutMs, server, readOnly: isReadOnly };
  }

  get lastZxid(): bigint {
    return this.#view.lastZxid;
  }

  /** The limit of a call that tries again after a lost connection: twice that of one request. */
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
    return this.#attachment.lastError;
  }

  /** undefined before there is a session. */
  export(): ExportedSession | undefined {
    if (!this.#identity.isKnown || this.#isOverNext) return undefined;
    return {
      id: this.#identity.id,
      password: Uint8Array.from(this.#identity.password),
      timeoutMs: this.#heartbeat.timing.timeoutMs,
      lastZxid: this.#view.lastZxid,
    };
  }

  // Calls -----------------------------------------------------------------------------------------

  /** The error that a call fails with at once, if the client takes no more calls. */
  refusal({ operation, path }: ErrorContext): Error | undefined {
    if (this.#closing === undefined && !this.#machine.isFinal) return undefined;
    return this.#ended({ operation, path });
  }

  /** The error of calls after the end. */
  #ended(context: ErrorContext): Error {
    const isRefused = this.#machine.at.at === 'refused';
    return isRefused ? credentialsRefused(context) : new ClosedError(context);
  }

  submit(request: PendingRequest, body: unknown): void {
    // The call belongs to the next session.
    if (this.#isOverNext) this.pipeline.hold(request, body);
    else this.pipeline.submit(request, body);
  }

  /**
   * Authenticates now, and on every later connection.
   * @param boundMs rejects after it, and with the reason of `signal`; the credentials are kept
   */
  addAuth(
    credentials: Credentials,
    boundMs: number | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { clock, requestTimeoutMs } = this.#options;
    const timeoutMs = boundMs ?? requestTimeoutMs;
    return this.#auth.add(credentials, { clock, timeoutMs, signal }, () => {
      if (this.#machine.at.at === 'serving' && this.#attachment.hasConnection) this.#giveUnsent();
    });
  }

  /** Moves to another server when this one has been silent for so long. */
  leaveSilentServer(silentForMs: number): void {
    if (this.#search.hasChoice) this.#heartbeat.giveUpIfSilent(silentForMs);
  }

  #giveUnsent(): void {
    this.pipeline.writeHandshake((writer) => this.#auth.writeUnsent(writer));
  }

  /**
   * Removes watches of a path that are no longer needed, so that the server need not report on
   * them.
   */
  removeFromServer(path: string, type: WatchType): void {
    // A connection that did not get our watches will not get this one.
    if (this.refusal({}) !== undefined || !this.#machine.isIntroduced) return;
    if (!this.#options.removeWatches || !this.#attachment.hasConnection) return;
    // Reads that were sent before it have registered their watches by now, and lose them with it.
    // Reads that were sent after it are not answered yet.
    const removed = () => this.watches.lose(path, type);
    const request = new PendingRequest(
      { kind: requests.removeWatches, complete: removed, noWatcher: removed },
      undefined,
      () => {},
      () => {}, // Watches go with the connection, and the next connection sets only those that are needed.
    );
    // Without a limit: a reply that is not handled would leave dead watches behind.
    request.hasOwnTimer = true;
    request.cleansUp = true;
    this.submit(request, { path, type: watcherTypes[type] });
  }

  /**
   * Ends the session on the server, and then the client. The client ends within `closeTimeoutMs` in
   * any case. A suspended session is closed too, if a server can be reached in time. Otherwise its
   * ephemeral nodes would stay until it expires.
   * @param keepSession true leaves the session to another client
   */
  close(keepSession: boolean): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    const { clock, closeTimeoutMs } = this.#options;
    // Both are set before anything happens: a listener that hears of the end may close the client
    // again.
    const timer = clock.setTimer(
      () => this.#machine.happen({ on: 'waited-enough' }),
      closeTimeoutMs,
    );
    this.#closing = new Promise((resolve) => {
      this.#onClosed = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#machine.happen({ on: 'close-asked', keepSession });
    return this.#closing;
  }

  // The machine ------------------------------------------------------------------------------------

  #carryOut(effect: ShellEffect): void {
    switch (effect.do) {
      case 'greet':
        this.#attachment.greet(effect.attaches, effect.doubts);
        break;
      case 'introduce':
        this.#attachment.introduce();
        break;
      case 'let-reads-ride':
        this.pipeline.rideAlong();
        break;
      case 'adopt':
        this.#attachment.adopt();
        break;
      case 'start-sasl':
        this.#attachment.startSasl();
        break;
      case 'ask-sync':
        this.#attachment.askSync();
        break;
      case 'forget-view':
        this.#forgetView(effect.zxid);
        break;
      case 'catch-up':
        this.#attachment.ready();
        if (effect.gap !== undefined) this.watches.gap(effect.gap);
        // Sends credentials that were added since the handshake was written.
        this.#giveUnsent();
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
        this.#attachment.searchReadWrite();
        break;
      case 'drop':
        this.#attachment.drop(effect.error, effect.isDone === true);
        break;
      case 'forget-session':
        this.#identity.forget();
        this.#tally.expirations += 1;
        break;
      case 'bury':
        this.pipeline.failAll((context) => sessionExpired({ ...context, cause: effect.error }));
        this.watches.expire();
        this.pipeline.release();
        break;
      case 'finish':
        this.#finish();
        break;
      case 'hurry':
        this.#search.hurry();
        break;
    }
  }

  #forgetView(zxid: bigint): void {
    publish('incumbent:zookeeper:trouble', this.#number, {
      what: 'the servers have lost what was seen; starting from what they have',
      error: new Error(`the quorum is at transaction ${zxid}, ${this.#view.lastZxid} was seen`),
    });
    this.#view.forget(zxid);
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
        complete: () => this.#machine.happen({ on: 'close-answered' }),
        // The connection was lost first. The next one has to close the session, if there is still
        // time.
        failed: () => this.#machine.happen({ on: 'close-failed' }),
      },
      undefined,
      () => {},
      () => {},
    );
    request.cleansUp = true;
    this.pipeline.submit(request, {});
  }

  #finish(): void {
    this.pipeline.release();
    this.pipeline.failAll((context) => this.#ended(context));
    this.#auth.rejectAll(this.#ended({ operation: 'auth' }));
    this.watches.close();
    this.#heartbeat.stop();
    if (this.#machine.at.at === 'closed') this.#onClosed?.();
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
        return session.#identity.server;
      },
      wantsServer: () => {
        this.#heartbeat.expireIfOverdue();
        // Asked after that: a listener that has just heard of the expiry may have closed the
        // client.
        return !this.#machine.isFinal;
      },
      attach: (address, boundMs) => this.#attachment.attach(address, boundMs),
      onRoundFailed: (allShutUsOut) => {
        const { timeoutMs } = this.#heartbeat.timing;
        const shutOut = allShutUsOut && this.#view.lastZxid !== 0n;
        const nowMs = clock.monotonicMs();
        this.#machine.happen({ on: 'round-failed', shutOut, nowMs, timeoutMs });
      },
      onUnresolved: (error) => {
        this.#attachment.failed(error);
        publish('incumbent:zookeeper:trouble', this.#number, { what: 'resolving a host', error });
      },
    };
  }

  #pulse(): Pulse {
    const session = this;
    return {
      machine: this.#machine,
      get hasSession() {
        return session.#identity.isKnown;
      },
      get hasConnection() {
        return session.#attachment.hasConnection;
      },
      ping: () => {
        this.#tally.pings += 1;
        this.#heartbeat.pingSentMs = this.pipeline.writeHandshake(writePing).monotonicMs;
      },
      giveUp: (why) => this.#attachment.drop(new Error(why), false),
      expire: (why) => this.#machine.happen({ on: 'over', error: new Error(why) }),
    };
  }
}
