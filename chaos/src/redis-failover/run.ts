import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { inSeconds } from '@incumbent/servers';
import { connect } from '@incumbent/zookeeper';
import type { Played } from '../harness/report.ts';
import { StuckError } from '../harness/stuck.ts';
import { monotonicMs, Stalls } from '../harness/time.ts';
import { settleBoundMs, timing } from './bound.ts';
import { describeRound, drawRounds, faultsOf } from './plan.ts';
import { Servers } from './servers.ts';
import type { RoundOutcome } from './set.ts';
import { FailoverSet } from './set.ts';
import type { Settings } from './settings.ts';

/** Below that nobody had to wait for another primary. */
const noticedMs = 300;
/** Of one round. */
const mostShown = 5;

export interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly played: readonly Played<string>[];
  readonly writes: number;
  readonly terms: number;
  readonly refused: number;
  readonly unknown: number;
  /** Acknowledged writes that are gone, where Redis may lose them. */
  readonly lost: number;
}

/** So many lines of a round are shown when it has failed. */
const mostNoted = 2_000;

/** Plays all rounds, those of each set one after the other, and judges each of them. */
export async function runChaos(
  { rounds, sets: count, ensemble, seed, broken }: Settings,
  directory: string,
  say: (line: string) => void,
): Promise<Outcome> {
  const notes = join(directory, 'notes.txt');
  const startMs = monotonicMs();
  /** Of the last two rounds of each set: where nobody keeps the file, they are all that is left. */
  const recent = new Recent();
  const note = (line: string): void => {
    const timed = `${((monotonicMs() - startMs) / 1000).toFixed(3).padStart(9)} ${line}`;
    appendFileSync(notes, `${timed}\n`);
    recent.add(line, timed);
  };
  const stalls = new Stalls();
  const played: Played<string>[] = [];
  let failed = 0;
  let lost = 0;
  let done = 0;
  const tally = (what: string, { problems, ...rest }: RoundOutcome): void => {
    lost += rest.lost;
    const gone = rest.lost === 0 ? '' : `; ${rest.lost} acknowledged writes lost, as may be`;
    say(`${what}: longest pause ${inSeconds(rest.gapMs)}${gone}`);
    if (problems.length === 0) return;
    failed += 1;
    for (const problem of problems.slice(0, mostShown)) say(`  FAILED ${problem}`);
    if (problems.length > mostShown) say(`  FAILED and ${problems.length - mostShown} more`);
    console.log(recent.of(what));
  };

  const servers = await Servers.start(ensemble);
  const zk = await connect(servers.connectionString, { sessionTimeoutMs: 30_000 });
  const boundMs = (fromMs: number): number => {
    const settleMs = settleBoundMs(timing);
    return settleMs + stalls.ms(fromMs, fromMs + settleMs);
  };
  const sets: FailoverSet[] = [];
  const planned = Array.from({ length: count }, (_none, index) => shareOf(rounds, count, index));
  try {
    const settings = { servers, zk, directory, broken, note, boundMs };
    for (let index = 0; index < count; index += 1) {
      sets.push(await FailoverSet.start(index, settings));
    }
    for (const { about } of sets) say(about);
    say(`well again within ${inSeconds(settleBoundMs(timing))} of the end of all faults\n`);
    await Promise.all(sets.map((set, index) => playAll(set, index)));
  } finally {
    stalls.stop();
    await Promise.all(sets.map((set) => set.close()));
    await zk.close();
    await servers.close();
  }

  async function playAll(set: FailoverSet, index: number): Promise<void> {
    const name = `s${index + 1}`;
    const mine = planned[index] ?? 0;
    const drawn = drawRounds(seed + index, set.hasMinReplicas);
    try {
      const first = await set.settled();
      if (first.problems.length > 0) tally(`${name} before anything was struck`, first);
      for (let number = 1; number <= mine; number += 1) {
        const round = drawn.next().value;
        const words = describeRound(round);
        note(`${name} ROUND ${number}: ${words}`);
        const outcome = await set.play(round);
        done += 1;
        tally(`${name} ${number}/${mine}  ${words}`, outcome);
        const takeoverMs = outcome.gapMs < noticedMs ? undefined : outcome.gapMs;
        played.push(...faultsOf(round).map((fault) => ({ fault, takeoverMs })));
        if (outcome.isStuck) throw new StuckError(`${name} is not well again`);
      }
      const left = await set.end();
      if (left.length > 0) {
        failed += 1;
        for (const what of left) say(`  FAILED ${what}`);
      }
    } catch (error) {
      if (!(error instanceof StuckError)) throw error;
      say(`  FAILED ${error.message}`);
      failed += 1;
    }
  }

  const all = rounds + count;
  // The rounds that a stuck set did not play have not passed.
  const missing = rounds - done;
  const sum = (pick: (set: FailoverSet) => number) => sets.reduce((to, set) => to + pick(set), 0);
  failed = Math.min(all, failed + missing);
  return {
    passed: all - failed,
    ...{ failed, played, lost },
    writes: sum(({ totals }) => totals.writes),
    terms: sum(({ totals }) => totals.terms),
    refused: sum(({ totals }) => totals.notAcknowledged.refused),
    unknown: sum(({ totals }) => totals.notAcknowledged.unknown),
  };
}

/** The notes on each set since the round before began. */
class Recent {
  readonly #lines = new Map<string, { before: string[]; now: string[] }>();

  add(line: string, timed: string): void {
    const [set = ''] = line.split(' ', 1);
    let lines = this.#lines.get(set);
    if (lines === undefined || line.startsWith(`${set} ROUND `)) {
      lines = { before: lines?.now ?? [], now: [] };
      this.#lines.set(set, lines);
    }
    if (lines.now.length < mostNoted) lines.now.push(timed);
  }

  /** @param what begins with the name of a set */
  of(what: string): string {
    const { before = [], now = [] } = this.#lines.get(what.split(' ', 1)[0] ?? '') ?? {};
    return [...before, ...now].join('\n');
  }
}

/** As even as can be. */
function shareOf(rounds: number, sets: number, index: number): number {
  return Math.floor(rounds / sets) + (index < rounds % sets ? 1 : 0);
}
