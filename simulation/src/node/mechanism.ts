import { loadLibrary } from '../harness/library.ts';
import type { Mechanism } from '../harness/mechanism.ts';
import { requiredEverywhere } from '../queue/mechanism.ts';
import { QueueSimulation } from '../queue/simulation.ts';
import { nodeGround } from './ground.ts';
import { nodeGuarantees } from './guarantees.ts';
import { nodeVariants } from './variant-list.ts';

const required: readonly string[] = [
  ...requiredEverywhere,
  'announcements without a place',
  'leaders after one that is not ours',
  'terms of candidates that poll',
  'terms of a candidate that shares its client',
];

/** One node of any name, on ZooKeeper. */
export const node: Mechanism = {
  name: 'node',
  // It shares most of its code with the queue and the lock.
  weight: 0.2,
  packages: ['incumbent'],
  async load(distOf) {
    const library = await loadLibrary(distOf('incumbent'));
    return (seed, readable) => new QueueSimulation(nodeGround, library, seed, readable);
  },
  guarantees: nodeGuarantees,
  required,
  variants: nodeVariants,
  // As of the queue: it finds so much so early that no other guarantee would have to.
  foundFirst: ['proof'],
};
