import type { ClientOptions, Clock } from '@incumbent/zookeeper';
import { ZooKeeper } from '@incumbent/zookeeper';
import type { Election, ElectionOptions } from 'incumbent';
import type { ZooKeeperGuard } from 'incumbent/zookeeper';
import { systemClock } from '../clock.ts';
import type { OpenNode } from '../redis/node-connection.ts';
import { NodeConnection } from '../redis/node-connection.ts';
import type { ReadTail } from '../redis/tail.ts';
import { readTail } from '../redis/tail.ts';
import type { ZooKeeperClient } from '../zookeeper-client.ts';

/** Everything that a manager takes from outside. A simulation supplies its own. */
export interface Surroundings {
  readonly clock: Clock;
  /** Empty by default: the election finds the machine's clocks itself. */
  readonly forElection: Pick<ElectionOptions<ZooKeeperGuard>, 'clock' | 'random'>;
  /** Default: createElection. */
  readonly openElection?: (
    options: ElectionOptions<ZooKeeperGuard>,
  ) => Pick<Election<ZooKeeperGuard>, 'close' | 'lead'>;
  readonly openNode: OpenNode;
  /** Absent: the end of a stream cannot be read, so it proves nothing. */
  readonly readTail?: ReadTail;
  /** Connects in the background. */
  readonly openZooKeeper: (url: string, options: ClientOptions) => ZooKeeperClient;
}

export const machine: Surroundings = {
  clock: systemClock,
  forElection: {},
  openNode: NodeConnection.open,
  readTail,
  openZooKeeper: (url, options) => new ZooKeeper(url, options),
};
