import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { FencedLog } from '@incumbent/cli/trial';
import { inSeconds } from '@incumbent/servers';
import { createClient } from '@incumbent/zookeeper';
import { startEnsemble, TestServerError } from '@incumbent/zookeeper-testing';
import { resolveTiming } from 'incumbent';
import { Crew, takeSeats } from '../harness/crew.ts';
import { Fleet } from '../harness/fleet.ts';
import { Liveness } from '../harness/liveness.ts';
import { isInside, Network } from '../harness/network.ts';
import { Overruns } from '../harness/overruns.ts';
import { table } from '../harness/report.ts';
import { StuckError } from '../harness/stuck.ts';
import { monotonicMs, pause, Stalls, until } from '../harness/time.ts';
import { vacate } from '../harness/vacate.ts';
import { Verdict } from '../harness/verdict.ts';
import { lossless } from '../harness/zookeeper-properties.ts';
import { Auditor } from '../zookeeper/auditor.ts';
import { allServe } from '../zookeeper/strike-servers.ts';
import { judgeEmptyQueue, judgeSurvivors } from './aftermath.ts';
import { electionBoundMs, leaderBoundMs } from './bound.ts';
import { brokenCandidates, commandOf } from './broken.ts';
import { Places } from './places.ts';
import { faultNames, planRounds } from './plan.ts';
import { firstLeader, playRounds, Score, stuckMs } from './play.ts';
import { Servers } from './servers.ts';
import type { Settings } from './settings.ts';
import type { Arena } from './strike.ts';
import { strikeAll } from './strike.ts';

const election = 'chaos';
const tickMs = 500;
/**
 * A server that is cut off answers pings and reads for so many ticks: for longer than the shorter of
 * the sessions live.
 */
