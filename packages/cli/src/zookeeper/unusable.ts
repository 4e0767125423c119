import type { Finding } from '../doctor/finding.ts';
import { serverFindings } from '../doctor/zookeeper-servers.ts';
import { UnusableStoreError } from '../unusable.ts';
import type { ZooKeeperLocation } from './location.ts';
import type { ServerReport } from './servers.ts';

export interface KnownOfZooKeeper {
  readonly location: ZooKeeperLocation;
  /** The answer of each server when it was asked about the fault. */
  readonly servers: readonly ServerReport[];
  readonly askedTimeoutMs: number;
}

/** No election can be held there. It carries the facts that are known all the same. */
export class UnusableZooKeeperError extends UnusableStoreError {
  override readonly name: string = 'UnusableZooKeeperError';
  /** Private, and so not shown where an error is: a password may be in it. */
  readonly #seen: KnownOfZooKeeper;

  constructor(code: string, message: string, seen: KnownOfZooKeeper, options?: ErrorOptions) {
    const { location, askedTimeoutMs: sessionTimeoutMs } = seen;
    const { url, origin } = location;
    super(code, message, { url, origin, limits: { sessionTimeoutMs } }, options);
    this.#seen = seen;
  }

  override findings(): readonly Finding[] {
    const { servers, location } = this.#seen;
    return serverFindings(servers, location.parameters.compatibility);
  }
}
