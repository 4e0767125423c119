/** Goes over the nodes below a root, level by level, with many requests under way at once. */
import { inParallel } from '../../base/in-parallel.ts';
import { leasesNode } from './check-options.ts';
import type { NodeContent, ZooKeeperClient } from './client.ts';
import { codeOf } from './client.ts';
import { storeError } from './errors.ts';

/** How many nodes a page has. */
const nodesAPage = 1_000;
/** How many nodes are read at once. A session answers its requests in their order. */
const readsAtOnce = 200;

/** A node below the root. */
export interface VisitedNode {
  readonly path: string;
  /** Its path below the root, without the slash before it: the name of an election there. */
  readonly name: string;
  readonly content: NodeContent;
  /** Not older than the content. */
  readonly children: readonly string[];
}

/** A node that may not be read. */
export interface UnreadableNode {
  readonly path: string;
  readonly name: string;
  readonly error: unknown;
}

export type Node = VisitedNode | UnreadableNode;

export interface NodePage {
  readonly nodes: readonly Node[];
  readonly next: unknown;
}

/**
 * @param after `next` of the page before
 * @param goesInto which children of a node may be nodes of elections, or lead to them
 */
export async function visitPage(
  client: ZooKeeperClient,
  root: string,
  after: unknown,
  goesInto: (child: string) => boolean,
  signal: AbortSignal,
): Promise<NodePage> {
  const below = root === '/' ? '' : root;
  const queue = (after as readonly string[] | undefined) ?? (await first());
  const nodes = await inParallel(queue.slice(0, nodesAPage), readsAtOnce, (name) => {
    signal.throwIfAborted();
    return visit(client, { path: `${below}/${name}`, name }, signal);
  });
  const found = nodes.filter((node) => node !== undefined);
  const children = found.flatMap((node) =>
    'children' in node
      ? node.children.filter(goesInto).map((child) => `${node.name}/${child}`)
      : [],
  );
  const next = [...queue.slice(nodesAPage), ...children];
  return { nodes: found, next: next.length === 0 ? undefined : next };

  async function first(): Promise<readonly string[]> {
    try {
      // A server may lag behind the writes of others.
      await client.sync(root, { signal });
      const { children: top } = await client.getChildren(root, { signal });
      const isOther = (child: string) =>
        // The servers' own.
        (root === '/' && child === 'zookeeper') || child === leasesNode;
      return top.filter((child) => goesInto(child) && !isOther(child));
    } catch (error) {
      if (codeOf(error) === 'NO_NODE') return [];
      throw storeError(error, root);
    }
  }
}

/** @returns undefined when it is gone meanwhile */
export async function visit(
  client: ZooKeeperClient,
  { path, name }: Pick<VisitedNode, 'path' | 'name'>,
  signal: AbortSignal,
): Promise<Node | undefined> {
  try {
    // One session answers in the order of the requests.
    const [content, { children }] = await Promise.all([
      client.get(path, { signal }),
      client.getChildren(path, { signal }),
    ]);
    return { path, name, content, children };
  } catch (error) {
    if (codeOf(error) === 'NO_NODE') return undefined;
    const shown = storeError(error, path);
    if (codeOf(error) === 'NO_AUTH') return { path, name, error: shown };
    throw shown;
  }
}
