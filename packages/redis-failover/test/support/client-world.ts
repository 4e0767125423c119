import { onTestFinished } from 'vitest';
import { Connections } from '../../src/client/connections.ts';
import type { RouterOptions } from '../../src/client/router.ts';
import { Router } from '../../src/client/router.ts';
import type { ViewOptions } from '../../src/client/view.ts';
import { ViewFollower } from '../../src/client/view-follower.ts';
import { encodeNodes, encodePrimary, pathsBelow } from '../../src/layout.ts';
import type { FakeClient } from './fake-driver.ts';
import { FakeDriver } from './fake-driver.ts';
import { FakeZooKeeper } from './fake-zookeeper.ts';
import { atRest, HandClock } from './hand-clock.ts';

export const paths = pathsBelow('/set');
export const viewMs = 900;
export const [a, b, c] = ['a:1', 'b:2', 'c:3'];

/** The text of `primary`. */
export function recordText(
  term: number,
  primary: string | null,
  more: { readonly former?: string; readonly runId?: string } = {},
): string {
  return encodePrimary({
    ...{ term, primary, viewMs, former: more.former ?? null, runId: more.runId ?? null },
    ...{ replicationId: null, gemViews: false, manager: 'm', token: '1', manualSeen: '0' },
  });
}

/** The text of `nodes`. */
export function nodesText(
  master: string | null,
  slaves: readonly string[] = [],
  unavailable: readonly string[] = [],
): string {
  return encodeNodes({ master, slaves, unavailable });
}

interface WorldOptions {
  readonly router?: Partial<RouterOptions>;
  readonly view?: Partial<ViewOptions>;
  readonly verifyRole?: boolean;
  readonly replicas?: readonly string[];
}

/**
 * The client without its public class, on a driver, a clock and a ZooKeeper that the test plays.
 */
export class ClientWorld {
  readonly clock = new HandClock();
  readonly zk = new FakeZooKeeper(this.clock);
  readonly driver = new FakeDriver();
  readonly view: ViewFollower;
  readonly connections: Connections<FakeClient>;
  readonly router: Router<FakeClient>;

  constructor({ router = {}, view = {}, verifyRole = false }: WorldOptions = {}) {
    const { clock, zk, driver } = this;
    const viewOptions = { rubyViewMs: 9_000, safeMode: true, ...view };
    this.view = new ViewFollower(zk.client, paths, clock, viewOptions);
    this.connections = new Connections(driver, {
      ...{ connectTimeoutMs: 2_000, commandTimeoutMs: 5_000, verifyRole },
      runIdOf: (reign) => this.view.runIdOf(reign),
      isGemLeading: async () => false,
      ...{ clock, timers: clock },
    });
    this.router = new Router(this.view, this.connections, {
      ...{ maxWaitMs: 10_000, reads: 'replicas', retryAmbiguous: false, timers: clock },
      ...router,
    });
    onTestFinished(() => this.view.close());
  }

  /** `a` is the primary of term 1, and confirmed. */
  static async confirmed(options: WorldOptions = {}): Promise<ClientWorld> {
    const world = new ClientWorld(options);
    world.driver.roles.set(a, 'master');
    await world.publish(1, a, options.replicas ?? []);
    // A connection that is made now is older than the confirmation after it.
    await world.clock.pass(1);
    return world;
  }

  async publish(
    term: number,
    primary: string,
    replicas: readonly string[] = [],
    runId?: string,
  ): Promise<void> {
    const record = recordText(term, primary, runId === undefined ? {} : { runId });
    await this.zk.remove(paths.nodes);
    await this.zk.put({ [paths.primary]: record, [paths.nodes]: nodesText(primary, replicas) });
  }

  /** Revokes the primary of `term`: the record names none. */
  async revoke(term: number, former = a): Promise<void> {
    this.zk.write({ [paths.primary]: recordText(term, null, { former }) });
    await this.zk.remove(paths.nodes);
  }

  /** From now on ZooKeeper confirms nothing, until `answerAll`. */
  holdConfirmations(): void {
    this.zk.confirmsAtOnce = false;
  }

  async answerAll(): Promise<void> {
    for (const confirmation of this.zk.confirmations) confirmation.answer();
    await atRest();
  }
}
