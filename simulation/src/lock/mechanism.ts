import { loadLibrary } from '../harness/library.ts';
import type { Mechanism } from '../harness/mechanism.ts';
import { requiredEverywhere } from '../queue/mechanism.ts';
import { QueueSimulation } from '../queue/simulation.ts';
import { lockGround } from './ground.ts';
import { lockGuarantees } from './guarantees.ts';
import { lockVariants } from './variant-list.ts';

const required: readonly string[] = [
  ...requiredEverywhere,
  'announcements without a place',
  'leaders that are not ours',
  'leaders after one that is not ours',
  'terms of candidates that poll',
  'terms of a candidate that shares its client',
];

/** The lock of Hadoop's ActiveStandbyElector, on ZooKeeper. */
export const lock: Mechanism = {
  name: 'lock',
  // It shares most of its code with the queue.
  weight: 0.25,
  packages: ['incumbent'],
  async load(distOf) {
    const library = await loadLibrary(distOf('incumbent'));
    return (seed, readable) => new QueueSimulation(lockGround, library, seed, readable);
  },
  guarantees: lockGuarantees,
  required,
  variants: lockVariants,
  // As of the queue: it finds so much so early that no other guarantee would have to.
  foundFirst: ['proof'],
};
