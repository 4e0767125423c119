import { startEnsemble } from '@incumbent/zookeeper-testing';
import type { Outcome } from './election.ts';
import { Network } from './network.ts';
import type { ElectionPlan, RoundPlan } from './plan.ts';
import { planRun } from './plan.ts';
import { recordRound, writeRecording } from './recording.ts';
import type { Row } from './report.ts';
import { describeElection, faultsOf, isPlayed, legend, table } from './report.ts';
import { playRound } from './round.ts';
import type { Settings } from './settings.ts';

/** ZooKeeper's own defaults: a server that is cut off serves on for syncLimit ticks, 10 s. */
const tickMs = 2_000;
const limits = { syncLimit: 5, initLimit: 10 };
const servesMs = limits.syncLimit * tickMs;

type MutableRow = Row & { readonly outcomes: Outcome[]; readonly errors: string[] };

/**
 * Plays all runs, in a network of its own, and says what became of them.
 * @returns the exit code
 */
export async function experiment(settings: Settings, kazoo: boolean): Promise<number> {
  const { runs, broken } = settings;
  const startMs = performance.now();
  const say = (text: string): void => {
    if (settings.json) return;
    console.log(`${((performance.now() - startMs) / 1000).toFixed(1).padStart(7)} s  ${text}`);
  };
  const network = new Network();
  const ensemble = await startEnsemble(3, {
    seats: network.seats,
    tickTimeMs: tickMs,
    minSessionTimeoutMs: 2 * tickMs,
    config: limits,
    // Once the wait between two votes has grown to a minute, a healed server may be as late.
    systemProperties: { 'zookeeper.fastleader.maxNotificationInterval': 1_000 },
  });
  const rows = new Map<string, MutableRow>();
  try {
    for (let run = 1; run <= runs; run += 1) {
      for (const [index, plan] of roundsOf(settings, kazoo).entries()) {
        const name = `run-${run}-${index + 1}`;
        const progress = (text: string): void => say(`${name}: ${text}`);
        try {
          const arena = { ensemble, network, tickMs, broken, progress };
          const played = await playRound(plan, name, arena);
          for (const outcome of played.outcomes)
            rowOf(rows, outcome.plan, plan).outcomes.push(outcome);
          if (settings.record !== undefined && run === 1 && index === 0) {
            writeRecording(settings.record, recordRound(played, tickMs));
          }
        } catch (error) {
          progress(`failed: ${(error as Error).message}`);
          for (const each of plan.elections) rowOf(rows, each, plan).errors.push(String(error));
        }
      }
    }
  } finally {
    await ensemble.close();
  }
  return conclude([...rows.values()], settings);
}

function roundsOf({ timeoutsMs, length, peer }: Settings, kazoo: boolean): readonly RoundPlan[] {
  const rounds = planRun(timeoutsMs, kazoo, length);
  if (peer !== 'only') return rounds;
  return rounds
    .map((round) => ({ ...round, elections: round.elections.filter(({ who }) => who === 'kazoo') }))
    .filter(({ elections }) => elections.length > 0);
}

function rowOf(
  rows: Map<string, MutableRow>,
  plan: ElectionPlan,
  { fault }: RoundPlan,
): MutableRow {
  const key = `${describeElection(plan, fault)} ${plan.timeoutMs}`;
  const row = rows.get(key) ?? { plan, fault, outcomes: [], errors: [] };
  rows.set(key, row);
  return row;
}

/** @returns the exit code */
function conclude(rows: readonly Row[], settings: Settings): number {
  // In the tests other work may slow the machine down.
  const judgeBound = settings.length === 'long';
  let passed = 0;
  const failures: string[] = [];
  for (const { plan, fault, outcomes, errors } of rows) {
    const what = `${describeElection(plan, fault)}, session timeout ${plan.timeoutMs} ms`;
    for (const error of errors) failures.push(`${what}: ${error}`);
    const [first] = outcomes;
    if (first !== undefined && !outcomes.some(isPlayed)) {
      failures.push(`${what}: never played: ${first.notPlayed}`);
    }
    for (const outcome of outcomes) {
      const faults = faultsOf(outcome, { tickMs, servesMs, judgeBound });
      if (faults === undefined) continue;
      if (faults.length === 0) passed += 1;
      else failures.push(`${what}: ${faults.join('; ')}`);
    }
  }
  if (settings.json) console.log(JSON.stringify({ rows }));
  else {
    const kazoo = rows.some(({ plan }) => plan.who !== 'ours');
    console.log(`\n${table(rows)}\n\n${legend}`);
    if (kazoo)
      console.log('kazoo knows no bound; at the shortest timeout it shows that the cut was one.');
    console.log('');
  }
  for (const failure of failures) console.log(`failed: ${failure}`);
  console.log(`${passed} passed, ${failures.length} failed`);
  return failures.length === 0 ? 0 : 1;
}
