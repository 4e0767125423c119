import { redisAvailable } from '@incumbent/servers';
import { serverAvailable } from '@incumbent/zookeeper-testing';
import { makeLogDirectory } from '../harness/log-directory.ts';
import type { Program } from '../harness/program.ts';
import { program } from '../harness/program.ts';
import { table } from '../harness/report.ts';
import { skip } from '../harness/skip.ts';
import { tellSums } from '../harness/sums.ts';
import { faultNames } from './plan.ts';
import { runChaos } from './run.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';

async function main(settings: Settings): Promise<number> {
  const { rounds, sets, seed, broken } = settings;
  const reason = redisAvailable() ?? serverAvailable();
  if (reason !== undefined) return skip('chaos of the failover of Redis', reason);
  const startMs = performance.now();
  const say = (line: string): void => {
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    console.log(`${seconds.padStart(6)} s  ${line}`);
  };
  const broke = broken === undefined ? '' : `, broken: ${broken}`;
  say(`${rounds} rounds on ${sets} sets, seed ${seed}${broke}`);
  const logs = makeLogDirectory('redis-failover', seed, say);
  const outcome = await runChaos(settings, logs.path, say);
  const { passed, failed, played, writes, terms, refused, unknown, lost } = outcome;
  const rows = faultNames.filter((name) => played.some(({ fault }) => fault === name));
  console.log(`\n${table(rows, played)}\n`);
  console.log(
    'times: the longest pause of a round between two acknowledged writes; a round counts for each ' +
      'of its faults',
  );
  console.log(
    `${writes} writes acknowledged in ${terms} terms, ${refused} refused, ${unknown} of unknown ` +
      `outcome; ${lost} lost where Redis may lose them`,
  );
  // Why something broken was not found stands there, too.
  if (failed === 0 && broken === undefined) logs.remove();
  else logs.keep();
  return tellSums({ passed, failed });
}

export const run: Program = program(readSettings, usage, main);
