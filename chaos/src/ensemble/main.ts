/**
 * Chaos on an ensemble: candidates under `incumbent run` on three ZooKeeper servers. Servers and
 * candidates are killed, frozen, cut off and replaced as a seed determines. What the programs did is
 * judged by their log. See ../../README.md.
 */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { serverAvailable } from '@incumbent/zookeeper-testing';
import { command } from '../command.ts';
import { skip } from '../skip.ts';
import { endWithStarter, isInside, networkUnavailable, runInside } from './network.ts';
import { runChaos } from './run.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';

async function main(settings: Settings): Promise<number> {
  const missing = serverAvailable();
  if (missing !== undefined) return skip('ensemble chaos', missing);
  const noNetwork = networkUnavailable();
  if (noNetwork === undefined && !isInside()) return runInside();
  if (isInside()) endWithStarter();

  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'incumbent-ensemble-')));
  const { passed, failed } = await runChaos(settings, directory);
  if (failed === 0) rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  else console.log(`seed ${settings.seed}; log and history are kept in ${directory}`);
  if (noNetwork === undefined) {
    console.log(`${passed} passed, ${failed} failed`);
    return failed === 0 ? 0 : 1;
  }
  // Where everything must run, a part that did not is a failure.
  const mustRun = process.env['CI'] === 'true';
  console.log(`${mustRun ? 'FAILED' : 'skipped: ensemble chaos'}: servers cut off: ${noNetwork}`);
  const sums = mustRun ? [passed, failed + 1, 0] : [passed, failed, 1];
  console.log(`${sums[0]} passed, ${sums[1]} failed, ${sums[2]} skipped`);
  return sums[1] === 0 ? 0 : 1;
}

await command(readSettings, usage, main);
