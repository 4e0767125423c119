// The public packages as they would be published.
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { must, root } from './run.mjs';

export const publicPackages = [
  'packages/incumbent',
  'packages/cli',
  'packages/zookeeper',
  'packages/zookeeper-testing',
  'packages/redis-failover',
];

/**
 * Packs one package into a folder of its own under `into`.
 *
 * @returns {Promise<string>} the tarball
 */
export async function pack(path, into) {
  const folder = join(into, path.replaceAll('/', '-'));
  mkdirSync(folder);
  await must(['npm', 'pack', '--pack-destination', folder], { cwd: join(root, path) });
  return join(folder, readdirSync(folder)[0]);
}
