/** Further calls of ActiveStandbyElector: its active member's data, and its parent node. */
import {
  ElectionError,
  InvalidOptionError,
  LeftBehindError,
  RefusedError,
  StoreUnavailableError,
} from '../../base/errors.ts';
import { checkOptions, electionPath } from './check-options.ts';
import type { NodeAcl, ZooKeeperClient } from './client.ts';
import { codeOf } from './client.ts';
import { storeError } from './errors.ts';
import { breadcrumbName, candidateOf, lockName } from './hadoop-format.ts';
import { LockSession } from './lock-session.ts';
import type { ZooKeeperOptions } from './options.ts';

export { activeDataOf } from './hadoop-format.ts';

export interface HadoopCallOptions {
  readonly signal?: AbortSignal;
}

/** How often the lock is given back before that is an error. */
const maxTries = 10;

/** No member is active. */
export class ActiveNotFoundError extends ElectionError {
  override readonly name: string = 'ActiveNotFoundError';
  constructor(path: string) {
    super('NOT_ELECTED', `nobody is active below ${path}`, { retryable: true });
  }
}

/**
 * The bytes in the lock of the active member.
 * @param path the parent node, such as `/hadoop-ha/nameservice1`
 * @throws ActiveNotFoundError when no member is active
 * @throws StoreUnavailableError, StoreUnsuitableError
 */
export async function getActiveData(
  client: ZooKeeperClient,
  path: string,
  options: HadoopCallOptions = {},
): Promise<Uint8Array> {
  const call = callOptions(options);
  const lock = `${parentPath(path)}/${lockName}`;
  return attempt(path, async () => {
    try {
      await client.sync(lock, call);
      const { data } = await client.get(lock, call);
      return new Uint8Array(data ?? []);
    } catch (error) {
      if (codeOf(error) === 'NO_NODE') throw new ActiveNotFoundError(path);
      throw error;
    }
  });
}

/** True when there is a parent node. An election in which no member has taken part has none. */
export async function parentNodeExists(
  client: ZooKeeperClient,
  path: string,
  options: HadoopCallOptions = {},
): Promise<boolean> {
  const call = callOptions(options);
  parentPath(path);
  return attempt(path, async () => {
    await client.sync(path, call);
    return (await client.stat(path, call)).stat !== null;
  });
}

/** The options of `ensureParentNode`. */
export interface EnsureParentOptions extends HadoopCallOptions {
  /**
   * The access rules of the nodes of the path. When given, nodes that are there already get
   * them too, as Hadoop does it. Otherwise those are left as they are, and missing ones are
   * open to everybody.
   */
  readonly acl?: ZooKeeperOptions['acl'];
}

/** Makes the parent node, and the missing ones above it. */
export async function ensureParentNode(
  client: ZooKeeperClient,
  path: string,
  options: EnsureParentOptions = {},
): Promise<void> {
  const call = callOptions(options);
  const { acl: wanted } = options;
  const { acl } = checkOptions(wanted === undefined ? {} : { acl: wanted });
  const segments = parentPath(path).slice(1).split('/');
  for (const [index] of segments.entries()) {
    const node = `/${segments.slice(0, index + 1).join('/')}`;
    await attempt(node, async () => {
      try {
        await client.create(node, new Uint8Array(0), { acl, ...call });
        return;
      } catch (error) {
        // Servers look at rights first, and only then whether the node is there.
        const isThere = codeOf(error) === 'NODE_EXISTS' || codeOf(error) === 'NO_AUTH';
        if (!isThere || (await client.stat(node, call)).stat === null) throw error;
      }
      if (wanted === undefined) return;
      const present = await client.getAcl(node, call);
      if (!sameAcl(present.acl, acl)) await client.setAcl(node, acl, call);
    });
  }
}

/** The options of `clearParentNode`. */
export interface ClearParentOptions extends HadoopCallOptions {
  /**
   * True: clears also when the last active member has not said that it stopped. The next active
   * member would then neither wait for it nor fence it. So do that first. Default false.
   */
  readonly force?: boolean;
}

/**
 * Deletes the parent node with everything below it. No member can become active meanwhile. For an
 * election without members: waiting ones would begin anew.
 * @returns false when there is none
 * @throws RefusedError while a member is active, and without `force` while a member may have
 * to be fenced
 */
