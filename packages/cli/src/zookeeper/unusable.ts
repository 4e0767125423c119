import { CommandError, exitCodes } from '../failure.ts';
import type { ZooKeeperLocation } from './location.ts';
import type { ServerReport } from './servers.ts';

export interface KnownOfZooKeeper {
  readonly location: ZooKeeperLocation;
  /** What each server said when it was asked what is wrong. */
  readonly servers: readonly ServerReport[];
  readonly askedTimeoutMs: number;
}

/** No election can be held there, and what is known all the same. */
export class UnusableZooKeeperError extends CommandError {
  override readonly name: string = 'UnusableZooKeeperError';
  /** Private, and so not shown where an error is: a password may be in it. */
  readonly #known: KnownOfZooKeeper;

  constructor(code: string, message: string, known: KnownOfZooKeeper, options?: ErrorOptions) {
    super(code, exitCodes.storeUnavailable, message, options);
    this.#known = known;
  }

  get known(): KnownOfZooKeeper {
    return this.#known;
  }
}
