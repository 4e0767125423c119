// A client in a process of its own. It writes once, closes, and then has to exit by itself:
//
//     node client-process.mjs <ZooKeeper> <root> <redis or ioredis> <key>
import { Redis } from 'ioredis';
import { createClient } from 'redis';

const { RedisFailover, ioredis, nodeRedis } = await import('../../dist/index.js');
const [, , zookeeper, root, library, key] = process.argv;

const redis = library === 'redis' ? nodeRedis(createClient) : ioredis(Redis);
const failover = await RedisFailover.connect({ zookeeper, root, redis });
await failover.redis.set(key, 'v');
await failover.redis.get(key);
const own = await failover.dedicated();
await failover.close();
console.log(`closed ${own.signal.aborted}`);
