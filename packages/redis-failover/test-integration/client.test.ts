import { describe, expect, test } from 'vitest';
import { addressOf, ClientStage, libraries, missing, useServers } from './support/client-stage.ts';

describe.skipIf(missing !== undefined)('a client', () => {
  const servers = useServers(2);

  for (const library of libraries) {
    test(`writes to the primary and reads from the replica (${library})`, async () => {
      const [primary, replica] = servers.nodes as [
        (typeof servers.nodes)[0],
        (typeof servers.nodes)[0],
      ];
      const stage = await ClientStage.open(servers);
      await stage.publish(addressOf(primary), [addressOf(replica)]);
      const failover = await stage.client(library);
      expect(failover.current).toMatchObject({ primary: addressOf(primary), term: 1 });
      await failover.redis.set('a', '1');
      expect(await primary.command('GET', 'a')).toBe('1');
      const at = await failover.write(async (redis, { term, primary: node }) => {
        await redis.set('a', '2');
        return { term, node };
      });
      expect(at).toEqual({ term: 1, node: addressOf(primary) });
      expect(await failover.redis.get('b')).toBe(null);
    });
  }
});
