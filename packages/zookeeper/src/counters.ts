/** What a client has done since it was made. A snapshot; see `client.counters`. */
export interface Counters {
  /** Calls taken, by how they ended: their sum and `outstanding` is `requests`. */
  readonly requests: number;
  readonly succeeded: number;
  readonly failed: number;
  /** Calls not settled yet: waiting, or sent. */
  readonly outstanding: number;
  /** Calls that wait to be sent, and their size. */
  readonly queued: number;
  readonly queuedBytes: number;
  readonly inFlight: number;
  /** Times when a connection was tried, and when one was ready for requests. */
  readonly attempts: number;
  readonly connects: number;
  /** Sessions that ended without being closed. */
  readonly expirations: number;
  readonly pings: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** Events that the server has sent. */
  readonly notifications: number;
  /** Paths on which one-shot and persistent watches are set. */
  readonly watches: number;
  /** From the moment of sending to the reply, of replies to requests, in ms. */
  readonly latencySumMs: number;
  readonly latencyMaxMs: number;
  readonly replies: number;
}

/** The part that counts up; the rest is looked up where it stands. */
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
