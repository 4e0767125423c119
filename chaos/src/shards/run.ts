import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { inSeconds } from '@incumbent/servers';
import type { Played } from '../harness/report.ts';
import { table } from '../harness/report.ts';
import { StuckError } from '../harness/stuck.ts';
import type { Sums } from '../harness/sums.ts';
import { monotonicMs, pause, Stalls } from '../harness/time.ts';
import { Verdict } from '../harness/verdict.ts';
import { imbalanceOf } from './balance.ts';
import { balanceBoundMs } from './bound.ts';
import type { Place } from './members.ts';
import { Members } from './members.ts';
import type { StoreName } from './messages.ts';
import { planRounds, rowsOf } from './plan.ts';
import type { Settings } from './settings.ts';
import { longestSettleMs } from './settle.ts';
import { ShardLogs } from './shard-logs.ts';
import { Stage } from './stage.ts';
import type { Arena } from './strike.ts';
import { strikeAll } from './strike.ts';

/** The time that the end of a run takes. */
const endMs = 5_000;
/** An owner acts more often than that. */
const freshMs = 300;
const lookEveryMs = 20;

/** @returns how many rounds passed and failed; what is found after the last one counts as another */
export async function runChaos(
  store: StoreName,
  { seconds, members: count, shards, seed, broken }: Omit<Settings, 'stores'>,
  directory: string,
): Promise<Sums> {
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
  const logs = new ShardLogs(directory, shards);
  const verdict = new Verdict(logs, say);
  const stalls = new Stalls();
  const stage = await Stage.start(store, directory);
  const boundMs = balanceBoundMs(stage.timing, longestSettleMs);
  const members = new Members(
    { store, leaseMs: stage.leaseMs, logs: logs.paths, ...(broken && { broken }) },
    directory,
    (problem) => verdict.blame(problem),
  );
  const isLate = (sinceMs: number): boolean => {
    const nowMs = monotonicMs();
    return nowMs - sinceMs > boundMs + stalls.ms(sinceMs, nowMs);
  };
  const arena: Arena = { stage, members, isLate, note };
  const played: Played<string>[] = [];
  const sums = { passed: 0, failed: 0 };
  const tally = (isBad: boolean) => {
    if (isBad) sums.failed += 1;
    else sums.passed += 1;
  };
  say(
    `${store}: ${shards} shards, ${count} processes with leases of ${stage.leaseMs} ms, ${seconds} s\n` +
      `seed ${seed}; after the last change each shard must have its owner within ${inSeconds(boundMs)}\n`,
  );

  /** @returns how long it took from now on; undefined: longer than the bound */
  async function balanced(): Promise<number | undefined> {
    const fromMs = monotonicMs();
    for (;;) {
      logs.read();
      const nowMs = monotonicMs();
      const sinceMs = Math.max(fromMs, nowMs - freshMs);
      const why = imbalanceOf(logs.newest, members.takingPart, sinceMs);
      if (why === undefined) return nowMs - fromMs;
      if (isLate(fromMs)) {
        verdict.blame(`balance: ${inSeconds(nowMs - fromMs)} after the last change ${why}`);
        return undefined;
      }
      await pause(lookEveryMs);
    }
  }

  try {
    for (let place = 0; place < count; place += 1) members.addPlace(await stage.connect());
    await Promise.all(members.places.map((place) => members.start(place)));
    if ((await balanced()) === undefined) throw new StuckError('the shards were never shared');
    for (const round of planRounds(seed, stage.server !== undefined)) {
      const before = logs.newest.map((term) => term?.token);
      await strikeAll(arena, round);
      const tookMs = await balanced();
      const moved = logs.newest.filter((term, shard) => term?.token !== before[shard]).length;
      const rows = rowsOf(round);
      for (const fault of rows) played.push({ fault, takeoverMs: tookMs });
      const how = tookMs === undefined ? 'not balanced' : `balanced after ${inSeconds(tookMs)}`;
      say(
        `${String(round.number).padStart(4)}  ${rows.join(', ').padEnd(52)} ${how}, ${moved} terms`,
      );
      tally(verdict.tell());
      if (monotonicMs() > deadlineMs) break;
    }
    const closeMs = monotonicMs();
    const leave = (place: Place) => members.leave(place, 'close', () => isLate(closeMs));
    await Promise.all(members.places.map(leave));
  } catch (error) {
    if (!(error instanceof StuckError)) throw error;
    verdict.blame(error.message);
  }
  await members.killAll();
  stalls.stop();
  logs.close();
  tally(verdict.tell());
  await stage.close();
  const names = [...new Set(played.map(({ fault }) => fault))].sort();
  say(`\n${table(names, played, 'late')}\n`);
  say(verdict.summary());
  return sums;
}
