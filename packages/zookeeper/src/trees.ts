/** Helpers that take several requests. */
import { checkAcl } from './acl.ts';
import type { CallOptions, Data } from './arguments.ts';
import { checkCount, checkOptions, describe, namesOf } from './arguments.ts';
import { boundsOf } from './bounds.ts';
import type { Caller } from './caller.ts';
import { planCreate, sendCreate } from './create.ts';
import {
  AuthError,
  InvalidArgumentError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  RefusedError,
  ZooKeeperError,
} from './errors.ts';
import { join, parentOf } from './paths.ts';
import type { Acl } from './protocol/messages.ts';
import { requests } from './protocol/requests.ts';

/** Options of `ensurePath`. */
export interface EnsurePathOptions extends CallOptions {
  /**
   * The ACL of the nodes that are made. Default: everybody has all rights. It must not be
   * undefined.
   */
  readonly acl?: readonly Acl[];
  /** The data of the last node, if it is made. Default null. */
  readonly data?: Data | undefined;
}

const ensurePathOptions = namesOf<EnsurePathOptions>({
  ...{ signal: true, timeoutMs: true, acl: true, data: true },
});

/** Makes a node and those above it that are missing. `/` makes the chroot. */
export async function ensurePath(
  caller: Caller,
  path: string,
  options: EnsurePathOptions,
): Promise<void> {
  checkOptions('ensurePath', options, ensurePathOptions);
  const serverPath = caller.serverPath(path);
  const { acl, data = null } = options;
  if (acl !== undefined) checkAcl(acl);
  const bounds = boundsOf(caller, options);
  // From the bottom, so that the usual case takes one request: the node exists, or only it is
  // missing.
  const missing = [serverPath];
  for (;;) {
    const current = missing.at(-1);
    if (current === undefined || current === '/') return;
    const userPath = caller.chroot.toUser(current);
    const plan = planCreate(
      caller,
      userPath,
      current === serverPath ? data : null,
      acl === undefined ? {} : { acl },
    );
    try {
      await sendCreate(
        caller,
        userPath,
        { ...plan, body: { ...plan.body, path: current } },
        bounds(),
      );
      missing.pop();
    } catch (error) {
      if (error instanceof NodeExistsError) missing.pop();
      else if (error instanceof NoNodeError) missing.push(parentOf(current));
      // Servers check rights and quotas before they check whether the node exists.
      else if (isRefusal(error) && (await isThere(current))) missing.pop();
      else throw error;
    }
  }

  function isThere(path: string): Promise<boolean> {
    return caller.call(
      { kind: requests.exists, complete: () => true, absent: () => false },
      caller.chroot.toUser(path),
      { path, watch: false },
      bounds(),
    );
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof AuthError || error instanceof RefusedError;
}

/** Options of `deleteRecursive`. */
export interface DeleteRecursiveOptions extends CallOptions {
  /** The most nodes to delete. If there are more, nothing is deleted. Default 100,000. */
  readonly maxNodes?: number | undefined;
  /** Called after each node that was deleted. */
  readonly onProgress?: ((progress: { deleted: number; found: number }) => void) | undefined;
}

const deleteRecursiveOptions = namesOf<DeleteRecursiveOptions>({
  ...{ signal: true, timeoutMs: true, maxNodes: true, onProgress: true },
});

/** How many nodes are listed or deleted at the same time. */
const concurrency = 100;
/** How often the tree is listed again because others add nodes to it meanwhile. */
const maxRounds = 10;

/**
 * Deletes a node and all below it, the deepest first. Not atomic. A node that is gone already is no
 * error. Nodes that others add meanwhile are deleted too, in up to ten rounds.
 * @returns how many nodes were deleted; 0 if there was none
 */
export async function deleteRecursive(
  caller: Caller,
  path: string,
  options: DeleteRecursiveOptions,
): Promise<{ readonly deleted: number }> {
  checkOptions('deleteRecursive', options, deleteRecursiveOptions);
  const serverPath = caller.serverPath(path);
  if (serverPath === '/' || serverPath === '/zookeeper' || serverPath.startsWith('/zookeeper/')) {
    throw new InvalidArgumentError(`${path} belongs to the server and is not deleted`, { path });
  }
  const maxNodes = checkCount('maxNodes', options.maxNodes ?? 100_000);
  const { onProgress } = options;
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw new InvalidArgumentError(`onProgress is a function, not ${describe(onProgress)}`);
  }
  const bounds = boundsOf(caller, options);
  let deleted = 0;
  for (let round = 1; ; round += 1) {
    const paths = await listTree(caller, path, maxNodes, bounds);
    try {
      await deleteAll(paths);
      return { deleted };
    } catch (error) {
      if (!(error instanceof NotEmptyError) || round === maxRounds) throw error;
    }
  }

  async function deleteAll(paths: readonly string[]): Promise<void> {
    // In the list children come after their parents, so it goes from the deepest level up.
    const byDepth = new Map<number, string[]>();
    for (const one of paths) {
      const depth = one === '/' ? 0 : one.split('/').length;
      const level = byDepth.get(depth);
      if (level === undefined) byDepth.set(depth, [one]);
      else level.push(one);
    }
    for (const depth of [...byDepth.keys()].sort((a, b) => b - a)) {
      await forEach(byDepth.get(depth) as string[], async (one) => {
        const gone = await caller.call(
          { kind: requests.delete, complete: () => true, absent: () => false },
          one,
          { path: caller.chroot.toServer(one), version: -1 },
          bounds(),
        );
        if (!gone) return;
        deleted += 1;
        onProgress?.({ deleted, found: paths.length });
      });
    }
  }
}

/** All paths below `root` and itself, parents first. */
async function listTree(
  caller: Caller,
  root: string,
  maxNodes: number,
  bounds: () => CallOptions | undefined,
): Promise<readonly string[]> {
  const paths: string[] = [root];
  let level = [root];
  while (level.length > 0) {
    const next: string[] = [];
    await forEach(level, async (path) => {
      const names = await caller.call(
        { kind: requests.getChildren, complete: ({ children }) => children, absent: () => [] },
        path,
        { path: caller.chroot.toServer(path), watch: false },
        bounds(),
      );
      for (const name of names) next.push(join(path, name));
      if (paths.length + next.length > maxNodes) {
        throw new ZooKeeperError(
          'TOO_MANY_NODES',
          `${root} has more than ${maxNodes} nodes (maxNodes); nothing was deleted`,
          { path: root, operation: 'deleteRecursive' },
        );
      }
    });
    paths.push(...next);
    level = next;
  }
  return paths;
}

/**
 * Runs `work` for every item, some at a time. Rejects with the first error after all have ended.
 */
async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  let index = 0;
  const errors: unknown[] = [];
  const worker = async () => {
    while (index < items.length && errors.length === 0) {
      const item = items[index] as T;
      index += 1;
      try {
        await work(item);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker));
  if (errors.length > 0) throw errors[0];
}
