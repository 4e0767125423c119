/**
 * Elections that our candidates and the real kazoo, or the real Curator, hold together. Whoever leads
 * is asked to go, killed or frozen, again and again; what they did meanwhile is judged by their log.
 * See ../../README.md.
 */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { FencedLog } from '@incumbent/cli/trial';
import { command } from '../command.ts';
import { inSeconds } from '../report.ts';
import type { Ground } from './ground.ts';
import { startGround } from './ground.ts';
import { planChanges } from './plan.ts';
import type { Arrival, Played } from './play.ts';
import { arrivals, Play } from './play.ts';
import type { Layout } from './program.ts';
import { compileCurator, ourCommand, peerCommand, peerMissing } from './program.ts';
import { overlapReport, takeoverTable } from './report.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';
import { judge } from './verdict.ts';

async function main(settings: Settings): Promise<number> {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'incumbent-interop-')));
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    // Members and servers end with this process.
    process.once(name, () => {
      console.log(`stopped by ${name}; the logs are kept in ${directory}`);
      process.exit(1);
    });
  }
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
    if (!(await playLayout(layout, settings, directory))) failed.push(layout);
  }
  const inCi = process.env['CI'] === 'true';
  const bad = failed.length + (inCi ? skipped : 0);
  if (bad === 0) rmSync(directory, { recursive: true, force: true });
  else console.log(`the logs are kept in ${directory}`);
  const good = settings.layouts.length - failed.length - skipped;
  console.log(
    `${good} passed, ${bad} failed${inCi || skipped === 0 ? '' : `, ${skipped} skipped`}`,
  );
  return bad === 0 ? 0 : 1;
}

/** @returns whether all was well */
async function playLayout(layout: Layout, settings: Settings, directory: string): Promise<boolean> {
  if (layout.startsWith('curator')) compileCurator(directory);
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
    const plan = planChanges(Math.ceil(changes / 2), seed);
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

await command(readSettings, usage, main);
