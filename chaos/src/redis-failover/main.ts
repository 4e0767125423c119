/**
 * Chaos of the failover of Redis: sets of a primary and its replicas, with managers and clients as
 * processes of their own, while all of them, and what lies between them, fail as a seed determines.
 * See ../../README.md.
 */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { redisAvailable } from '@incumbent/servers';
import { serverAvailable } from '@incumbent/zookeeper-testing';
import { command } from '../command.ts';
import { table } from '../report.ts';
import { skip } from '../skip.ts';
import { faultNames } from './plan.ts';
import { runChaos } from './run.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';

async function main(settings: Settings): Promise<number> {
  const { rounds, sets, seed, broken } = settings;
  const reason = redisAvailable() ?? serverAvailable();
  if (reason !== undefined) return skip('chaos of the failover of Redis', reason);
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'incumbent-redis-failover-')));
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(name, () => {
      console.log(`stopped by ${name}; the logs are kept in ${directory}`);
      process.exit(1);
    });
  }
  const startMs = performance.now();
  const say = (line: string): void => {
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    console.log(`${seconds.padStart(6)} s  ${line}`);
  };
  const broke = broken === undefined ? '' : `, broken: ${broken}`;
  say(`${rounds} rounds on ${sets} sets, seed ${seed}${broke}`);
  const outcome = await runChaos(settings, directory, say);
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
  if (failed === 0 && broken === undefined)
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  else say(`seed ${seed}; the logs are kept in ${directory}`);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

await command(readSettings, usage, main);
