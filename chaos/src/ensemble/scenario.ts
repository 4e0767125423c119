/**
 * Chaos on an ensemble: candidates under `incumbent run` on three ZooKeeper servers. Servers and
 * candidates are killed, frozen, cut off and replaced as a seed determines. The log of the programs
 * is judged. See .. /.. /README.md.
 */
import process from 'node:process';
import { serverAvailable } from '@incumbent/zookeeper-testing';
import { makeLogDirectory } from '../harness/log-directory.ts';
import { endWithStarter, isInside, networkUnavailable, runInside } from '../harness/network.ts';
import type { Program } from '../harness/program.ts';
import { program } from '../harness/program.ts';
import { skip } from '../harness/skip.ts';
import { tellSums } from '../harness/sums.ts';
import { runChaos } from './run.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';

async function main(settings: Settings): Promise<number> {
  const missing = serverAvailable();
  if (missing !== undefined) return skip('ensemble chaos', missing);
  const noNetwork = networkUnavailable();
  if (noNetwork === undefined && !isInside()) return runInside();
  if (isInside()) endWithStarter();

  const logs = makeLogDirectory('ensemble', settings.seed);
  const { passed, failed } = await runChaos(settings, logs.path);
  if (failed === 0) logs.remove();
  else logs.keep();
  if (noNetwork === undefined) {
    return tellSums({ passed, failed });
  }
  // Where everything must run, a part that did not is a failure.
  const mustRun = process.env['CI'] === 'true';
  console.log(`${mustRun ? 'FAILED' : 'skipped: ensemble chaos'}: servers cut off: ${noNetwork}`);
  return tellSums(mustRun ? { passed, failed: failed + 1 } : { passed, failed, skipped: 1 });
}

export const run: Program = program(readSettings, usage, main);
