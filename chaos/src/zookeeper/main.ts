/**
 * The soak of `@incumbent/zookeeper`: clients under mixed load on a real ensemble, through networks
 * and servers that fail at random. See ../../README.md.
 */
import { createWriteStream, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { serverAvailable } from '@incumbent/zookeeper-testing';
import { command } from '../command.ts';
import { skip } from '../skip.ts';
import { Findings } from './findings.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';
import { soak } from './soak.ts';

async function main(settings: Settings): Promise<number> {
  const missing = serverAvailable();
  if (missing !== undefined) return skip('zookeeper soak', missing);
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'incumbent-soak-')));
  const file = createWriteStream(join(directory, 'log.txt'));
  const startMs = performance.now();
  const log = (line: string) => {
    file.write(`${((performance.now() - startMs) / 1000).toFixed(3).padStart(9)}  ${line}\n`);
  };
  const say = (line: string) => {
    console.log(line);
    log(line);
  };
  const findings = new Findings(say);
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    // Servers end with this process.
    process.once(name, () => {
      console.log(`stopped by ${name}; the log is kept in ${directory}`);
      process.exit(1);
    });
  }
  await soak(settings, findings, log, say);
  say(`\n${findings.table()}\n`);
  await new Promise((resolve) => file.end(resolve));
  const failed = findings.failed.length;
  if (failed === 0) rmSync(directory, { recursive: true, force: true });
  else console.log(`seed ${settings.seed}; the log is kept in ${directory}`);
  console.log(`${findings.passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

await command(readSettings, usage, main);
