/**
 * When what is judged, as parts of the session timeout T. All instants are those of *sending*: what
 * was acknowledged proves that the server knew of us when it was sent, or later.
 */
export interface SessionTiming {
  /** T: what the server keeps the session for without hearing of us. */
  readonly timeoutMs: number;
  /** A ping is sent when nothing was sent for so long: T/3. */
  readonly pingMs: number;
  /**
   * A connection on which nothing arrived for so long is given up: 0.6 T. Users are promised two
   * thirds; the rest is for a timer that runs late.
   */
  readonly silenceMs: number;
  /**
   * The session counts as expired so long after the last acknowledged sending: 0.95 T. Users are
   * promised T; the rest is for a timer that runs late and for a clock that is up to 5 % slower
   * than the server's. By the monotonic clock alone, which stands still while a Linux host is
   * suspended: what it slept through is found out by the next answer of a server, or its absence.
   */
  readonly expiryMs: number;
}

export function sessionTiming(timeoutMs: number): SessionTiming {
  return {
    timeoutMs,
    pingMs: timeoutMs / 3,
    silenceMs: timeoutMs * 0.6,
    expiryMs: timeoutMs * 0.95,
  };
}

export interface Attempt {
  readonly hosts: number;
  /** Failed rounds so far (default 0). */
  readonly round?: number;
  /** Until the session expires (default: there is none). */
  readonly leftMs?: number;
  /** Hosts that this round has not tried yet, with this one (default: all). */
  readonly untried?: number;
}

/**
 * How long one attempt to connect may take, up to the server's answer to the handshake: the timeout
 * divided by the number of hosts, at most 0.6 T. The first rounds get less, from T/6 (at least 1 s)
 * and twice as much each round: a server that is just starting may take a connection and never
 * answer it, and the next attempt is the cure.
 * While a session is at stake, what is left of it is shared among the hosts, at least 1 s each.
 */
export function attemptMs(
  { timeoutMs, silenceMs }: SessionTiming,
  { hosts, round = 0, leftMs = Number.POSITIVE_INFINITY, untried = hosts }: Attempt,
): number {
  const roundMs = Math.max(1_000, timeoutMs / 6) * 2 ** Math.min(round, 20);
  const shareMs = Math.max(Math.min(leftMs, 1_000), leftMs / untried);
  return Math.min(silenceMs, timeoutMs / hosts, roundMs, shareMs);
}

/**
 * The pause after the `round`-th round (from 0) in which no host worked: 0.1 s, then half as much
 * again, up to 0.45 s, less up to a quarter at random, so that clients do not come all at once. A
 * server that is back is found within half a second, however long it was away, and an attempt at a
 * closed port costs nobody anything. A server that takes connections and drops them, such as one
 * without a quorum, is asked less and less often: the pause goes on to double, up to T/4, at most
 * 2.5 s.
 * @param dropped some server took our connection and closed it
 */
export function backoffMs(
  round: number,
  dropped: boolean,
  { timeoutMs }: SessionTiming,
  random: () => number,
): number {
  const longestMs = dropped ? Math.max(450, Math.min(2_500, timeoutMs / 4)) : 450;
  const full = 100 * 1.5 ** Math.min(round, 4) * 2 ** Math.min(Math.max(round - 4, 0), 10);
  return Math.min(longestMs, full) * (0.75 + 0.25 * random());
}
