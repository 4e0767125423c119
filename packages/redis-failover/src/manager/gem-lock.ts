/**
 * Managers of the Ruby gem exclude each other by a lock of the gem `zk`, which knows nothing of our
 * election. So ours looks whether anybody holds that lock or waits for it, and does nothing then.
 *
 * `zk.locker(name)` keeps, in every version, an ephemeral child `ex<ten digits>` below
 * `/_zklocking/<name with each slash as two underscores>`: of the chroot, not of the gem's own root.
 */
import { NoNodeError } from '@incumbent/zookeeper';
import type { Paths } from '../layout.ts';
import type { ZooKeeperClient } from '../zookeeper-client.ts';

interface GemLock {
  readonly name: string;
  /** Shared by all sets of the chroot: only who also reports below our root counts. */
  readonly needsReport: boolean;
  readonly version: string;
}

function locksOf(root: string): readonly GemLock[] {
  const name = 'master_redis_node_manager_lock';
  return [
    { name: `${root}/${name}`, needsReport: false, version: '1.0' },
    { name, needsReport: true, version: '1.0 in development' },
    // It reports nothing, so whether it manages the same set cannot be known: it counts.
    { name: 'master_node_manager', needsReport: false, version: 'before 1.0' },
  ];
}

/** @returns the names of the gem's managers that hold its lock or wait for it, to be shown */
export async function gemManagers(zk: ZooKeeperClient, paths: Paths): Promise<string[]> {
  const found = await Promise.all(
    locksOf(paths.root).map(async (lock) => ({
      lock,
      owners: await ownersBelow(zk, pathOf(lock)),
    })),
  );
  if (found.every(({ owners }) => owners.size === 0)) return [];
  // A manager's report and its place in the lock belong to one session.
  const reporters = new Map(
    [...(await ownersBelow(zk, paths.reports))].map(([id, owner]) => [owner, id]),
  );
  return found.flatMap(({ lock: { needsReport, version }, owners }) =>
    [...owners].flatMap(([child, owner]) => {
      const id = reporters.get(owner);
      if (id !== undefined) return [id];
      return needsReport ? [] : [`${child} of session 0x${owner.toString(16)}, gem ${version}`];
    }),
  );
}

function pathOf({ name }: GemLock): string {
  return `/_zklocking/${name.replaceAll('/', '__')}`;
}

/** The sessions that the children of a node belong to, by their names. */
async function ownersBelow(
  zk: ZooKeeperClient,
  parent: string,
): Promise<ReadonlyMap<string, bigint>> {
  let names: readonly string[];
  try {
    ({ children: names } = await zk.getChildren(parent));
  } catch (error) {
    if (error instanceof NoNodeError) return new Map();
    throw error;
  }
  const pairs = await Promise.all(
    [...names].sort().map(async (name): Promise<[string, bigint] | undefined> => {
      const { stat } = await zk.stat(`${parent}/${name}`);
      return stat === null || stat.ephemeralOwner === 0n ? undefined : [name, stat.ephemeralOwner];
    }),
  );
  return new Map(pairs.filter((pair) => pair !== undefined));
}
