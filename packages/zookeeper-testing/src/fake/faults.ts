/** Faults that a test has asked for. The next request that matches one is treated otherwise. */

/** A request as the fake received it. */
export interface FakeRequest {
  /** The port of the server that received it. */
  readonly port: number;
  /** The session. In a handshake the one that it asks for; 0n for a new one. */
  readonly sessionId: bigint;
  readonly xid: number;
  /** `create2`, `getData` …, `connect` for the handshake, `unknown` for an unknown opcode. */
  readonly opcode: string;
  /** The first of `paths`. */
  readonly path: string | undefined;
  /** Every path that it names: more than one in a multi. */
  readonly paths: readonly string[];
}

/** A request matches if all given fields do. */
export interface FaultMatch {
  /** A name of `FakeRequest.opcode`, or several. Default: every request but pings. */
  readonly opcode?: string | readonly string[];
  /** One of the request's paths. */
  readonly path?: string | RegExp;
  /** One that throws does not match. */
  readonly predicate?: (request: FakeRequest) => boolean;
  /** How many requests it strikes; default 1. */
  readonly times?: number;
}

/**
 * - `dropBefore`: the connection is closed, and the request not applied.
 * - `dropAfter`: the request is applied, and the connection closed without a reply.
 * - `delay`: applied; the reply, and everything after it on this connection, waits for `release()`.
 * - `halfFrame`: applied; the first `bytes` of the reply (default: half of it), then closed.
 * - `wrongXid`: applied; the reply has another xid (default: the right one plus 1).
 * - `errorCode`: not applied; answered with `code`. A handshake gets a bare reply header.
 * - `expire`: not applied; the session is expired and the connection closed. A handshake is told
 *   that the session is gone.
 * - `moved`: not applied; answered with -118, and closed.
 * - `silence`: nothing is read or answered on this connection any more, and it stays open.
 * - `garbage`: applied; `bytes` are sent in place of the reply, as they are.
 */
export type FaultAction =
  | 'dropBefore'
  | 'dropAfter'
  | 'delay'
  | 'halfFrame'
  | 'wrongXid'
  | 'expire'
  | 'moved'
  | 'silence'
  | { readonly type: 'halfFrame'; readonly bytes: number }
  | { readonly type: 'wrongXid'; readonly xid: number }
  | { readonly type: 'errorCode'; readonly code: number }
  | { readonly type: 'garbage'; readonly bytes: Uint8Array };

/** A fault that was asked for. */
export interface Fault {
  /** How many requests it has struck. */
  readonly hits: number;
  /** The first request that it strikes, once that has arrived. */
  readonly struck: Promise<FakeRequest>;
  /** Lets delayed replies go, and those that would be delayed later. */
  release(): void;
  /** Strikes no more. Delayed replies stay delayed. */
  cancel(): void;
}

export interface Faults {
  /**
   * Treats the next request that matches, or the next `times`, otherwise. The oldest fault wins.
   */
  next(match: string | FaultMatch, action: FaultAction): Fault;
  /** Closes the next `times` (default 1) connections as soon as they are accepted. */
  closeOnConnect(times?: number): void;
  /** Forgets what has not struck yet, and lets delayed replies go. */
  clear(): void;
}

export class PendingFault implements Fault {
  readonly action: FaultAction;
  readonly struck: Promise<FakeRequest>;
  readonly #match: FaultMatch;
  readonly #strike: (request: FakeRequest) => void;
  readonly #releases: (() => void)[] = [];
  #left: number;
  #released = false;
  hits = 0;

  constructor(match: FaultMatch, action: FaultAction) {
    this.#match = match;
    this.action = action;
    this.#left = match.times ?? 1;
    let strike: (request: FakeRequest) => void = () => {};
    this.struck = new Promise((resolve) => {
      strike = resolve;
    });
    this.#strike = strike;
  }

  get spent(): boolean {
    return this.#left <= 0;
  }

  take(request: FakeRequest): boolean {
    if (this.spent || !matches(this.#match, request)) return false;
    this.#left -= 1;
    this.hits += 1;
    this.#strike(request);
    return true;
  }

  /** Calls `release` when the delay is over. */
  onRelease(release: () => void): void {
    if (this.#released) release();
    else this.#releases.push(release);
  }

  release(): void {
    this.#released = true;
    for (const release of this.#releases.splice(0)) release();
  }

  cancel(): void {
    this.#left = 0;
  }
}

function matches(match: FaultMatch, request: FakeRequest): boolean {
  const { opcode, path, predicate } = match;
  if (opcode === undefined ? request.opcode === 'ping' : !listed(opcode, request.opcode)) {
    return false;
  }
  if (path !== undefined && !request.paths.some((one) => fits(path, one))) return false;
  try {
    return predicate === undefined || predicate(request);
  } catch {
    return false; // it runs inside the server, where no caller could catch it
  }
}

function listed(names: string | readonly string[], name: string): boolean {
  return typeof names === 'string' ? names === name : names.includes(name);
}

function fits(wanted: string | RegExp, path: string): boolean {
  return typeof wanted === 'string' ? wanted === path : path.search(wanted) !== -1;
}

export class FaultPlan implements Faults {
  #pending: PendingFault[] = [];
  #delays: PendingFault[] = [];
  #refusedConnections = 0;

  next(match: string | FaultMatch, action: FaultAction): Fault {
    const fault = new PendingFault(typeof match === 'string' ? { opcode: match } : match, action);
    this.#pending.push(fault);
    if (action === 'delay') this.#delays.push(fault);
    return fault;
  }

  closeOnConnect(times = 1): void {
    this.#refusedConnections += times;
  }

  clear(): void {
    this.#refusedConnections = 0;
    for (const fault of this.#pending.splice(0)) fault.cancel();
    for (const fault of this.#delays.splice(0)) fault.release();
  }

  /** The fault that strikes this request, if one does. */
  strike(request: FakeRequest): PendingFault | undefined {
    const fault = this.#pending.find((one) => one.take(request));
    this.#pending = this.#pending.filter(({ spent }) => !spent);
    return fault;
  }

  /** Whether to close the connection that was just accepted. */
  refuses(): boolean {
    if (this.#refusedConnections <= 0) return false;
    this.#refusedConnections -= 1;
    return true;
  }
}
