/**
 * Leaders whose ZooKeeper server is cut off from the others while they still reach it: for how long
 * do two lead? See ../../README.md.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { serverAvailable } from '@incumbent/zookeeper-testing';
import { endWithStarter, isInside, networkUnavailable, runInside } from '../harness/network.ts';
import type { Program } from '../harness/program.ts';
import { program } from '../harness/program.ts';
import { skip, skipAnywhere } from '../harness/skip.ts';
import { python } from './candidate.ts';
import { experiment } from './experiment.ts';
import { draw } from './picture.ts';
import type { Recording } from './recording.ts';
import { pictureOf } from './recording.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';

async function main(settings: Settings): Promise<number> {
  if (settings.draw !== undefined) {
    const recording = JSON.parse(readFileSync(settings.draw, 'utf8')) as Recording;
    writeFileSync(pictureOf(settings.draw), draw(recording));
    return 0;
  }
  const missing = serverAvailable();
  if (missing !== undefined) return skip('cut-off experiment', missing);
  const forbidden = networkUnavailable();
  if (forbidden !== undefined) return skipAnywhere('cut-off experiment', forbidden);
  const kazoo = settings.peer !== 'none' && hasKazoo();
  if (settings.peer === 'only' && !kazoo) return skip('cut-off experiment', noKazoo);
  if (!isInside()) return runInside();
  endWithStarter();
  if (settings.peer === 'kazoo' && !kazoo && !settings.json) console.log(`${noKazoo}\n`);
  return experiment(settings, kazoo);
}

const noKazoo = `without kazoo: ${python} does not know it (on Debian: python3-kazoo)`;

function hasKazoo(): boolean {
  return spawnSync(python, ['-c', 'import kazoo'], { stdio: 'ignore' }).status === 0;
}

export const run: Program = program(readSettings, usage, main);
