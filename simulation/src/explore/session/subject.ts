import { join } from 'node:path';
import type { View } from '../../../../packages/zookeeper/dist/session/view.js';
import { distOf } from '../../harness/packages.ts';
import type { Subject } from '../subject.ts';
import { walk } from '../walk.ts';
import { breaks } from './breaks.ts';
import type { SessionMachine, World } from './model.ts';
import { firstWorlds, problemOf, successors } from './model.ts';

/** A session of the ZooKeeper client: one client, its connection, and servers. */
export const session: Subject = {
  name: 'session',
  package: 'zookeeper',
  file: 'session/session-machine.js',
  breaks,
  bounds: { faults: 2, terms: 1 },
  brokenBounds: { faults: 2, terms: 1 },
  async explore(machine, { faults }) {
    const seen = await import(join(distOf()('zookeeper'), 'session/view.js'));
    const options = { machine: machine as SessionMachine, View: seen.View as typeof View };
    return walk<World>({
      firsts: firstWorlds(faults, options),
      successors: (world) => successors(world, options),
      problemOf: (world) => problemOf(world, options),
      keyOf: (world) => JSON.stringify(world),
    });
  },
};
