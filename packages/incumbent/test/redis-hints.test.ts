import { describe, expect, test } from 'vitest';
import { HintHub } from '../src/backends/hint-hub.ts';
import type { RedisDriver } from '../src/backends/redis/driver.ts';
import { checkOptions } from '../src/backends/redis/options.ts';
import { RedisLeaseStore } from '../src/backends/redis/store.ts';
import { resolveTiming } from '../src/base/timing.ts';
import type { Scope } from '../src/core/contest.ts';
import type { LeaseRecord } from '../src/record/lease-record.ts';
import { encodeLeaseRecord } from '../src/record/lease-record.ts';
import { settle } from '../src/testing/index.ts';
import { vacantRecord } from './support/vacant-record.ts';

const never = new AbortController().signal;

/** A server with one record, which tells of changes only when a test does. */
class Stage {
  readonly store: RedisLeaseStore;
  subscribed = 0;
  tell: (election: string) => void = () => {};
  readonly troubles: unknown[] = [];
  #writes = 0;
  #record: LeaseRecord = vacantRecord('jobs', 'n0');

  constructor() {
    const driver: RedisDriver = {
      description: 'a server',
      ownPrefix: '',
      clientPrefix: '',
      together: undefined,
      primaries: async () => [],
      send: async () => {
        const record = encodeLeaseRecord(this.#record);
        return [`v${this.#writes}`, 'life', '1', '99999', record, '0'];
      },
      subscribe: async (_channel, onMessage) => {
        this.subscribed += 1;
        this.tell = onMessage;
        return { close: () => {} };
      },
    };
    const scope = {
      election: 'jobs',
      timing: resolveTiming({ lease: 1_000 }),
      uniqueId: () => 'x',
      onTrouble: () => {},
    } as unknown as Scope;
    const hub = new HintHub({
      connect: (onHint, onLost) => driver.subscribe('news', onHint, onLost),
      onTrouble: (error) => void this.troubles.push(error),
    });
    this.store = new RedisLeaseStore(driver, checkOptions({}), hub, new Set(), scope);
  }

  /** A leader writes. */
  write(changed: Partial<LeaseRecord>): void {
    this.#writes += 1;
    this.#record = { ...this.#record, nonce: `n${this.#writes}`, ...changed };
  }

  async read(): Promise<void> {
    await this.store.read(never);
    await settle();
  }
}

async function listening(): Promise<Stage> {
  const stage = new Stage();
  stage.store.watch?.(() => {});
  await settle();
  await stage.read();
  await stage.read();
  expect(stage.store.hintsWork).toBe(true);
  return stage;
}

describe('a subscription', () => {
  test('that tells of nothing, though there was news, is replaced', async () => {
    const stage = await listening();
    stage.write({ token: 2n });
    await stage.read();
    // From here on waiting candidates poll.
    expect(stage.store.hintsWork).toBe(false);
    expect(stage.subscribed).toBe(1);
    await stage.read();
    expect(stage.subscribed).toBe(2);
    expect(stage.store.hintsWork).toBe(true);
    expect(stage.troubles).toHaveLength(1);
  });

  test('that tells before or after the look stays', async () => {
    const stage = await listening();
    stage.write({ token: 2n });
    stage.tell('jobs');
    await stage.read();
    expect(stage.store.hintsWork).toBe(true);
    stage.write({ token: 3n });
    await stage.read();
    expect(stage.store.hintsWork).toBe(false);
    stage.tell('jobs');
    expect(stage.store.hintsWork).toBe(true);
    await stage.read();
    expect([stage.subscribed, stage.troubles.length]).toEqual([1, 0]);
  });

  test('is not blamed for what nobody tells of: confirmations and losses', async () => {
    const stage = await listening();
    stage.write({});
    await stage.read();
    stage.write({ token: 9n });
    stage.tell('jobs');
    await stage.read();
    await stage.read();
    stage.write({ token: 1n });
    await stage.read();
    await stage.read();
    expect(stage.store.hintsWork).toBe(true);
    expect([stage.subscribed, stage.troubles.length]).toEqual([1, 0]);
  });
});
