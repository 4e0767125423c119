import type { Clock } from '../clock.ts';
import { formatHost } from '../connection-string.ts';
import type { Address } from '../net/connection.ts';
import type { Hosts } from './hosts.ts';
import type { SessionTiming } from './timing.ts';
import { attemptMs, backoffMs } from './timing.ts';

/**
 * How an attempt ended: after it had served us a while; by the server closing on our handshake
 * without a word, as one does that is behind what we have seen, or has no quorum; by its closing
 * soon after; or otherwise.
 */
export type AttemptOutcome = 'served' | 'shut-out' | 'dropped' | 'failed';

/** What the search needs of the session it works for. */
export interface SearchTarget {
  readonly timing: SessionTiming;
  /** Until the session expires; infinite without one. */
  readonly leftMs: number;
  /** The server that the session was attached to last, as `host:port`. */
  readonly lastServer: string;
  /** False ends the search. Asked before every attempt. */
  wantsServer(): boolean;
  /** Tries a server for at most `boundMs`; resolves when the connection has ended. */
  attach(address: Address, boundMs: number): Promise<AttemptOutcome>;
  /** A round ended in which no server served us. */
  onRoundFailed(allShutUsOut: boolean): void;
  onUnresolved(error: Error): void;
}

/**
 * Tries servers, one after the other and for as long as they are wanted: the next one at once after
 * a failure, a pause after a round in which none served.
 */
export class ServerSearch {
  readonly #hosts: Hosts;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #target: SearchTarget;
  #endPause: (() => void) | undefined;

  constructor(hosts: Hosts, clock: Clock, random: () => number, target: SearchTarget) {
    this.#hosts = hosts;
    this.#clock = clock;
    this.#random = random;
    this.#target = target;
  }

  /** Never rejects. */
  async run(): Promise<void> {
    const target = this.#target;
    let failedRounds = 0;
    while (target.wantsServer()) {
      const addresses = this.#hosts.literal() ?? (await this.#resolve());
      // The server that we come from had its chance.
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
        this.#endPause = undefined;
        timer.cancel();
        resolve();
      };
    });
  }
}
