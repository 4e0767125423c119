import { etcdAvailable, postgresAvailable, redisAvailable } from '@incumbent/servers';
import { makeLogDirectory } from '../harness/log-directory.ts';
import { endWithStarter, isInside, networkUnavailable, runInside } from '../harness/network.ts';
import type { Program } from '../harness/program.ts';
import { program } from '../harness/program.ts';
import { runSideBySide } from '../harness/side-by-side.ts';
import { skip } from '../harness/skip.ts';
import { tellSums } from '../harness/sums.ts';
import { brokenCandidates } from './broken.ts';
import { runChaos } from './run.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';
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

  const logs = makeLogDirectory(`chaos-${store}`, settings.seed);
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
  const { passed, failed, untested } = await runChaos(open, settings, logs.path);
  if (failed === 0) logs.remove();
  else logs.keep();
  if (untested !== undefined) console.log(`skipped: chaos on ${store}: ${untested}`);
  return tellSums({ passed, failed, skipped: untested === undefined ? 0 : 1 });
}

export const run: Program = program(readSettings, usage, main);
