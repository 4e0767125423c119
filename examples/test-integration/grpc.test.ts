import type { RedisServer } from '@incumbent/servers';
import { redisAvailable, startRedis } from '@incumbent/servers';
import { createElection } from 'incumbent';
import { redis } from 'incumbent/redis';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Copies } from './support/copies.ts';
import { isMissing } from './support/need-server.ts';
import { leaderOf, oneLeadsAtATime } from './support/one-leads.ts';

describe.skipIf(isMissing(redisAvailable()))('invoice numbers', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server?.close());

  test('the copy that leads hands them out, and clients reach it', async () => {
    const client = await createClient({ url: server.url }).connect();
    onTestFinished(() => client.destroy());
    const env = { REDIS_URL: server.url, EVERY_MS: '20', TIMEOUT_MS: '1000', LEASE: '1s' };
    await using copies = await Copies.of('grpc/service', env);
    await using callers = await Copies.of('grpc/client', env);
    const caller = await callers.start();
    const election = createElection({ name: 'invoice-numbers', backend: redis(client) });
    const given = async () =>
      (await client.lRange('given:2026', 0, -1)).map((text) => text.split(' ').map(Number));
    const takenNumbers = async () =>
      (await callers.output()).split('\n').filter((line) => /^\d+$/.test(line));
    await oneLeadsAtATime({
      copies,
      leader: () => leaderOf(election),
      tokens: async () => (await given()).map(([, token]) => token as number),
      // An answer may come after the client has given the call up.
      hasArrived: async (token) => {
        const taken = new Set(await takenNumbers());
        return (await given()).some(([number, by]) => by === token && taken.has(`${number}`));
      },
    });
    expect(await caller.stop()).toBe('exit code 0');
    const all = (await given()).map(([number]) => number);
    expect(all, 'no gap, and none twice').toEqual(all.map((_, i) => i + 1));
    const taken = await takenNumbers();
    expect(taken.length, 'the client has numbers').toBeGreaterThan(0);
    expect(taken, 'in order, none twice').toEqual(
      [...new Set(taken)].toSorted((a, b) => Number(a) - Number(b)),
    );
    await election.close();
  });
});
