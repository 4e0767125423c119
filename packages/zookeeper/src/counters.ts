/** Counters of a client since it was made. A snapshot; see `client.counters`. */
export interface Counters {
  /** Calls that were taken. It is the sum of `succeeded`, `failed` and `outstanding`. */
  readonly requests: number;
  readonly succeeded: number;
  readonly failed: number;
  /** Calls that are not settled yet: waiting, or sent. */
  readonly outstanding: number;
  /** Calls that wait to be sent. */
  readonly queued: number;
  /** The size of these, in bytes. */
  readonly queuedBytes: number;
  /** Requests that were sent and are not answered. */
  readonly inFlight: number;
  /** How often a connection was tried. */
  readonly attempts: number;
  /** How often a connection was ready for requests. */
  readonly connects: number;
  /** Sessions that ended without being closed. */
  readonly expirations: number;
  readonly pings: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** Events that the server has sent. */
  readonly notifications: number;
  /** Paths with watches, one-shot and persistent. */
  readonly watches: number;
  /** The sum of the times from sending a request to its reply, in ms. */
  readonly latencySumMs: number;
  /** The longest of these times. */
  readonly latencyMaxMs: number;
  /** Replies to requests. */
  readonly replies: number;
}

/** The counters that only grow. The others are read where their values are kept. */
export class Tally {
  requests = 0;
  succeeded = 0;
  failed = 0;
  attempts = 0;
  connects = 0;
  expirations = 0;
  pings = 0;
  bytesSent = 0;
  bytesReceived = 0;
  notifications = 0;
  latencySumMs = 0;
  latencyMaxMs = 0;
  replies = 0;
}
