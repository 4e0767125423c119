/**
 * The soak of `@incumbent/zookeeper`: clients under mixed load on a real ensemble, through networks
 * and servers that fail at random. See ../../README.md.
 */
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { serverAvailable } from '@incumbent/zookeeper-testing';
import { makeLogDirectory } from '../harness/log-directory.ts';
import type { Program } from '../harness/program.ts';
import { program } from '../harness/program.ts';
import { skip } from '../harness/skip.ts';
import { tellSums } from '../harness/sums.ts';
import { Findings } from './findings.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';
import { soak } from './soak.ts';

async function main(settings: Settings): Promise<number> {
  const missing = serverAvailable();
  if (missing !== undefined) return skip('zookeeper soak', missing);
  const logs = makeLogDirectory('soak', settings.seed);
  const file = createWriteStream(join(logs.path, 'log.txt'));
  const startMs = performance.now();
  const log = (line: string) => {
    file.write(`${((performance.now() - startMs) / 1000).toFixed(3).padStart(9)}  ${line}\n`);
  };
  const say = (line: string) => {
    console.log(line);
    log(line);
  };
  const findings = new Findings(say);
  await soak(settings, findings, log, say);
  say(`\n${findings.table()}\n`);
  await new Promise((resolve) => file.end(resolve));
  const failed = findings.failed.length;
  if (failed === 0) logs.remove();
  else logs.keep();
  return tellSums({ passed: findings.passed, failed });
}

export const run: Program = program(readSettings, usage, main);