export async function clearParentNode(
  client: ZooKeeperClient,
  path: string,
  options: ClearParentOptions = {},
): Promise<boolean> {
  const call = callOptions(options);
  const parent = parentPath(path);
  const [lock, breadcrumb] = [`${parent}/${lockName}`, `${parent}/${breadcrumbName}`];
  const session = LockSession.of(client);
  const guid = `clear-${Math.random()}`;
  if (session.id === undefined) {
    throw new StoreUnavailableError(`the client has no session (it is ${client.state})`);
  }
  if (!session.claim(lock, guid)) {
    throw new RefusedError(`a candidate of this process takes part in the election at ${path}`);
  }
  return attempt(path, async () => {
    try {
      if (!(await takeLock(client, path, lock, call))) return false;
      const crumb = await getOrNone(client, breadcrumb, call);
      if (crumb !== undefined && options.force !== true) {
        const { id } = candidateOf(crumb, crumb.stat.mzxid);
        throw new RefusedError(
          `"${id}" was active at ${path} and has not said that it stopped: make sure that it has, ` +
            'and clear with force',
        );
      }
      await deleteBelow(client, parent, new Set([lock, breadcrumb]), call);
      const transaction = client.transaction();
      if (crumb !== undefined) transaction.delete(breadcrumb, crumb.stat.version);
      await transaction.delete(lock).delete(parent).commit(call);
      return true;
    } finally {
      try {
        await giveBack(client, lock, session);
      } finally {
        // Otherwise no candidate on this client could ever take the lock again.
        session.unclaim(lock);
      }
    }
  });
}

/**
 * Takes the lock, so that no other member becomes active.
 * @returns false when there is no parent
 */
async function takeLock(
  client: ZooKeeperClient,
  path: string,
  lock: string,
  call: HadoopCallOptions,
): Promise<boolean> {
  try {
    await client.create(lock, 'clearParentNode', { ephemeral: true, ...call });
    return true;
  } catch (error) {
    if (codeOf(error) === 'NO_NODE') return false;
    if (codeOf(error) !== 'NODE_EXISTS') throw error;
    const holder = await getOrNone(client, lock, call);
    const { id } = candidateOf(holder ?? { data: null }, 0n);
    throw new RefusedError(`"${id}" is active at ${path}: stop all its members first`);
  }
}

/**
 * A lock that stays would keep all members out for as long as our session lives. So a caller's stop
 * does not cut this short.
 */
async function giveBack(
  client: ZooKeeperClient,
  lock: string,
  session: LockSession,
): Promise<void> {
  const { id } = session;
  for (let tries = 1; session.id === id; tries += 1) {
    try {
      const held = await getOrNone(client, lock, {});
      if (held !== undefined && held.stat.ephemeralOwner === id) await client.delete(lock);
      return;
    } catch (error) {
      if (codeOf(error) === 'NO_NODE') return;
      if (tries === maxTries) throw new LeftBehindError(lock, { cause: error });
    }
  }
}

async function deleteBelow(
  client: ZooKeeperClient,
  path: string,
  spared: ReadonlySet<string>,
  call: HadoopCallOptions,
): Promise<void> {
  let children: readonly string[];
  try {
    ({ children } = await client.getChildren(path, call));
  } catch (error) {
    if (codeOf(error) === 'NO_NODE') return;
    throw error;
  }
  for (const child of children) {
    const node = `${path}/${child}`;
    if (spared.has(node)) continue;
    await deleteBelow(client, node, spared, call);
    try {
      await client.delete(node, call);
    } catch (error) {
      if (codeOf(error) !== 'NO_NODE') throw error;
    }
  }
}

async function getOrNone(
  client: ZooKeeperClient,
  path: string,
  call: HadoopCallOptions,
): Promise<Awaited<ReturnType<ZooKeeperClient['get']>> | undefined> {
  try {
    return await client.get(path, call);
  } catch (error) {
    if (codeOf(error) === 'NO_NODE') return undefined;
    throw error;
  }
}

function sameAcl(first: readonly NodeAcl[], second: readonly NodeAcl[]): boolean {
  const has = (list: readonly NodeAcl[], { perms, scheme, id }: NodeAcl) =>
    list.some((each) => each.perms === perms && each.scheme === scheme && each.id === id);
  return first.every((each) => has(second, each)) && second.every((each) => has(first, each));
}

/** @throws InvalidOptionError */
function parentPath(path: string): string {
  if (typeof path !== 'string' || !path.startsWith('/') || path === '/') {
    throw new InvalidOptionError(
      `the parent node is a path such as "/hadoop-ha/nameservice1", not ${JSON.stringify(path)}`,
    );
  }
  return electionPath('/', path.slice(1));
}

function callOptions({ signal }: HadoopCallOptions): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

async function attempt<T>(path: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    throw storeError(error, path);
  }
}
