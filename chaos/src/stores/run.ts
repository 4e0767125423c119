import { execFile } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { cliFile, FencedLog } from '@incumbent/cli/trial';
import { inSeconds } from '@incumbent/servers';
import { firstLeader, playRounds, Score } from '../ensemble/play.ts';
import { Crew } from '../harness/crew.ts';
import { Fleet } from '../harness/fleet.ts';
import { Liveness } from '../harness/liveness.ts';
import { Overruns } from '../harness/overruns.ts';
import { table } from '../harness/report.ts';
import { StuckError } from '../harness/stuck.ts';
import { monotonicMs, pause, Stalls } from '../harness/time.ts';
import { vacate } from '../harness/vacate.ts';
import { Verdict } from '../harness/verdict.ts';
import type { Broken } from './broken.ts';
import { commandOf } from './broken.ts';
import { faultNames, planRounds } from './plan.ts';
import type { Stage, Told } from './stage.ts';
import { election } from './stage.ts';
import type { Arena } from './strike.ts';
import { strikeAll } from './strike.ts';

const stopTimeoutMs = 1_000;
const staggerMs = 150;
const lookEveryMs = 20;
/** Of the servers among themselves, on a machine that does other things as well. */
const electionMs = 60_000;
/** A candidate that starts gives up when it cannot reach the store for so long. */
const connectPatienceMs = 20_000;
/** The time that the end of a run takes. */
const endMs = 6_000;

export interface RunSettings {
  readonly seconds: number;
  readonly candidates: number;
  readonly seed: number;
  readonly broken: Broken | undefined;
}

/** @returns how many rounds passed and failed; what is found after the last one counts as another */
export async function runChaos(
  open: (told: Told) => Promise<Stage>,
  settings: RunSettings,
  directory: string,
): Promise<{ readonly passed: number; readonly failed: number; readonly untested?: string }> {
  const { seconds, candidates, seed, broken } = settings;
  const startMs = monotonicMs();
  const deadlineMs = startMs + seconds * 1_000 - endMs;
  const note = (line: string) => {
    const at = ((monotonicMs() - startMs) / 1000).toFixed(3).padStart(9);
    appendFileSync(join(directory, 'notes.txt'), `${at}  ${line}\n`);
  };
  const say = (line: string) => {
    console.log(line);
    note(line);
  };
  const log = new FencedLog(join(directory, 'fenced.log'));
  const verdict = new Verdict(log.judge, say);
  const stalls = new Stalls();
  let liveness: Liveness | undefined;
  let lastTroubleMs = monotonicMs();
  const stage = await open({
    quorum(state) {
      liveness?.quorum(state, monotonicMs());
      if (state !== 'up') lastTroubleMs = monotonicMs();
    },
    struck: () => {
      liveness?.struck(monotonicMs());
      lastTroubleMs = monotonicMs();
    },
    newestToken: () => {
      log.read();
      return log.judge.newest?.token ?? 0n;
    },
    note,
    blame: (problem) => verdict.blame(problem),
  });
  const { leasesMs } = stage;
  const timings = leasesMs.map((leaseMs) => stage.timingOf(leaseMs));
  const boundMs = stage.boundMs(timings);
  liveness = new Liveness({ leaderMs: boundMs, electionMs }, monotonicMs());
  const judge = liveness;
  say(
    `${stage.about}; ${seconds} s, ${candidates} candidates with leases of ${leasesMs.join(' and ')} ms\n` +
      `seed ${seed}; with the store up and nobody struck somebody must work within ` +
      `${inSeconds(boundMs)}\n`,
  );
  const command = broken && commandOf(broken, directory);
  const overruns = new Overruns();
  const score = new Score();
  const fleet = new Fleet({
    ...{ election, store: stage.operatorUrl, lease: `${leasesMs[0]}ms`, stopTimeoutMs },
    ...{ log: log.path, history: join(directory, 'history.jsonl') },
    ...(command === undefined ? {} : { command }),
    // "Store unreachable", or not fit to write: what `run` says while servers are missing.
    mayEnd: (how) => how === 'exit code 69' && monotonicMs() - lastTroubleMs < connectPatienceMs,
    onProblem: (problem) => verdict.blame(problem),
    onOverrun: (token, atMs, reason) => overruns.add(token, atMs, reason),
  });
  process.once('exit', () => fleet.killNow());
  const seats = await Promise.all(
    Array.from({ length: candidates }, async (_none, index) => ({
      leaseMs: leasesMs[index % leasesMs.length] as number,
      stubborn: index % 2 === 1,
      proxies: await stage.connect(),
    })),
  );
  const crew = new Crew(seats, fleet, ({ proxies, leaseMs }) => stage.url(proxies, leaseMs));
  const arena: Arena = {
    ...{ crew, stage, log, liveness, note },
    longestLeaseMs: Math.max(...leasesMs),
    longestBeliefMs: Math.max(...timings.map(({ beliefMs }) => beliefMs)),
    vacate: () => vacate(election, stage.operatorUrl),
  };
  const stopListening = log.onEffect(({ atNs }) => judge.works(Number(atNs) / 1e6));
  const watch = setInterval(() => {
    const late = judge.look(monotonicMs(), (fromMs, toMs) => stalls.ms(fromMs, toMs));
    if (late !== undefined) verdict.blame(late);
  }, lookEveryMs);

  const scope = {
    serverFaults: stage.serverFaults,
    openings: stage.openings,
    strands: stage.strand !== undefined,
    evicts: stage.evict !== undefined,
  };
  try {
    await setUp(stage.operatorUrl);
    for (const seat of seats) {
      fleet.start(crew.recruit(seat));
      await pause(staggerMs);
    }
    judge.struck(monotonicMs());
    await firstLeader(arena);
    await playRounds(arena, {
      ...{ score, verdict, overruns, say, deadlineMs },
      rounds: planRounds(seed, scope),
      async strike(round) {
        await strikeAll(arena, round);
        await stage.ready();
      },
    });
  } catch (error) {
    if (!(error instanceof StuckError)) throw error;
    verdict.blame(error.message);
  } finally {
    clearInterval(watch);
    stopListening();
    stalls.stop();
  }
  const left = await fleet.end();
  verdict.blame(...left.map((what) => `nobody left behind: ${what}`));
  log.close();
  score.count(verdict.tell());
  const rows = faultNames(scope).filter((name) => score.played.some(({ fault }) => fault === name));
  say(`\n${table(rows, score.played)}\n`);
  say(verdict.summary());
  await stage.close();
  const { passed, failed } = score;
  return { passed, failed, ...(stage.untested === undefined ? {} : { untested: stage.untested }) };
}

/** The set-up that the store needs once, as an operator does it. */
async function setUp(store: string): Promise<void> {
  await promisify(execFile)(process.execPath, [cliFile, 'init', '-e', election, '--store', store]);
}