const syncLimit = 10;
/** One after the other, so that each follows leaders whose belief is longer, and shorter. */
const leasesMs = [2_000, 4_000, 3_000];
const stopTimeoutMs = 1_000;
const staggerMs = 150;
/** The time that the end of a run takes. */
const endMs = 30_000;
/** A candidate that starts gives up when it cannot reach the store for so long. */
const connectPatienceMs = 20_000;
const lookEveryMs = 20;
/** @returns how many rounds passed and failed; what is found after the last one counts as another */
export async function runChaos(
  settings: Settings,
  directory: string,
): Promise<{ readonly passed: number; readonly failed: number }> {
  const { minutes, candidates, seed, broken } = settings;
  const deadlineMs = monotonicMs() + minutes * 60_000 - endMs;
  const timings = leasesMs.map((leaseMs) => resolveTiming({}, { sessionTimeoutMs: leaseMs }));
  const boundMs = leaderBoundMs(timings, tickMs);
  const startMs = monotonicMs();
  const noteFile = join(directory, 'notes.txt');
  const note = (line: string) => {
    const atMs = monotonicMs();
    const at = ((atMs - startMs) / 1000).toFixed(3).padStart(9);
    appendFileSync(noteFile, `${at}  ${atMs.toFixed(0)}  ${line}\n`);
  };
  const say = (line: string) => {
    console.log(line);
    note(line);
  };
  const network = isInside() ? new Network(3) : undefined;
  say(
    `${minutes} min, ${candidates} candidates with sessions of ${leasesMs.join(', ')} ms, 3 servers ` +
      `with ticks of ${tickMs} ms${network === undefined ? '' : ', each in a network of its own'}\n` +
      `seed ${seed}; with a quorum up and nobody struck somebody must work within ` +
      `${inSeconds(boundMs)}\n`,
  );
  const log = new FencedLog(join(directory, 'fenced.log'));
  const verdict = new Verdict(log.judge, say);
  const stalls = new Stalls();
  const ensemble = await startEnsemble(3, {
    tickTimeMs: tickMs,
    minSessionTimeoutMs: 2 * tickMs,
    config: { syncLimit },
    systemProperties: lossless,
    ...(network === undefined ? {} : { seats: network.seats }),
  });
  const liveness = new Liveness(
    { leaderMs: boundMs, electionMs: electionBoundMs(tickMs, syncLimit) },
    monotonicMs(),
  );
  const servers = new Servers(ensemble, network, liveness);
  const seats = await takeSeats(ensemble, candidates, leasesMs);
  const command = broken && commandOf(broken, directory);
  const overruns = new Overruns();
  const score = new Score();
  const fleet = new Fleet({
    ...{ election, store: ensemble.connectionString, lease: `${leasesMs[0]}ms`, stopTimeoutMs },
    ...{ log: log.path, history: join(directory, 'history.jsonl') },
    ...(command === undefined ? {} : { command }),
    // "Store unreachable" is what `run` says when it starts while servers are missing.
    mayEnd: (how) =>
      how === 'exit code 69' && monotonicMs() - servers.lastTroubleMs < connectPatienceMs,
    onProblem: (problem) => verdict.blame(problem),
    onOverrun: (token, atMs, reason) => overruns.add(token, atMs, reason),
  });
  const parameters = (broken && brokenCandidates[broken].parameters) ?? '';
  const crew = new Crew(seats, fleet, ({ proxies, leaseMs }) => {
    const hosts = proxies.map(({ host, port }) => `${host}:${port}`).join(',');
    return `zk://${hosts}?timeout=${leaseMs}ms${parameters}`;
  });
  process.once('exit', () => fleet.killNow());
  const auditor = new Auditor(
    createClient(ensemble.connectionString, { sessionTimeoutMs: 2 * Math.max(...leasesMs) }),
  );
  const arena: Arena = {
    ...{ crew, servers, log, liveness, note },
    places: new Places(auditor, `/incumbent/${election}`),
    longestLeaseMs: Math.max(...leasesMs),
    longestBeliefMs: Math.max(...timings.map(({ beliefMs }) => beliefMs)),
    vacate: () => vacate(election, ensemble.connectionString),
  };
  const stopListening = log.onEffect(({ atNs }) => liveness.works(Number(atNs) / 1e6));
  const watch = setInterval(() => {
    servers.look();
    const late = liveness.look(monotonicMs(), (fromMs, toMs) => stalls.ms(fromMs, toMs));
    if (late !== undefined) verdict.blame(late);
  }, lookEveryMs);

  try {
    servers.watch();
    for (const seat of seats) {
      fleet.start(crew.recruit(seat));
      await pause(staggerMs);
    }
    liveness.struck(monotonicMs());
    await firstLeader(arena);
    const isComplete = async () => (await arena.places.list()).length === candidates;
    if (!(await until(stuckMs, isComplete))) throw new StuckError('not everybody can wait');
    await playRounds(arena, {
      ...{ score, verdict, overruns, say, deadlineMs },
      rounds: planRounds(seed, network !== undefined),
      async strike(round) {
        await strikeAll(arena, round);
        await allServe(ensemble);
      },
    });
    verdict.blame(...(await judgeSurvivors(arena, boundMs)));
  } catch (error) {
    if (!(error instanceof StuckError || error instanceof TestServerError)) throw error;
    verdict.blame(error.message);
  } finally {
    clearInterval(watch);
    stopListening();
    stalls.stop();
  }
  const left = await fleet.end();
  verdict.blame(...left.map((what) => `nobody left behind: ${what}`));
  try {
    verdict.blame(...(await judgeEmptyQueue(arena.places, boundMs)));
  } catch (error) {
    verdict.blame((error as Error).message);
  }
  log.close();
  score.count(verdict.tell());
  say(`\n${table(faultNames, score.played)}\n`);
  say(
    `${liveness.electionsMs.length} elections of the servers, ${quantiles(liveness.electionsMs)}`,
  );
  say(verdict.summary());
  // Kept with the history when something failed: perhaps the servers were it.
  for (const member of ensemble.members) {
    writeFileSync(join(directory, `server-${member.id}.log`), member.log());
  }
  await auditor.client.close();
  await servers.stop();
  await Promise.all(seats.flatMap(({ proxies }) => proxies.map((proxy) => proxy.close())));
  await ensemble.close();
  return { passed: score.passed, failed: score.failed };
}

function quantiles(timesMs: readonly number[]): string {
  const sorted = [...timesMs].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
  return `p50 ${inSeconds(at(0.5))}, max ${inSeconds(at(1))}`;
}
