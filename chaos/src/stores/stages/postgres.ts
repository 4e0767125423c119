import type { PostgresServer } from '@incumbent/servers';
import { startPostgres, startPostgresStandby } from '@incumbent/servers';
import type { TestProxy } from '@incumbent/zookeeper-testing';
import { startProxy } from '@incumbent/zookeeper-testing';
import type { Timing } from 'incumbent';
import { resolveTiming } from 'incumbent';
import type { Card } from '../../harness/rounds.ts';
import { pause } from '../../harness/time.ts';
import { leaseBoundMs } from '../bound.ts';
import type { Opening } from '../plan.ts';
import type { Stage, Told } from '../stage.ts';
import { election } from '../stage.ts';

type Settings = Readonly<Record<string, string | number>>;

const settingsOf = (isSynchronous: boolean): Settings => ({
  max_connections: 200,
  // Nothing is confirmed before a standby has it too; so fail-over loses nothing that was confirmed.
  synchronous_standby_names: isSynchronous ? '*' : '',
  wal_retrieve_retry_interval: '200ms',
});

const openings: readonly Opening[] = [
  { server: 'fail over' },
  // Somebody else wins, if that is confirmed, and the standby is not told.
  { leader: 'withdraw', server: 'fail over to a late standby', serverLength: 0.8, lagMs: -300 },
  { leader: 'silence', leaderLength: 2 },
  { leader: 'kill both', server: 'kill' },
  { leader: 'freeze both', leaderLength: 2.4 },
  { waiting: 'silence', server: 'restart in recovery', serverLength: 0.8 },
];

/** A primary and its synchronous standby. Clients find whoever is primary behind their proxies. */
export class PostgresStage implements Stage {
  readonly about = 'PostgreSQL, a primary and a synchronous standby';
  readonly leasesMs: readonly number[] = [2_000, 3_000];
  readonly openings: readonly Opening[] = openings;
  readonly untested = undefined;
  readonly serverFaults: Readonly<Record<string, Card>> = {
    kill: { cards: 2, from: 0.1, to: 1.2 },
    stop: { cards: 1, to: 0.3 },
    freeze: { cards: 3, from: 0.2, to: 1.5 },
    'fail over': { cards: 2, to: 0.5 },
    'fail over to a late standby': { cards: 1, from: 0.1, to: 0.6 },
    'fail over from frozen': { cards: 2, from: 0.2, to: 1.5 },
    'restart in recovery': { cards: 2, from: 0.2, to: 1.2 },
    'lose standby': { cards: 1, from: 0.2, to: 1.2 },
    'cut everybody': { cards: 1, to: 0.3 },
  };
  readonly #told: Told;
  readonly #settings: Settings;
  readonly #proxies: TestProxy[] = [];
  #primary: PostgresServer;
  #standby: PostgresServer;

  private constructor(
    primary: PostgresServer,
    standby: PostgresServer,
    told: Told,
    settings: Settings,
  ) {
    this.#primary = primary;
    this.#standby = standby;
    this.#told = told;
    this.#settings = settings;
  }

  static async start(told: Told, isSynchronous: boolean): Promise<PostgresStage> {
    const settings = settingsOf(isSynchronous);
    const primary = await startPostgres({ settings });
    const stage = new PostgresStage(
      primary,
      await startPostgresStandby(primary, { settings }),
      told,
      settings,
    );
    await primary.sql('create table ready (at timestamptz)');
    return stage;
  }

  get operatorUrl(): string {
    return urlOf(this.#primary);
  }

  timingOf(leaseMs: number): Timing {
    return resolveTiming({ lease: leaseMs });
  }

  boundMs(timings: readonly Timing[]): number {
    // A server that was started again may have lost something.
    return leaseBoundMs(timings, 3);
  }

  async connect(): Promise<readonly TestProxy[]> {
    const proxy = await startProxy(this.#primary);
    this.#proxies.push(proxy);
    return [proxy];
  }

  url([proxy]: readonly TestProxy[]): string {
    return urlOf(proxy as TestProxy);
  }

  async strike(fault: string, forMs: number): Promise<void> {
    const told = this.#told;
    told.quorum('down');
    switch (fault) {
      case 'kill':
        await this.#primary.kill();
        await pause(forMs);
        await this.#primary.start();
        break;
      case 'stop':
        await this.#primary.stop();
        await pause(forMs);
        await this.#primary.start();
        break;
      case 'freeze':
        await this.#primary.freeze();
        await pause(forMs);
        this.#primary.thaw();
        break;
      case 'fail over':
        await this.#primary.kill();
        await pause(forMs);
        await this.#failOver();
        break;
      case 'fail over to a late standby':
        // Of what the primary did meanwhile it has been told nothing.
        await this.#standby.kill();
        await pause(forMs);
        await this.#primary.kill();
        await this.#standby.start();
        await this.#failOver();
        break;
      case 'fail over from frozen':
        await this.#primary.freeze();
        await pause(forMs);
        await this.#failOver();
        break;
      case 'restart in recovery':
        await this.#primary.restartInRecovery();
        await pause(forMs);
        await this.#primary.promote();
        break;
      case 'lose standby':
        await this.#standby.kill();
        await pause(forMs);
        await this.#standby.start();
        break;
      default:
        throw new Error(`PostgreSQL has no fault ${fault}`);
    }
    await this.ready();
    told.quorum('up');
  }

  /** Resolves when a write is confirmed, so when the standby has it. */
  async ready(): Promise<void> {
    await this.#primary.sql('insert into ready values (now())');
  }

  async close(): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
    await Promise.all([this.#primary.close(), this.#standby.close()]);
  }

  /** The standby takes over, and everybody is led to it. The old primary is gone, and a new standby made. */
  async #failOver(): Promise<void> {
    const old = this.#primary;
    // A candidate that has left an effect was told that its win is stored.
    const confirmed = this.#told.newestToken();
    await this.#standby.promote();
    this.#primary = this.#standby;
    await this.#requireToken(confirmed);
    for (const proxy of this.#proxies) {
      proxy.switchTo(this.#primary);
      proxy.cut();
      await proxy.pass();
    }
    this.#told.note(`primary is on port ${this.#primary.port}`);
    // A frozen one must not serve anybody again: its connections are cut.
    await old.close();
    this.#standby = await startPostgresStandby(this.#primary, { settings: this.#settings });
  }

  async #requireToken(confirmed: bigint): Promise<void> {
    const found = await this.#primary.sql(
      `select token from incumbent_election where name = '${election}'`,
    );
    if (BigInt(found || 0) >= confirmed) return;
    this.#told.blame(
      `no confirmed write lost: term ${confirmed} worked, and the new primary knows of ${found || 'none'}`,
    );
  }
}

function urlOf({ port }: { readonly port: number }): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres?sslmode=disable`;
}
