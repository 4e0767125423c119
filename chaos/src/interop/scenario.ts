/**
 * Elections that our candidates hold together with the real kazoo, the real Curator, `etcdctl`, or a
 * C program that races for one node. The leader is asked to go, killed or frozen, again and again,
 * and the log of the candidates is judged. See .. /.. /README.md.
 */
import { join } from 'node:path';
import process from 'node:process';
import { FencedLog } from '@incumbent/cli/trial';
import { inSeconds } from '@incumbent/servers';
import type { Arrival, Ground, Layout, Played } from '@incumbent/servers/interop';
import {
  arrivals,
  compilePeer,
  judge,
  ourCommand,
  overlapReport,
  Play,
  peerCommand,
  peerMissing,
  planChanges,
  startGround,
  strikesOf,
  takeoverTable,
} from '@incumbent/servers/interop';
import { makeLogDirectory } from '../harness/log-directory.ts';
import type { Program } from '../harness/program.ts';
import { program } from '../harness/program.ts';
import { tellSums } from '../harness/sums.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';

async function main(settings: Settings): Promise<number> {
  const logs = makeLogDirectory('interop', settings.seed);
  console.log(`${settings.changes} changes of the leader with each, seed ${settings.seed}`);
  const failed: string[] = [];
  let skipped = 0;
  for (const layout of settings.layouts) {
    const missing = peerMissing(layout);
    if (missing !== undefined) {
      skipped += 1;
      console.log(`skipped: ${layout}: ${missing}`);
      continue;
    }
    if (!(await playLayout(layout, settings, logs.path))) failed.push(layout);
  }
  const inCi = process.env['CI'] === 'true';
  const bad = failed.length + (inCi ? skipped : 0);
  if (bad === 0) logs.remove();
  else logs.keep();
  const good = settings.layouts.length - failed.length - skipped;
  return tellSums({ passed: good, failed: bad, skipped: inCi ? 0 : skipped });
}

/** @returns whether all was well */
async function playLayout(layout: Layout, settings: Settings, directory: string): Promise<boolean> {
  compilePeer(layout, directory);
  await using ground = await startGround(layout);
  let good = true;
  for (const arrival of Object.keys(arrivals) as Arrival[]) {
    console.log(`\n${layout}, ${arrival}`);
    const violations = await playArrival(arrival, layout, settings, directory, ground);
    for (const violation of violations) console.log(`  FAILED ${violation}`);
    good &&= violations.length === 0;
  }
  return good;
}

async function playArrival(
  arrival: Arrival,
  layout: Layout,
  { changes, seed, sessionMs }: Settings,
  directory: string,
  ground: Ground,
): Promise<readonly string[]> {
  const name = `${layout}-${arrival.replace(' ', '-')}`;
  const log = new FencedLog(join(directory, `${name}.log`));
  const played: Played[] = [];
  const others: string[] = [];
  await using play = new Play({
    ours: ourCommand(layout),
    theirs: peerCommand(layout, directory),
    ...ground.venue(`/elections/${name}`),
    sessionMs,
    log,
  });
  try {
    await play.gather(arrival);
    const plan = planChanges(Math.ceil(changes / 2), seed, strikesOf(layout));
    for (const change of plan) {
      const { strike, struck, next, takeoverMs } = await play.change(change);
      played.push({ strike, struck, next, takeoverMs });
      const number = String(played.length).padStart(String(plan.length).length);
      console.log(
        `${number}/${plan.length}  ${strike.padEnd(7)} ${struck.candidate} -> ${next.candidate} ` +
          `(term ${next.token}) after ${inSeconds(takeoverMs)}`,
      );
    }
  } catch (error) {
    others.push((error as Error).message);
  }
  log.close();
  const verdict = judge(log.judge, played);
  if (play.complaints !== '') others.push(`a member complained: ${play.complaints}`);
  console.log(`${takeoverTable(played)}\n${overlapReport(played, verdict.overlaps)}`);
  return [...verdict.violations, ...others];
}

export const run: Program = program(readSettings, usage, main);
