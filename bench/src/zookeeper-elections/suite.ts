/**
 * `npm run bench -- zookeeper-elections`: elections on ZooKeeper beside those of others, on the same
 * servers in the same run. Ends with 0 also when a goal is missed; with 1 when something could not be
 * measured or an election was wrong.
 */
import { serverAvailable } from '@incumbent/zookeeper-testing';
import type { Benchmark } from '../benchmark.ts';
import { usageOf } from '../options.ts';
import type { Suite } from '../suite.ts';
import { makeOf, runSuite } from '../suite.ts';
import { findPeers } from '../zookeeper/peers.ts';
import { joined } from './benchmarks/joined.ts';
import { kill } from './benchmarks/kill.ts';
import { led } from './benchmarks/led.ts';
import { resign } from './benchmarks/resign.ts';
import type { Curator } from './curator.ts';
import { compileCurator } from './curator.ts';
import type { Stage } from './stage.ts';
import { makeStage, sessionTimeoutMs, tickTimeMs } from './stage.ts';

const makers: Readonly<Record<string, (stage: Stage) => Benchmark>> = {
  resign,
  kill,
  led,
  joined,
};

const asked = {
  subject: 'zookeeper-elections',
  names: Object.keys(makers),
  defaultRounds: 5,
} as const;

const suite: Suite = {
  ...asked,
  stored: 'servers',
  usage: usageOf(asked, 'where the servers keep their data'),
  async prepare(surroundings, progress) {
    const noServer = serverAvailable();
    if (noServer !== undefined) throw new Error(noServer);
    const peers = findPeers(progress);
    const curator = await compileCurator(surroundings.newDirectory()).catch(
      (error: unknown): Curator | Error => error as Error,
    );
    const stage = makeStage(surroundings, peers, curator);
    const [server] = await stage.servers('standalone');
    const version = /version: ([\d.]+)/.exec((await server?.fourLetterWord('srvr')) ?? '')?.[1];
    const versions = [...peers.versions.values()];
    if (!(curator instanceof Error)) versions.push(`Curator ${curator.version}`);
    return {
      make: makeOf(makers, stage),
      notes: [
        `ZooKeeper ${version}, tick ${tickTimeMs} ms, sessions of ${sessionTimeoutMs} ms unless a row says otherwise, commits synced`,
        versions.join(', '),
        ...[...stage.absent].map(([name, reason]) => `${name} is absent: ${reason}`),
      ],
      close: () => stage.close(),
    };
  },
};

export function run(args: readonly string[]): Promise<number> {
  return runSuite(suite, args);
}
