/**
 * Where the elections on ZooKeeper differ for those who look at the store from outside: the queue,
 * the lock of `../lock/` and the node of `../node/`. Everything else of this folder serves all.
 */
import type { Request } from '../harness/zookeeper/ensemble.ts';
import type { Node, Tree } from '../harness/zookeeper/tree.ts';
import { nameOf } from '../harness/zookeeper/tree.ts';
import type { QueueChaos } from './chaos.ts';
import { QueueGuarantees } from './guarantees.ts';
import type { QueueScenario } from './scenario.ts';
import { drawQueueScenario } from './scenario.ts';
import type { Contested, QueueSimulation } from './simulation.ts';
import { visitQueue } from './strangers.ts';

export interface Ground {
  drawScenario(seed: number): QueueScenario;
  guarantees(sim: QueueSimulation, contest: Contested): QueueGuarantees;
  /** The node with the record of the election that is at this path. */
  recordOf(election: string): string;
  /** The full path of a place, as the record in that node names it by whatever path. */
  placeIn(record: string, recorded: string): string;
  /** The place that a node is: no other place ever has this name. */
  placeOf(path: string, node: Node): string;
  /** The node that a place is while it is there; afterwards the node may be another place. */
  pathOf(place: string): string;
  /**
   * In the order in which they lead.
   * @param record the node with the election's record
   */
  placesIn(tree: Tree, record: string): readonly string[];
  isAnnouncement(request: Request): boolean;
  /** A look at who is there. */
  isLook(request: Request): boolean;
  /** The record is read together with other nodes, and again if it has changed meanwhile. */
  readonly readsTogether: boolean;
  /** Members that are not ours take part, until faults stop. */
  visit(chaos: QueueChaos): void;
  /** Requests of one process in a renewal interval while nothing changes. */
  readonly requestsPerInterval: number;
}

/** Where the record is the data of the election's own node, and places are below it. */
export const recordsAbove: Pick<Ground, 'recordOf' | 'placeIn'> = {
  recordOf: (election) => election,
  placeIn: (record, recorded) => `${record}/${nameOf(recorded)}`,
};

export const queueGround: Ground = {
  drawScenario: (seed) => drawQueueScenario(seed),
  guarantees: (sim, contest) => new QueueGuarantees(sim, contest),
  ...recordsAbove,
  placeOf: (path) => path,
  pathOf: (place) => place,
  placesIn(tree, election) {
    const numbered = (tree.get(election)?.children ?? []).flatMap((child) => {
      const match = /(\d{10}|-\d{9,10})$/.exec(child);
      return match === null ? [] : [{ child, number: Number(match[1]) }];
    });
    numbered.sort((a, b) => (a.number - b.number) | 0);
    return numbered.map(({ child }) => `${election}/${child}`);
  },
  // Of the record, and not of a place.
  isAnnouncement: ({ kind, ...request }) =>
    kind === 'write' &&
    'operations' in request &&
    request.operations[0]?.type === 'set' &&
    !/\d{10}$/.test(request.operations[0].path),
  isLook: ({ kind }) => kind === 'children',
  readsTogether: false,
  visit: visitQueue,
  requestsPerInterval: 60,
};
