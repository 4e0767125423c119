/**
 * Leaders whose ZooKeeper server is cut off from the others while they still reach it: for how long
 * do two lead? See ../../README.md.
 *
 * This process makes the network and removes it; experiment.ts runs in it.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { serverAvailable } from '@incumbent/zookeeper/testing';
import { python } from './candidate.ts';
import type { Inside } from './experiment.ts';
import { Network, namespacesUnavailable } from './network.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';

const experiment = fileURLToPath(new URL('./experiment.js', import.meta.url));

async function main(): Promise<number> {
  let settings: Settings | 'help';
  try {
    settings = readSettings(process.argv.slice(2));
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    return 64;
  }
  if (settings === 'help') {
    console.log(usage);
    return 0;
  }
  const missing = serverAvailable();
  if (missing !== undefined && process.env['CI'] === 'true') return refuse(missing);
  // Whether a machine lets namespaces be made is not for us to decide, in CI neither.
  const reason = missing ?? namespacesUnavailable();
  if (reason !== undefined) return skip(reason);
  const kazoo = settings.peer !== 'none' && hasKazoo();
  if (settings.peer === 'only' && !kazoo) return skip(`${python} has no kazoo`);
  if (settings.peer === 'kazoo' && !kazoo && !settings.json) {
    console.log(`without kazoo: ${python} does not know it (on Debian: python3-kazoo)\n`);
  }
  // It removes the network when this process has ended, however that comes.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(name, () => process.exit(1));
  }
  const network = new Network(`cutoff-${process.pid}`);
  const remove = await network.build();
  try {
    const inside: Inside = { settings, prefix: network.prefix, kazoo };
    const command = [...network.command('b'), process.execPath, experiment, JSON.stringify(inside)];
    const [program, ...words] = command as [string, ...string[]];
    const child = spawn(program, words, { stdio: 'inherit' });
    const [code] = (await once(child, 'exit')) as [number | null];
    return code ?? 1;
  } finally {
    await remove();
  }
}

function hasKazoo(): boolean {
  return spawnSync(python, ['-c', 'import kazoo'], { stdio: 'ignore' }).status === 0;
}

function refuse(reason: string): number {
  console.log(`${reason}\n0 passed, 1 failed`);
  return 1;
}

function skip(reason: string): number {
  console.log(`skipped: cut-off experiment: ${reason}\n0 passed, 0 failed, 1 skipped`);
  return 0;
}

process.exitCode = await main();
process.stdout.write('', () => process.exit());
