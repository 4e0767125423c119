import type { Mechanism } from '../harness/mechanism.ts';
import { guarantees } from './guarantees.ts';
import { loadLibrary } from './library.ts';
import { RedisFailoverSimulation } from './simulation.ts';
import { redisFailoverVariants } from './variant-list.ts';

const required: readonly string[] = [];

/** Managers and clients of Redis, on modelled nodes and a modelled ZooKeeper. */
export const redisFailover: Mechanism = {
  name: 'redis-failover',
  packages: ['redis-failover', 'incumbent', 'zookeeper'],
  async load(distOf) {
    const library = await loadLibrary(distOf);
    return (seed, readable) => new RedisFailoverSimulation(library, seed, readable);
  },
  guarantees,
  required,
  variants: redisFailoverVariants,
};
