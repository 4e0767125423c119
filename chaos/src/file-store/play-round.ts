import type { CandidateProcess, FencedLog, TermActivity } from '@incumbent/cli/trial';
import { livingOf, waitUntil } from '@incumbent/cli/trial';
import { inSeconds } from '@incumbent/servers';
import type { Timing } from 'incumbent';
import type { Fleet } from '../harness/fleet.ts';
import { StuckError } from '../harness/stuck.ts';
import type { Stalls } from '../harness/time.ts';
import { takeoverBoundMs } from './bound.ts';
import type { Round } from './plan.ts';

export interface Arena {
  readonly fleet: Fleet;
  readonly log: FencedLog;
  readonly timing: Timing;
  /** Asks the leader to go. */
  readonly vacate: () => Promise<void>;
  /** Terms whose process groups were looked at after the next had begun. */
  readonly buried: Set<bigint>;
  /** A machine that stands still holds up everybody. */
  readonly stalls: Stalls;
}

export interface Outcome {
  readonly struck: TermActivity;
  /** The leader now; the struck one itself if it survived a short freeze. */
  readonly leader: TermActivity;
  /** From the fault to the first effect of the next term; undefined: the struck one goes on. */
  readonly takeoverMs: number | undefined;
  readonly problems: readonly string[];
}

/** Beyond the bound: what is late is a violation, what never comes ends the run. */
const stuckMs = 60_000;

/** @throws StuckError */
export async function firstLeader({ log, timing }: Arena): Promise<TermActivity> {
  const boundMs = takeoverBoundMs('kill supervisor', timing) + stuckMs;
  const first = await waitUntil(() => log.judge.newest, boundMs);
  if (first === undefined) throw new StuckError('liveness: nobody has ever led');
  return first;
}

/**
 * Strikes the leader and waits until somebody leads.
 * @throws StuckError
 */
export async function playRound(arena: Arena, round: Round): Promise<Outcome> {
  const { log, timing } = arena;
  await waitUntil(() => false, round.afterMs);
  log.read();
  const struck = newest(log);
  const strike = await strikeLeader(arena, round, struck);
  const boundMs = takeoverBoundMs(round.fault, timing);
  const problems: string[] = [];

  const leader = await waitUntil(
    () => {
      const latest = newest(log);
      if (latest.token > strike.token) return latest;
      // Effects later than this prove that it has renewed since.
      const { thawedNs } = strike;
      if (thawedNs !== undefined && latest.lastNs > thawedNs + nsOf(timing.beliefMs)) return latest;
      return undefined;
    },
    boundMs + round.freezeMs + stuckMs,
  );
  const since = `${round.fault} of ${struck.candidate} (term ${strike.token})`;
  if (leader === undefined) {
    throw new StuckError(`liveness: nobody has led since ${since}, given up on`);
  }
  if (leader.token === struck.token) return { struck, leader, takeoverMs: undefined, problems };

  const { atNs, thawedNs } = strike;
  const countsFromNs = thawedNs !== undefined && thawedNs < leader.firstNs ? thawedNs : atNs;
  const tookMs = msBetween(countsFromNs, leader.firstNs);
  const fromMs = Number(countsFromNs) / 1e6;
  if (tookMs > boundMs + arena.stalls.ms(fromMs, fromMs + boundMs)) {
    problems.push(
      `liveness: nobody led for ${inSeconds(tookMs)} after ${since}; the bound is ${inSeconds(boundMs)}`,
    );
  }
  problems.push(...leftBehind(log, leader, arena.buried));
  return { struck, leader, takeoverMs: msBetween(atNs, leader.firstNs), problems };
}

/**
 * Processes of older terms that are still there while `leader` works. Effects alone do not tell: a
 * program that does nothing for a moment leaves none.
 * @param buried terms that were looked at, which is done once
 */
export function leftBehind(log: FencedLog, leader: TermActivity, buried: Set<bigint>): string[] {
  const problems: string[] = [];
  for (const { token, candidate, group } of log.judge.terms) {
    if (token >= leader.token || buried.has(token)) continue;
    buried.add(token);
    const living = livingOf(group);
    if (living.length === 0) continue;
    problems.push(
      `nobody left behind: while term ${leader.token} works there is of term ${token} ` +
        `(${candidate}): ${living.join('; ')}`,
    );
  }
  return problems;
}

