import type { Mechanism } from '../harness/mechanism.ts';
import { guarantees } from './guarantees.ts';
import { loadLibrary } from './library.ts';
import { RedisFailoverSimulation } from './simulation.ts';
import { redisFailoverVariants } from './variant-list.ts';

const required: readonly string[] = [
  'writes acknowledged',
  'writes: NO_PRIMARY',
  'writes: OUTCOME_UNKNOWN',
  'writes in quarantine',
  'writes that only a fault has lost',
  'nodes emptied for a copy',
  'manager crashes',
  'manager stands still',
  'client stands still',
  'is killed',
  'is told to end',
  'loses its power',
  'has lost its data directory',
  'starts again',
  'stands still',
  'is cut off',
  'is cut off from ZooKeeper',
  'is left behind',
  'a second fault is prepared',
  'a session is ended',
  'an operator has to decide',
  'ZooKeeper server is cut off',
  'ZooKeeper server stands still',
  'link cut: forth',
  'link cut: back',
  'link cut: both',
  'link cut: refused',
  'link cut: reset',
  'moved: down',
  'moved: found',
  'moved: keep',
  'moved: lost-data',
  'moved: lost-role',
  'moved: unfinished',
  'moved: request',
  'is promoted by hand',
  'is told to follow a replica',
  'sets of four nodes',
  'sets with a replica of a replica',
  'sets that follow a second address',
  'node lists with a node less',
  'node lists with a second address',
  'requests for a failover',
  'told: quarantined',
  'told: reconciled',
  'told: fenced',
  'told: ousted',
  'a manager of the gem leads',
  'a manager of the gem promotes a node',
  'a manager of the gem crashes',
  'a manager of the gem stands still',
  'managers of both kinds run',
  'writes acknowledged without a term',
  'our managers go on with the primary that the gem has made',
  'clients follow the gem',
];

/** Managers and clients of Redis, on modelled nodes and a modelled ZooKeeper. */
export const redisFailover: Mechanism = {
  name: 'redis-failover',
  // One takes as long as several of the others.
  weight: 0.12,
  packages: ['redis-failover', 'incumbent', 'zookeeper'],
  async load(distOf) {
    const library = await loadLibrary(distOf);
    return (seed, readable) => new RedisFailoverSimulation(library, seed, readable);
  },
  guarantees,
  required,
  variants: redisFailoverVariants,
};
