import type { RedisServer } from '@incumbent/servers';
import { startRedis } from '@incumbent/servers';
import type { TestProxy } from '@incumbent/zookeeper-testing';
import { startProxy } from '@incumbent/zookeeper-testing';
import type { Timing } from 'incumbent';
import { resolveTiming } from 'incumbent';
import type { Card } from '../../harness/rounds.ts';
import { pause } from '../../harness/time.ts';
import { leaseBoundMs } from '../bound.ts';
import type { Opening } from '../plan.ts';
import type { Stage, Told } from '../stage.ts';

/**
 * A candidate that starts is given a floor above all tokens up to now, and above those of wins
 * before it has looked.
 */
const floorAhead = 100n;

const openings: readonly Opening[] = [
  { server: 'restart empty', serverLength: 0 },
  // The leader goes on, and the others find nothing.
  { leader: 'silence', server: 'restart empty', leaderLength: 1, serverLength: 0, lagMs: 100 },
  { leader: 'silence', leaderLength: 2 },
  // Everybody is woken at once.
  { leader: 'withdraw' },
  { leader: 'freeze both', leaderLength: 2.4 },
  { leader: 'kill both', server: 'restart empty', serverLength: 0.2 },
  { waiting: 'silence', server: 'freeze' },
  { server: 'flush' },
];

/** One server that writes everything to its disk, unless it is made to forget it. */
export class RedisStage implements Stage {
  readonly about = 'Redis, one server';
  readonly leasesMs: readonly number[] = [2_000, 3_000];
  readonly openings: readonly Opening[] = openings;
  readonly untested = undefined;
  readonly serverFaults: Readonly<Record<string, Card>> = {
    kill: { cards: 2, to: 1.2 },
    'restart empty': { cards: 4, to: 1.2 },
    flush: { cards: 1 },
    freeze: { cards: 3, from: 0.2, to: 1.5 },
    'cut everybody': { cards: 1, to: 0.3 },
  };
  readonly #server: RedisServer;
  readonly #told: Told;
  readonly #hasFloor: boolean;
  readonly #proxies: TestProxy[] = [];

  private constructor(server: RedisServer, told: Told, hasFloor: boolean) {
    this.#server = server;
    this.#told = told;
    this.#hasFloor = hasFloor;
  }

  /** @param hasFloor whether whoever starts is told which tokens there have been */
  static async start(told: Told, hasFloor: boolean): Promise<RedisStage> {
    return new RedisStage(await startRedis({ appendFsync: 'always' }), told, hasFloor);
  }

  get operatorUrl(): string {
    return this.#server.url;
  }

  timingOf(leaseMs: number): Timing {
    return resolveTiming({ lease: leaseMs });
  }

  boundMs(timings: readonly Timing[]): number {
    return leaseBoundMs(timings, 3);
  }

  async connect(): Promise<readonly TestProxy[]> {
    const proxy = await startProxy(this.#server);
    this.#proxies.push(proxy);
    return [proxy];
  }

  url([proxy]: readonly TestProxy[]): string {
    const newest = this.#told.newestToken();
    const floor = this.#hasFloor && newest > 0n ? `?token-floor=${newest + floorAhead}` : '';
    return `redis://127.0.0.1:${proxy?.port}${floor}`;
  }

  async strike(fault: string, forMs: number): Promise<void> {
    const told = this.#told;
    told.quorum('down');
    switch (fault) {
      case 'kill':
        await this.#server.kill();
        await pause(forMs);
        await this.#server.start();
        break;
      case 'restart empty':
        await this.#server.kill();
        await pause(forMs);
        await this.#server.start();
        await this.#server.command('FLUSHALL');
        break;
      case 'flush':
        await this.#server.command('FLUSHALL');
        break;
      case 'freeze':
        await this.#server.freeze();
        await pause(forMs);
        this.#server.thaw();
        break;
      default:
        throw new Error(`Redis has no fault ${fault}`);
    }
    await this.ready();
    told.quorum('up');
  }

  async ready(): Promise<void> {
    await this.#server.command('PING');
  }

  async close(): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
    await this.#server.close();
  }
}
