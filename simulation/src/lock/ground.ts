/**
 * The lock in the simulation of the queue: a queue of one place, whose name recurs with every holder.
 * So a place is known here as the library names it, by the number of its making.
 */
import type { Ground } from '../queue/ground.ts';
import { recordsAbove } from '../queue/ground.ts';
import { LockGuarantees } from './guarantees.ts';
import { isLock, lockIn, placeOfLock } from './nodes.ts';
import { drawLockScenario } from './scenario.ts';
import { visitLock } from './strangers.ts';

export const lockGround: Ground = {
  drawScenario: (seed) => drawLockScenario(seed, 'hadoop'),
  ...recordsAbove,
  guarantees: (sim, contest) => new LockGuarantees(sim, contest),
  placeOf: placeOfLock,
  pathOf: (place) => place.split('@')[0] as string,
  placesIn(tree, election) {
    const path = lockIn(election);
    const node = tree.get(path);
    return node === undefined ? [] : [placeOfLock(path, node)];
  },
  isAnnouncement(request) {
    if (request.kind !== 'write') return false;
    const types = request.operations.map(({ type }) => type);
    return types.includes('set') && !types.includes('delete');
  },
  isLook: (request) => request.kind === 'get' && isLock(request.path),
  readsTogether: true,
  visit: visitLock,
  // A look at a lock is four reads, and one at the record is seven.
  requestsPerInterval: 150,
};
