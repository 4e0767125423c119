import { makeLogDirectory } from '../harness/log-directory.ts';
import type { Program } from '../harness/program.ts';
import { program } from '../harness/program.ts';
import { runSideBySide } from '../harness/side-by-side.ts';
import { skip } from '../harness/skip.ts';
import { tellSums } from '../harness/sums.ts';
import type { StoreName } from './messages.ts';
import { runChaos } from './run.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';
import { stores } from './stage.ts';

async function main(settings: Settings): Promise<number> {
  const [store, ...others] = settings.stores as [StoreName, ...StoreName[]];
  if (others.length > 0) return runSideBySide(settings.stores, settings.seed);
  const reason = stores[store].missing();
  if (reason !== undefined) return skip(`chaos of shards on ${store}`, reason);
  const logs = makeLogDirectory(`chaos-shards-${store}`, settings.seed);
  const sums = await runChaos(store, settings, logs.path);
  if (sums.failed === 0) logs.remove();
  else logs.keep();
  return tellSums(sums);
}

export const run: Program = program(readSettings, usage, main);
