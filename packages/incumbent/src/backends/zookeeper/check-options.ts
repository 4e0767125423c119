import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import { parseDuration } from '../../base/duration.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import type { NodeAcl } from './client.ts';
import type { ZooKeeperLayout, ZooKeeperOptions } from './options.ts';

export interface CheckedOptions {
  readonly layout: ZooKeeperLayout;
  readonly root: string;
  readonly acl: readonly NodeAcl[];
  readonly create: boolean | undefined;
  readonly waitsForPredecessor: boolean;
  readonly namesSuccessor: boolean;
  readonly stepsDownWhenDisconnected: boolean;
  readonly recheckMs: number;
  readonly tickTimeMs: number;
  readonly pollMs: number | undefined;
  readonly delayAfterWinMs: number;
  readonly activeData: string | Uint8Array | undefined;
}

const layouts: Readonly<Record<ZooKeeperLayout, true>> = {
  incumbent: true,
  golea: true,
  'curator-latch': true,
  'curator-selector': true,
  kazoo: true,
  recipe: true,
  hadoop: true,
  node: true,
};

const known: Readonly<Record<keyof ZooKeeperOptions, true>> = {
  layout: true,
  root: true,
  acl: true,
  create: true,
  onDisconnect: true,
  predecessorWait: true,
  nameSuccessor: true,
  recheck: true,
  tickTime: true,
  poll: true,
  delayAfterWin: true,
  activeData: true,
};

const everything = 31;
const namedAcls = {
  open: [{ perms: everything, scheme: 'world', id: 'anyone' }],
  creator: [{ perms: everything, scheme: 'auth', id: '' }],
} as const;

/** @throws InvalidOptionError */
export function checkOptions(options: ZooKeeperOptions): CheckedOptions {
  checkNames('zookeeper()', options, known);
  const { layout = 'incumbent', acl = 'open', create, poll, activeData } = options;
  oneOf('layout', layout, Object.keys(layouts));
  oneOf('onDisconnect', options.onDisconnect ?? 'hold', ['hold', 'step-down']);
  oneOf('predecessorWait', options.predecessorWait ?? 'belief', ['belief', 'off']);
  if (create !== undefined && typeof create !== 'boolean') {
    throw new InvalidOptionError(`create must be true or false, not ${describeValue(create)}`);
  }
  const { nameSuccessor = false } = options;
  if (typeof nameSuccessor !== 'boolean') {
    throw new InvalidOptionError(
      `nameSuccessor must be true or false, not ${describeValue(nameSuccessor)}`,
    );
  }
  if (nameSuccessor && layout !== 'incumbent') {
    throw new InvalidOptionError(
      `nameSuccessor is for the layout "incumbent" only, not for "${layout}": leave one of them out`,
    );
  }
  const isLock = layout === 'hadoop' || layout === 'node';
  if (!isLock && (poll !== undefined || activeData !== undefined)) {
    throw new InvalidOptionError(
      `poll and activeData are for the layouts "hadoop" and "node" only, not for "${layout}"`,
    );
  }
  if (
    activeData !== undefined &&
    typeof activeData !== 'string' &&
    !(activeData instanceof Uint8Array)
  ) {
    throw new InvalidOptionError(
      `activeData must be a string or bytes, not ${describeValue(activeData)}`,
    );
  }
  return {
    layout,
    root: checkPath('root', options.root ?? (layout === 'incumbent' ? '/incumbent' : '/')),
    acl: typeof acl === 'string' ? namedAcl(acl) : checkAcl(acl),
    create,
    waitsForPredecessor: options.predecessorWait !== 'off',
    namesSuccessor: nameSuccessor,
    stepsDownWhenDisconnected: options.onDisconnect === 'step-down',
    recheckMs: positive('recheck', options.recheck ?? 30_000),
    tickTimeMs: positive('tickTime', options.tickTime ?? 2_000),
    pollMs: poll === undefined ? undefined : positive('poll', poll),
    delayAfterWinMs: parseDuration('delayAfterWin', options.delayAfterWin ?? 0),
    activeData,
  };
}

/** Below this node of the root are the leases. It leads to no election. */
export const leasesNode = '.leases';

/**
 * The node of an election.
 * @throws InvalidOptionError for a name that is no path
 */
export function electionPath(root: string, election: string): string {
  if (election === leasesNode || election.startsWith(`${leasesNode}/`)) {
    throw new InvalidOptionError(
      `the election "${election}" cannot be kept in ZooKeeper: below "${leasesNode}" are the leases of shards`,
    );
  }
  return pathBelow(root, 'election', election);
}

/**
 * The node of a lease. Without a name: the node of all leases.
 * @throws InvalidOptionError for a name that is no path
 */
export function leasePath(root: string, name?: string): string {
  const all = pathBelow(root, 'leases', leasesNode);
  return name === undefined ? all : pathBelow(all, 'lease', name);
}

function pathBelow(root: string, what: string, name: string): string {
  return checkPath(`the ${what} "${name}"`, `${root === '/' ? '' : root}/${name}`);
}

function checkPath(what: string, path: string): string {
  if (typeof path !== 'string') {
    throw new InvalidOptionError(`${what} must be a string, not ${describeValue(path)}`);
  }
  const refuse = (why: string): never => {
    throw new InvalidOptionError(
      `${what}: ${JSON.stringify(path)} is no path of ZooKeeper: ${why}`,
    );
  };
  if (!path.startsWith('/')) refuse('it must begin with "/"');
  if (path === '/') return path;
  for (const segment of path.slice(1).split('/')) {
    if (segment === '') refuse('it has an empty part: leave out "//" and a "/" at the end');
    if (segment === '.' || segment === '..') refuse('"." and ".." are not resolved');
  }
  if (path === '/zookeeper' || path.startsWith('/zookeeper/')) {
    refuse('/zookeeper is the servers’ own');
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
  if (/[\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]/.test(path)) {
    refuse('it has a character that servers do not take');
  }
  return path;
}

function oneOf(name: string, value: unknown, allowed: readonly string[]): void {
  if (typeof value === 'string' && allowed.includes(value)) return;
  throw new InvalidOptionError(
    `${name} must be one of ${allowed.map((each) => `"${each}"`).join(', ')}, not ` +
      describeValue(value),
  );
}

function positive(name: string, value: ZooKeeperOptions['recheck'] & {}): number {
  const ms = parseDuration(name, value);
  if (ms < 10) throw new InvalidOptionError(`${name}: it must be 10 ms or longer`);
  return ms;
}

function namedAcl(name: string): readonly NodeAcl[] {
  oneOf('acl', name, Object.keys(namedAcls));
  return namedAcls[name as keyof typeof namedAcls];
}

function checkAcl(acl: readonly NodeAcl[]): readonly NodeAcl[] {
  const isEntry = (entry: Partial<NodeAcl> | null) =>
    typeof entry?.scheme === 'string' &&
    typeof entry.id === 'string' &&
    Number.isInteger(entry.perms) &&
    (entry.perms as number) > 0 &&
    (entry.perms as number) <= everything;
  if (!Array.isArray(acl) || acl.length === 0 || !acl.every(isEntry)) {
    throw new InvalidOptionError(
      'acl must be "open", "creator" or a list such as [{ perms: 31, scheme: "digest", id: "user:hash" }]',
    );
  }
  return acl;
}
