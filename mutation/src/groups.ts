/** Which sources are mutated, by the names that `--only` takes. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

export type Group =
  | 'mechanisms'
  | 'lease'
  | 'queue'
  | 'lock'
  | 'core'
  | 'stores'
  | 'session'
  | 'redis-failover';

/** Paths below the repository; `*` stands for one name, or a part of one. */
const groups: Readonly<Record<Group, readonly string[]>> = {
  mechanisms: ['packages/incumbent/src/mechanisms/*.ts'],
  lease: ['packages/incumbent/src/mechanisms/lease/*.ts'],
  queue: ['packages/incumbent/src/mechanisms/queue/*.ts'],
  lock: ['packages/incumbent/src/mechanisms/lock/*.ts'],
  core: ['base', 'record', 'core'].map((floor) => `packages/incumbent/src/${floor}/*.ts`),
  stores: [
    'packages/incumbent/src/backends/*/store.ts',
    'packages/incumbent/src/backends/redis/scripts.ts',
    'packages/incumbent/src/backends/postgres/statements.ts',
  ],
  session: ['packages/zookeeper/src/session/*.ts'],
  'redis-failover': [
    'packages/redis-failover/src/manager/*.ts',
    'packages/redis-failover/src/client/*.ts',
    'packages/redis-failover/src/redis/*.ts',
    'packages/redis-failover/src/*.ts',
  ],
};

export const groupNames: readonly Group[] = Object.keys(groups) as Group[];

/** @returns paths below `root`, with `/`, sorted */
export function filesOf(group: Group, root: string): string[] {
  const files = groups[group].flatMap((pattern) => expand(pattern.split('/'), root));
  if (files.length === 0)
    throw new Error(`the group ${group} has no files: see mutation/src/groups.ts`);
  return files.sort();
}

function expand([first, ...rest]: readonly string[], root: string, below = ''): string[] {
  if (first === undefined) return [];
  const matches = first.includes('*')
    ? readdirSync(join(root, below)).filter((name) => fits(name, first))
    : [first];
  return matches.flatMap((name) => {
    const path = below === '' ? name : `${below}/${name}`;
    const stat = statSync(join(root, path), { throwIfNoEntry: false });
    if (rest.length === 0) return stat?.isFile() ? [path] : [];
    return stat?.isDirectory() ? expand(rest, root, path) : [];
  });
}

function fits(name: string, pattern: string): boolean {
  const [before = '', after = ''] = pattern.split('*');
  return (
    name.length >= before.length + after.length && name.startsWith(before) && name.endsWith(after)
  );
}
