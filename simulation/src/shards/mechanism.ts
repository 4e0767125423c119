import type { Mechanism } from '../harness/mechanism.ts';
import { guarantees } from './guarantees.ts';
import { loadLibrary } from './library.ts';
import { ShardsSimulation } from './simulation.ts';
import { variants } from './variant-list.ts';

const required: readonly string[] = [
  'terms',
  'effects',
  'joined',
  'hooks run',
  'works that return early',
  'crashes',
  'killed right after a write',
  'leaves: drain',
  'leaves: close',
  'moves to a newcomer',
  'entries: asked',
  'entries: clean',
  'entries: unclean',
  'fault: stall',
  'fault: suspend',
  'fault: clock',
  'fault: kill',
  'fault: cut requests',
  'fault: cut replies',
  'fault: outage',
  'fault: hiccup',
  'fault: resign',
  'fault: list',
  'loss: set back',
  'loss: deleted',
  'loss: damaged',
  'loss: unreadable',
  'loss: a grant, for the next coordinator',
];

/** Many shards, one lease for each process. */
export const shards: Mechanism = {
  name: 'shards',
  weight: 0.15,
  packages: ['shards', 'incumbent'],
  async load(distOf) {
    const library = await loadLibrary(distOf);
    return (seed, readable) => new ShardsSimulation(library, seed, readable);
  },
  guarantees,
  required,
  variants,
};
