// The public packages as they would be published.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { must, root } from './run.mjs';
import { stage } from './stage.mjs';

export const publicPackages = [
  'packages/incumbent',
  'packages/cli',
  'packages/zookeeper',
  'packages/zookeeper-testing',
  'packages/redis-failover',
  'packages/shards',
];

/** Where a package is staged for its release. */
export const stagedFor = (path) => join(root, path, 'packed');

/**
 * Packs one package, as it is published, into a folder of its own under `into`.
 *
 * @returns {Promise<string>} the tarball
 */
export async function pack(path, into) {
  const folder = join(into, path.replaceAll('/', '-'));
  const staged = join(folder, 'package');
  await stage(path, staged);
  await must(['npm', 'pack', '--pack-destination', folder], { cwd: staged });
  return join(
    folder,
    readdirSync(folder).find((file) => file.endsWith('.tgz')),
  );
}
