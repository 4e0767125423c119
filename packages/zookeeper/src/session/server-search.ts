import type { Clock } from '../clock.ts';
import { formatHost } from '../connection-string.ts';
import type { Address } from '../net/connection.ts';
import type { Hosts } from './hosts.ts';
import type { SessionTiming } from './timing.ts';
import { attemptMs, backoffMs } from './timing.ts';

/**
 * How an attempt ended.
 *
 * - `served`: the server served for a while.
 * - `shut-out`: the server closed the connection at the handshake without a word. A server does so
 *   if it is behind what the session has seen, or has no quorum.
 * - `dropped`: the server closed it soon after.
 * - `failed`: anything else.
 */
export type AttemptOutcome = 'served' | 'shut-out' | 'dropped' | 'failed';

/** The part of a session that the search uses. */
export interface SearchTarget {
  readonly timing: SessionTiming;
  /** The time until the session expires; infinite without a session. */
  readonly leftMs: number;
  /** The server that the session was last attached to, as `host:port`. */
  readonly lastServer: string;
  /** false ends the search. Asked before every attempt. */
  wantsServer(): boolean;
  /** Tries a server for at most `boundMs`. Resolves when the connection has ended. */
  attach(address: Address, boundMs: number): Promise<AttemptOutcome>;
  /** A round has ended in which no server served. */
  onRoundFailed(allShutUsOut: boolean): void;
  onUnresolved(error: Error): void;
}

/**
 * Tries servers one after the other, as long as one is wanted. After a failure it tries the next
 * server at once. After a round without success it pauses.
 */
export class ServerSearch {
  readonly #hosts: Hosts;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #target: SearchTarget;
  #endPause: (() => void) | undefined;
  /** How many addresses the last round had. */
  #addresses = 0;

  constructor(hosts: Hosts, clock: Clock, random: () => number, target: SearchTarget) {
    this.#hosts = hosts;
    this.#clock = clock;
    this.#random = random;
    this.#target = target;
  }

  /** True when there is another server than the one that the session was last attached to. */
  get hasChoice(): boolean {
    return this.#addresses > 1;
  }

  /** Never rejects. */
  async run(): Promise<void> {
    const target = this.#target;
    let failedRounds = 0;
    while (target.wantsServer()) {
      const addresses = this.#hosts.literal() ?? (await this.#resolve());
      this.#addresses = addresses.length;
      // The last server comes at the end, because the session was just lost there.
      const last = addresses.findIndex((address) => formatHost(address) === target.lastServer);
      if (last >= 0) addresses.push(...addresses.splice(last, 1));
      const outcomes = new Set<AttemptOutcome>();
      for (const [index, address] of addresses.entries()) {
        if (!target.wantsServer()) return;
        const boundMs = attemptMs(target.timing, {
          ...{ hosts: addresses.length, untried: addresses.length - index },
          ...{ round: failedRounds, leftMs: target.leftMs },
        });
        outcomes.add(await target.attach(address, boundMs));
        if (outcomes.has('served')) break;
      }
      if (outcomes.has('served')) {
        failedRounds = 0;
        continue;
      }
      target.onRoundFailed(outcomes.size === 1 && outcomes.has('shut-out'));
      const dropped = outcomes.has('shut-out') || outcomes.has('dropped');
      await this.#pause(backoffMs(failedRounds, dropped, target.timing, this.#random));
      failedRounds += 1;
    }
  }

  /** Ends a pause between two rounds. */
  hurry(): void {
    this.#endPause?.();
  }

  async #resolve(): Promise<Address[]> {
    const bound = new AbortController();
    const { timing, leftMs } = this.#target;
    const boundMs = attemptMs(timing, { hosts: this.#hosts.count, leftMs });
    const timer = this.#clock.setTimer(() => bound.abort(), boundMs);
    try {
      return await this.#hosts.resolve(bound.signal, (error) => this.#target.onUnresolved(error));
    } finally {
      timer.cancel();
    }
  }

  #pause(delayMs: number): Promise<void> {
    if (!this.#target.wantsServer()) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#clock.setTimer(() => this.#endPause?.(), delayMs);
      this.#endPause = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}
