import type { Stat, ZooKeeper } from '@incumbent/zookeeper';
import { AuthError, NoNodeError, ZooKeeperError } from '@incumbent/zookeeper';
import { join, nameOf } from '@incumbent/zookeeper/internal';

export interface WalkOptions {
  /** How many levels below the root are visited. */
  readonly maxDepth: number;
  /** Also ask for the stat of nodes whose children are not listed. */
  readonly stat: boolean;
  readonly data: boolean;
  readonly signal: AbortSignal;
}

export interface Visit {
  readonly path: string;
  readonly name: string;
  readonly depth: number;
  /** Of the node and those above it, without the root: whether it is the last of its siblings. */
  readonly lasts: readonly boolean[];
  /** Undefined when it was not asked for or could not be read. */
  readonly stat: Stat | undefined;
  readonly data: Uint8Array | null | undefined;
  /** Why the node could not be read. */
  readonly error: ZooKeeperError | undefined;
}

interface Found extends Pick<Visit, 'stat' | 'data' | 'error'> {
  readonly names: readonly string[];
}

interface Entry extends Pick<Visit, 'path' | 'depth' | 'lasts'> {
  /** Undefined: the node is gone. */
  found?: Promise<Found | undefined>;
}

/** Nodes that are read ahead of the one that is visited. */
const maxAhead = 64;

/**
 * A node and all below it, parents before their children, siblings by name. Each node is visited as
 * soon as it and all before it are read. Nodes that vanish meanwhile are left out, and nodes that
 * may not be read have an `error`. Throws if that happens to the root.
 */
export async function* walk(
  client: ZooKeeper,
  root: string,
  options: WalkOptions,
): AsyncGenerator<Visit, void, void> {
  const stack: Entry[] = [{ path: root, depth: 0, lasts: [] }];
  let ahead = 0;
  const begin = (entry: Entry): Promise<Found | undefined> => {
    if (entry.found === undefined) {
      ahead += 1;
      entry.found = read(client, entry, options);
      // The caller may stop the walk before this node's turn.
      entry.found.catch(() => {});
    }
    return entry.found;
  };
  for (let entry = stack.pop(); entry !== undefined; entry = stack.pop()) {
    const reading = begin(entry);
    for (let i = stack.length - 1; i >= 0 && ahead < maxAhead; i -= 1) {
      if (i < stack.length - maxAhead) break;
      void begin(stack[i] as Entry);
    }
    const found = await reading;
    ahead -= 1;
    if (found === undefined) continue;
    const { path, depth, lasts } = entry;
    const { names, stat, data, error } = found;
    yield { path, name: nameOf(path), depth, lasts, stat, data, error };
    const children = [...names].sort(byName);
    children.reverse().forEach((name, i) => {
      stack.push({ path: join(path, name), depth: depth + 1, lasts: [...lasts, i === 0] });
    });
  }
}

/** Numbers by their value, as in `item-9` and `item-10`. */
const { compare: byName } = new Intl.Collator('en', { numeric: true });

async function read(
  client: ZooKeeper,
  { path, depth }: Entry,
  { maxDepth, stat, data, signal }: WalkOptions,
): Promise<Found | undefined> {
  try {
    const [listed, known, got] = await Promise.all([
      depth < maxDepth ? client.getChildren(path, { signal }) : undefined,
      depth >= maxDepth && stat && !data ? client.stat(path, { signal }) : undefined,
      data ? client.get(path, { signal }) : undefined,
    ]);
    if (known?.stat === null) throw new NoNodeError({ path, operation: 'exists' });
    return {
      names: listed?.children ?? [],
      stat: listed?.stat ?? got?.stat ?? known?.stat,
      data: got?.data,
      error: undefined,
    };
  } catch (error) {
    if (depth === 0 || !(error instanceof ZooKeeperError)) throw error;
    if (error instanceof NoNodeError) return undefined;
    if (!(error instanceof AuthError && error.code === 'NO_AUTH')) throw error;
    return { names: [], stat: undefined, data: undefined, error };
  }
}
