/**
 * Chaos on PostgreSQL, Redis and etcd: candidates under `incumbent run`, while servers, networks and
 * candidates fail as a seed determines. What the programs did is judged by their log. See
 * ../../README.md.
 */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { etcdAvailable, postgresAvailable, redisAvailable } from '@incumbent/servers';
import { command } from '../command.ts';
import { endWithStarter, isInside, networkUnavailable, runInside } from '../ensemble/network.ts';
import { skip } from '../skip.ts';
import { brokenCandidates } from './broken.ts';
import { runChaos } from './run.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';
import { runSideBySide } from './side-by-side.ts';
import type { Stage, StoreName, Told } from './stage.ts';
import { EtcdStage } from './stages/etcd.ts';
import { PostgresStage } from './stages/postgres.ts';
import { RedisStage } from './stages/redis.ts';

const missing: Readonly<Record<StoreName, () => string | undefined>> = {
  postgres: postgresAvailable,
  redis: redisAvailable,
  etcd: etcdAvailable,
};

async function main(settings: Settings): Promise<number> {
  const [store, ...others] = settings.stores as [StoreName, ...StoreName[]];
  if (others.length > 0) return runSideBySide(settings.stores, settings.seed);
  const reason = missing[store]();
  if (reason !== undefined) return skip(`chaos on ${store}`, reason);
  const noNetwork = store === 'etcd' ? networkUnavailable() : undefined;
  // A network of its own ends with the process: nothing is left behind.
  if (store === 'etcd' && noNetwork === undefined && !isInside()) return runInside();
  if (isInside()) endWithStarter();

  const directory = realpathSync(mkdtempSync(join(tmpdir(), `incumbent-chaos-${store}-`)));
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(name, () => {
      console.log(`stopped by ${name}; the log is kept in ${directory}`);
      process.exit(1);
    });
  }
  const { broken } = settings;
  const parameters = (broken && brokenCandidates[broken].parameters) ?? '';
  const open = (told: Told): Promise<Stage> => {
    switch (store) {
      case 'postgres':
        return PostgresStage.start(told, broken !== 'async-standby');
      case 'redis':
        return RedisStage.start(told, broken !== 'no-floor');
      case 'etcd':
        return EtcdStage.start(told, { noNetwork, parameters });
      default:
        return store satisfies never;
    }
  };
  const { passed, failed, untested } = await runChaos(open, settings, directory);
  if (failed === 0) rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  else console.log(`seed ${settings.seed}; log and history are kept in ${directory}`);
  if (untested !== undefined) console.log(`skipped: chaos on ${store}: ${untested}`);
  const skipped = untested === undefined ? '' : ', 1 skipped';
  console.log(`${passed} passed, ${failed} failed${skipped}`);
  return failed === 0 ? 0 : 1;
}

await command(readSettings, usage, main);
