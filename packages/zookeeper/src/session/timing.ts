/**
 * The deadlines of a session, as parts of the session timeout T. All of them count from the time of
 * *sending*: an acknowledgement proves that the server knew of us at that time, or later.
 */
export interface SessionTiming {
  /** T: how long the server keeps the session without hearing of us. */
  readonly timeoutMs: number;
  /** A ping is sent after so long without sending anything: T/3. */
  readonly pingMs: number;
  /**
   * A connection on which nothing arrived for so long is given up: 0.6 T. Users are promised two
   * thirds of T. The rest is for a timer that fires late.
   */
  readonly silenceMs: number;
  /**
   * The session counts as expired so long after the last acknowledged sending: 0.95 T. Users are
   * promised T. The rest is for a timer that fires late, and for a clock that is up to 5 % slower
   * than the server's. Only the monotonic clock counts, which stands still while a Linux host is
   * suspended. After that the next answer of a server, or its absence, shows what has happened.
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
  /** The time until the session expires (default: there is none). */
  readonly leftMs?: number;
  /** Hosts that this round has not tried yet, with this one (default: all). */
  readonly untried?: number;
}

/**
 * How long one attempt to connect may take, up to the server's answer to the handshake. It is the
 * timeout divided by the number of hosts, at most 0.6 T. The first rounds get less: T/6 (at least 1
 * s), and twice as much each round. A server that is just starting may accept a connection and
 * never answer it, and then another attempt helps. While a session may be lost, its remaining time
 * is shared among the hosts, at least 1 s each.
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
 * The pause after the `round`-th round (from 0) in which no host worked. It begins with 0.1 s and
 * grows by half each time, up to 0.45 s. Up to a quarter is taken off at random, so that clients do
 * not come all at once. So a server that is back is found within half a second, however long it was
 * away. An attempt at a closed port costs little.
 *
 * A server that accepts connections and drops them, such as one without a quorum, is asked less and
 * less often. There the pause goes on to double, up to T/4, at most 2.5 s.
 * @param dropped a server has accepted our connection and closed it
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
