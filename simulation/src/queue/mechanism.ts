import { existsSync } from 'node:fs';
import { loadLibrary } from '../harness/library.ts';
import type { Mechanism } from '../harness/mechanism.ts';
import { besideIncumbent } from '../harness/packages.ts';
import { queueGround } from './ground.ts';
import { queueGuarantees } from './guarantees.ts';
import { QueueSimulation } from './simulation.ts';
import { queueVariants } from './variant-list.ts';

/** Also of the lock and of the node. */
export const requiredEverywhere: readonly string[] = [
  'terms',
  'releases',
  'terms after a clean end',
  'terms after an unclean end',
  'terms announced after fencing',
  'sessions expired while leading',
  'sessions expired while waiting',
  'sessions ended by hand',
  'places deleted by hand',
  'sessions that led several elections lost some places',
  'leaders after one that spells its place otherwise',
  'leaders that die as soon as they are announced',
  'requests of a moved session refused',
  'elections inside the ensemble',
  'servers cut off',
  'servers frozen',
  'servers crashed',
  'servers that lag',
  'links cut',
  'links to one server cut',
  'requests with odd fates',
  'members that are not ours',
  'effects of an older term refused',
  'work that overran its belief',
  'crashes',
  'restarts under the same name',
  'children that outlived their parent',
  'handles closed',
  'withdrawals',
  'stalls of a leader beyond its belief',
  'stalls in the middle of a turn',
  'suspensions of a leader beyond its belief',
  'wall clocks set back',
  'wall clocks set forward',
  'event loops blocked by work',
  'operator: vacate',
  'operator: vacate by force',
  'operator: transfer',
  'operator: drain',
  'operator: end',
  'operator: reopen',
  'operators refused',
  'operators that ask at a win',
  'operators that ask at a release',
  'operators that ask too late',
  'restarts while a write of before is on its way',
  'writes of the dead that landed after their successor began',
  'proclamations',
  'terms that said that they are ready',
  'hooks run',
  'hooks that failed',
  'views seen by observers',
  'ended: resigned',
  'ended: withdrawn',
  'ended: work-finished',
  'ended: work-failed',
  'ended: renewal-failed',
  'ended: session-expired',
  'ended: disconnected',
  'ended: record-gone',
  'ended: vacated',
  'ended: handed-over',
  'ended: unhealthy',
  'ended: not-ready',
  'ended: stalled',
  'ended: election-ended',
];

const required: readonly string[] = [
  ...requiredEverywhere,
  'seats given back by a witness',
  'seats given back by a witness, to be fenced',
  'seats that a witness found to be gone',
  'successors named',
  'terms of named successors',
  'named successors that led at once',
  'successors that met something when they were named',
];

/** The place in a queue, on ZooKeeper. */
export const queue: Mechanism = {
  name: 'queue',
  packages: ['incumbent'],
  async load(distOf) {
    const library = await loadLibrary(distOf('incumbent'));
    const directory = distOf(besideIncumbent);
    const beside = existsSync(directory) ? await loadLibrary(directory) : undefined;
    return (seed, readable) => new QueueSimulation(queueGround, library, seed, readable, beside);
  },
  guarantees: queueGuarantees,
  required,
  variants: queueVariants,
  // It finds so much so early that no other guarantee would have to.
  foundFirst: ['proof'],
};
