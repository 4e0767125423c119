/** The program that docs/coming-from/redis-failover.md shows. */

import { nodeRedis, RedisFailover } from '@incumbent/redis-failover';
import { createClient } from 'redis';

const failover = await RedisFailover.connect({
  zookeeper: 'zk://zk1:2181,zk2:2181',
  redis: nodeRedis(createClient),
});
await failover.redis.set('greeting', 'hello');
