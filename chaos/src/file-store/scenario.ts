/**
 * Chaos: many candidates under `incumbent run` on one store. The leader is killed, frozen or asked
 * to go, again and again, at moments that a seed determines. The log of the workers is judged. See
 * .. /README.md.
 */
import { join } from 'node:path';
import { FencedLog } from '@incumbent/cli/trial';
import { inSeconds } from '@incumbent/servers';
import { resolveTiming } from 'incumbent';
import { Fleet } from '../harness/fleet.ts';
import { makeLogDirectory } from '../harness/log-directory.ts';
import { Overruns } from '../harness/overruns.ts';
import type { Program } from '../harness/program.ts';
import { program } from '../harness/program.ts';
import type { Played } from '../harness/report.ts';
import { table } from '../harness/report.ts';
import { StuckError } from '../harness/stuck.ts';
import { tellSums } from '../harness/sums.ts';
import { Stalls } from '../harness/time.ts';
import { vacate } from '../harness/vacate.ts';
import { Verdict } from '../harness/verdict.ts';
import { takeoverBoundMs } from './bound.ts';
import { breakCandidates } from './broken.ts';
import type { Fault } from './plan.ts';
import { faults, planRounds } from './plan.ts';
import type { Arena, Outcome } from './play-round.ts';
import { firstLeader, playRound } from './play-round.ts';
import type { Settings } from './settings.ts';
import { readSettings, usage } from './settings.ts';

const election = 'chaos';
const stopTimeoutMs = 1_000;
const staggerMs = 150;

async function main(settings: Settings): Promise<number> {
  const logs = makeLogDirectory('chaos', settings.seed);
  const failed = await chaos(settings, logs.path);
  if (failed === 0) logs.remove();
  else logs.keep();
  return tellSums({ passed: settings.rounds - failed, failed });
}

/** @returns how many rounds failed; what is found after the last one counts for that */
async function chaos(settings: Settings, directory: string): Promise<number> {
  const { rounds: count, candidates, seed, lease, broken } = settings;
  const store = settings.store ?? `file:${join(directory, 'store')}`;
  const timing = resolveTiming({ lease, stopTimeout: stopTimeoutMs });
  const log = new FencedLog(join(directory, 'fenced.log'));
  const verdict = new Verdict(log.judge, (line) => console.log(line));
  const overruns = new Overruns();
  const stalls = new Stalls();
  let failed = 0;
  const fleet = new Fleet({
    ...{ election, store, lease, stopTimeoutMs, log: log.path },
    history: join(directory, 'history.jsonl'),
    ...(broken === undefined ? {} : { command: breakCandidates(broken, directory) }),
    onProblem: (problem) => verdict.blame(problem),
    onOverrun: (token, atMs, reason) => overruns.add(token, atMs, reason),
  });
  process.once('exit', () => fleet.killNow());
  const arena: Arena = {
    fleet,
    log,
    timing,
    vacate: () => vacate(election, store),
    buried: new Set(),
    stalls,
  };

  const boundMs = takeoverBoundMs('kill supervisor', timing);
  console.log(
    `${count} rounds, ${candidates} candidates, lease ${lease}, ${store}\n` +
      `seed ${seed}; after a kill somebody must work within ${inSeconds(boundMs)}\n`,
  );
  const played: Played<Fault>[] = [];
  try {
    await fleet.startAll(candidates, staggerMs);
    await firstLeader(arena);
    for (const round of planRounds(count, seed, timing)) {
      const outcome = await playRound(arena, round);
      played.push({ fault: round.fault, takeoverMs: outcome.takeoverMs });
      verdict.blame(...outcome.problems, ...overruns.judge(log.judge));
      console.log(progress(round.number, count, round.fault, round.freezeMs, outcome));
      if (verdict.tell()) failed += 1;
    }
  } catch (error) {
    if (!(error instanceof StuckError)) throw error;
    verdict.blame(error.message);
    verdict.tell();
    failed += count - played.length;
  }
  stalls.stop();
  const left = await fleet.end();
  log.close();
  verdict.blame(...overruns.judge(log.judge), ...left.map((what) => `nobody left behind: ${what}`));
  if (verdict.tell()) failed = Math.max(1, failed);
  console.log(`\n${table(faults, played)}\n\n${verdict.summary()}`);
  return failed;
}

function progress(
  number: number,
  count: number,
  fault: string,
  freezeMs: number,
  { struck, leader, takeoverMs }: Outcome,
): string {
  const what = fault.includes('freeze') ? `${fault} ${(freezeMs / 1000).toFixed(1)} s` : fault;
  const from = `${struck.candidate} (term ${struck.token})`;
  const to =
    takeoverMs === undefined
      ? 'goes on'
      : `-> ${leader.candidate} (term ${leader.token}) after ${inSeconds(takeoverMs)}`;
  return `${String(number).padStart(String(count).length)}/${count}  ${what.padEnd(24)} ${from} ${to}`;
}

export const run: Program = program(readSettings, usage, main);