interface Strike {
  readonly atNs: bigint;
  /** Any newer term is a takeover. */
  readonly token: bigint;
  /** When a frozen one went on; undefined until then. */
  readonly thawedNs: bigint | undefined;
}

async function strikeLeader(arena: Arena, round: Round, struck: TermActivity): Promise<Strike> {
  const { fleet } = arena;
  const { fault, freezeMs, restartMs } = round;
  // Its report may come after its first effect.
  const victim = await waitUntil(() => fleet.leaderOf(struck.token), stuckMs);
  if (victim === undefined) {
    throw new StuckError(`term ${struck.token} of ${struck.candidate} was never reported`);
  }
  const struckNow = (): Strike => ({
    atNs: process.hrtime.bigint(),
    token: struck.token,
    thawedNs: undefined,
  });
  const freeze = (who: { readonly supervisor: boolean; readonly guard: boolean }): Strike => {
    const thawing = fleet.freeze(victim, who, freezeMs);
    const strike: Strike & { thawedNs: bigint | undefined } = struckNow();
    void thawing.then((atNs) => {
      strike.thawedNs = atNs;
    });
    return strike;
  };
  const kill = (who: {
    readonly supervisor: boolean;
    readonly guard: boolean;
    readonly group?: number;
  }): Strike => {
    fleet.kill(victim, who, restartMs);
    return struckNow();
  };
  switch (fault) {
    case 'kill supervisor':
      return kill({ supervisor: true, guard: false });
    case 'kill guard':
      return kill({ supervisor: false, guard: true });
    case 'kill both':
      return kill({ supervisor: true, guard: true });
    case 'kill all':
      return kill({ supervisor: true, guard: true, group: struck.group });
    case 'freeze supervisor':
      return freeze({ supervisor: true, guard: false });
    case 'freeze guard':
      return freeze({ supervisor: false, guard: true });
    case 'freeze both':
      return freeze({ supervisor: true, guard: true });
    case 'kill and freeze':
      // The guard first: it would be quicker than we are. Its thaw lets nobody go on.
      void fleet.freeze(victim, { supervisor: false, guard: true }, freezeMs);
      return kill({ supervisor: true, guard: false });
    case 'resign': {
      const strike = struckNow();
      await arena.vacate();
      return strike;
    }
    case 'kill next':
      return killNext(arena, round, victim, kill);
    default:
      return fault satisfies never;
  }
}

/** Kills the leader, and the next one as soon as that reports to lead, so before its program works. */
async function killNext(
  { fleet, timing }: Arena,
  { nextAfterMs, nextBoth, restartMs }: Round,
  first: CandidateProcess,
  kill: (who: { readonly supervisor: boolean; readonly guard: boolean }) => Strike,
): Promise<Strike> {
  let token: bigint | undefined;
  let atNs = 0n;
  const stopListening = fleet.onLeading((nextToken, next) => {
    if (token !== undefined || next === first) return;
    token = nextToken;
    setTimeout(() => {
      fleet.kill(next, { supervisor: true, guard: nextBoth }, restartMs);
      atNs = process.hrtime.bigint();
    }, nextAfterMs);
  });
  kill({ supervisor: true, guard: false });
  await waitUntil(() => atNs > 0n, takeoverBoundMs('kill next', timing) + stuckMs);
  stopListening();
  if (token === undefined) throw new StuckError(`liveness: nobody took over from ${first.id}`);
  return { atNs, token, thawedNs: undefined };
}

function newest(log: FencedLog): TermActivity {
  const { newest } = log.judge;
  if (newest === undefined) throw new StuckError('nobody has led');
  return newest;
}

function nsOf(ms: number): bigint {
  return BigInt(Math.round(ms * 1e6));
}

function msBetween(fromNs: bigint, toNs: bigint): number {
  return Number(toNs - fromNs) / 1e6;
}
