/**
 * Managers of the Ruby gem exclude each other by a lock of the gem `zk`, which knows nothing of our
 * election. So the elected manager queues for that lock, too. A gem's manager before it in the
 * queue leads instead of it; a gem's manager behind it waits until ours has left.
 *
 * `zk.locker(name)` keeps, in every version, an ephemeral child `ex<ten digits>` below
 * `/_zklocking/<name with each slash as two underscores>`. That path is below the chroot, not below
 * the gem's own root.
 */
import { NoNodeError } from '@incumbent/zookeeper';
import type { Paths } from './layout.ts';
import type { ZooKeeperClient } from './zookeeper-client.ts';

interface GemLock {
  readonly name: string;
  /**
   * The lock is shared by all sets of the chroot, so its holders count only if they also report
   * below our root.
   */
  readonly needsReport: boolean;
  readonly version: string;
}

const name = 'master_redis_node_manager_lock';

function locksOf(root: string): readonly GemLock[] {
  return [
    { name: `${root}/${name}`, needsReport: false, version: '1.0' },
    { name, needsReport: true, version: '1.0 in development' },
    // This version reports nothing, so it is unknown whether it manages the same set. It counts.
    { name: 'master_node_manager', needsReport: false, version: 'before 1.0' },
  ];
}

/** The data of a place of ours in the queue. The gem writes nothing of the kind. */
const ownMark = 'incumbent-redis';

/**
 * Makes sure that this manager has a place in the queue for the gem's lock. If ZooKeeper denies
 * that (an ACL), managers of the gem are only looked for.
 */
export async function takeGemPlace(zk: ZooKeeperClient, { root }: Paths): Promise<void> {
  const parent = pathOf({ name: `${root}/${name}` });
  const session = zk.session?.id;
  const places = await placesBelow(zk, parent);
  if (places.some(({ owner, isOurs }) => isOurs && owner === session)) return;
  try {
    await zk.ensurePath(parent);
    await zk.create(`${parent}/ex`, ownMark, { ephemeral: true, sequential: true });
  } catch (error) {
    // The gem deletes the parent when it has no children. The next look tries again.
    const { code } = error as { readonly code?: unknown };
    if (code !== 'NO_AUTH' && code !== 'NO_NODE') throw error;
  }
}

/** Gives the place back, so that managers of the gem that wait behind it may go on. */
export async function leaveGemPlace(zk: ZooKeeperClient, { root }: Paths): Promise<void> {
  const parent = pathOf({ name: `${root}/${name}` });
  const session = zk.session?.id;
  for (const { child, owner, isOurs } of await placesBelow(zk, parent)) {
    if (isOurs && owner === session) await zk.delete(`${parent}/${child}`);
  }
}

/**
 * @returns the gem's managers that hold its lock, or wait for it before ours: names for a message
 */
export async function gemManagers(zk: ZooKeeperClient, paths: Paths): Promise<string[]> {
  const found = await Promise.all(
    locksOf(paths.root).map(async (lock) => {
      const places = await placesBelow(zk, pathOf(lock));
      const ours = places.findIndex(({ isOurs }) => isOurs);
      const before = ours < 0 ? places : places.slice(0, ours);
      return { lock, owners: new Map(before.map(({ child, owner }) => [child, owner])) };
    }),
  );
  if (found.every(({ owners }) => owners.size === 0)) return [];
  // A manager's report and its place in the queue belong to the same session.
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

function pathOf({ name }: Pick<GemLock, 'name'>): string {
  return `/_zklocking/${name.replaceAll('/', '__')}`;
}

interface Place {
  readonly child: string;
  readonly owner: bigint;
  readonly isOurs: boolean;
}

/** In the order of the queue: the first place holds the lock. */
async function placesBelow(zk: ZooKeeperClient, parent: string): Promise<readonly Place[]> {
  const owners = await ownersBelow(zk, parent);
  const places = await Promise.all(
    [...owners].map(async ([child, owner]): Promise<Place | undefined> => {
      try {
        const { text } = await zk.get(`${parent}/${child}`);
        return { child, owner, isOurs: text === ownMark };
      } catch (error) {
        if (error instanceof NoNodeError) return undefined;
        throw error;
      }
    }),
  );
  const number = ({ child }: Place) => Number(child.slice(-10));
  return places.filter((place) => place !== undefined).sort((a, b) => number(a) - number(b));
}

/**
 * The children of a node by name, each with the session that owns it. Children that are not
 * ephemeral are left out.
 */
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
