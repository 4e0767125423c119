import { writeFileSync } from 'node:fs';
import type { CandidateProcess } from './candidate.ts';
import type { ElectionUnderFault } from './election.ts';
import type { Check } from './messages.ts';
import { draw } from './picture.ts';
import type { PlayedRound } from './round.ts';

/** The events of one election, in ms from the fault on. */
export interface Recording {
  readonly recordedOn: string;
  readonly tickMs: number;
  readonly timeoutMs: number;
  readonly ours: RecordedElection;
  readonly kazoo: RecordedElection;
}

export interface RecordedElection {
  readonly a: RecordedCandidate;
  readonly b: RecordedCandidate;
  /** When the quorum had expired A's session. */
  readonly placeGoneMs: number;
}

export interface RecordedCandidate {
  readonly leads: readonly { readonly fromMs: number; readonly toMs: number }[];
  readonly checks: readonly Check[];
  readonly states: readonly { readonly atMs: number; readonly state: string }[];
}

/** @throws unless ours and kazoo's were cut off in it, with the same session timeout */
export function recordRound({ elections, faultMs }: PlayedRound, tickMs: number): Recording {
  const shortest = Math.min(...elections.map(({ plan }) => plan.timeoutMs));
  const find = (who: 'ours' | 'kazoo'): ElectionUnderFault => {
    const found = elections.find(
      ({ plan }) => plan.who === who && plan.scenario === 'cut' && plan.timeoutMs === shortest,
    );
    if (found === undefined) throw new Error(`nothing of ${who} to record`);
    return found;
  };
  return {
    recordedOn: new Date().toISOString().slice(0, 10),
    tickMs,
    timeoutMs: shortest,
    ours: recordElection(find('ours'), faultMs),
    kazoo: recordElection(find('kazoo'), faultMs),
  };
}

/** The recording, and its timeline beside it. */
export function writeRecording(path: string, recording: Recording): void {
  writeFileSync(path, `${JSON.stringify(recording, null, 2)}\n`);
  writeFileSync(pictureOf(path), draw(recording));
}

export function pictureOf(path: string): string {
  return path.replace(/\.json$/, '.svg');
}

function recordElection(election: ElectionUnderFault, faultMs: number): RecordedElection {
  const { placeGoneMs } = election;
  if (placeGoneMs === undefined) throw new Error("A's place never vanished");
  return {
    a: recordCandidate(election.a, faultMs),
    b: recordCandidate(election.b, faultMs),
    placeGoneMs: rounded(placeGoneMs - faultMs),
  };
}

function recordCandidate(candidate: CandidateProcess, faultMs: number): RecordedCandidate {
  const from = (ms: number): number => rounded(ms - faultMs);
  const spells = candidate.find('report')?.spells ?? [];
  return {
    // The process was ended after its report.
    leads: spells.map(({ fromMs, lastMs, untilMs }) => {
      return { fromMs: from(fromMs), toMs: from(untilMs ?? lastMs) };
    }),
    checks: candidate.all('check').map(({ sentMs, settledMs, ok }) => {
      return { sentMs: from(sentMs), settledMs: from(settledMs), ok };
    }),
    states: candidate.all('state').map(({ atMs, state }) => ({ atMs: from(atMs), state })),
  };
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
