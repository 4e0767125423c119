/** One node of any name in the simulation of the queue: as the lock, with other nodes beside it. */
import { nameOf, parentOf } from '../harness/zookeeper/tree.ts';
import { lockGround } from '../lock/ground.ts';
import { drawLockScenario } from '../lock/scenario.ts';
import type { Ground } from '../queue/ground.ts';
import { NodeGuarantees } from './guarantees.ts';
import { isLock, lockBeside, placeOfLock, recordOf } from './nodes.ts';
import { visitNode } from './strangers.ts';

export const nodeGround: Ground = {
  ...lockGround,
  drawScenario: (seed) => drawLockScenario(seed, 'node'),
  guarantees: (sim, contest) => new NodeGuarantees(sim, contest),
  recordOf,
  placeIn: (record, recorded) =>
    `${parentOf(record) === '/' ? '' : parentOf(record)}/${nameOf(recorded)}`,
  placeOf: placeOfLock,
  placesIn(tree, record) {
    const path = lockBeside(record);
    const node = tree.get(path);
    return node === undefined ? [] : [placeOfLock(path, node)];
  },
  isLook: (request) => request.kind === 'get' && isLock(request.path),
  visit: visitNode,
};
