/** One election of many, as a row of a table and as an object. */
import type { ElectionSummary } from 'incumbent';
import { formatDuration } from 'incumbent';
import type { Cell, Column } from '../terminal/table.ts';
import { toJson, visible } from '../terminal/text.ts';
import { isoTime, localTime } from '../terminal/time.ts';
import { sinceOf, stateTone, tokenOf } from './describe.ts';
import { asCandidatesSee, whyVacant } from './vacancy.ts';

/** More ids than this are counted, not shown. */
const mostIds = 3;

export const electionColumns: readonly Column[] = [
  { title: 'ELECTION' },
  { title: 'STATE' },
  { title: 'LEADER' },
  { title: 'TOKEN', align: 'right' },
  { title: 'SINCE' },
  { title: 'FOR', align: 'right' },
  { title: 'WAITING' },
  { title: 'LAST CHANGE' },
];

/** The parts of an election that a list shows. Two that are equal show the same. */
export interface ElectionRow {
  readonly election: string;
  readonly state: string;
  readonly leader: string | null;
  readonly ready: boolean | null;
  readonly token: bigint | null;
  readonly since: string | null;
  /** Null: the store does not tell. */
  readonly waiting: readonly string[] | null;
  /** The last term that is over. Null: none is on record. */
  readonly previous: PreviousTerm | null;
  /** Why the seat is vacant, or why the record cannot be read. Null: nothing more is known. */
  readonly why: string | null;
}

interface PreviousTerm {
  readonly token: bigint;
  readonly id: string;
  readonly to: string | null;
  readonly why: string;
}

/** @param leaseMs the default lease of candidates on this store */
export function rowOf(summary: ElectionSummary, leaseMs: number, nowUnixMs: number): ElectionRow {
  const { name, view, waiting, history } = summary;
  const last = history.at(-1);
  // A view counts from when it was seen, where the record does not say since when it is vacant.
  const isSinceKnown = view.state === 'led' || (last !== undefined && !summary.holderGone);
  return {
    election: name,
    state: view.state,
    leader: view.leader?.id ?? null,
    ready: view.ready ?? null,
    token: tokenOf(view),
    since: isSinceKnown && view.state !== 'unknown' ? sinceOf(view) : null,
    waiting: waiting?.map(({ id }) => id) ?? null,
    previous:
      last === undefined
        ? null
        : { token: last.token, id: last.id, to: isoTime(last.toUnixMs), why: last.why },
    why: whyOf(summary, leaseMs, nowUnixMs),
  };
}

function whyOf(summary: ElectionSummary, leaseMs: number, nowUnixMs: number): string | null {
  const { view } = summary;
  if (view.state === 'unknown') return view.error?.message ?? 'it cannot be read';
  if (view.state !== 'vacant') return null;
  const seen = asCandidatesSee(summary, leaseMs, leaseMs, nowUnixMs);
  return whyVacant(seen, nowUnixMs) ?? null;
}

export function asCells(row: ElectionRow, nowUnixMs: number): readonly Cell[] {
  const { state, ready, since, leader, token } = row;
  const isUnready = ready === false;
  const view = { state, ...(isUnready ? { ready } : {}) } as Parameters<typeof stateTone>[0];
  const sinceUnixMs = since === null ? undefined : Date.parse(since);
  return [
    { text: visible(row.election) },
    { text: isUnready ? `${state}, not ready` : state, tone: stateTone(view) },
    { text: leader === null ? '' : visible(leader) },
    { text: token === null ? '' : String(token) },
    { text: sinceUnixMs === undefined ? '' : localTime(sinceUnixMs) },
    { text: sinceUnixMs === undefined ? '' : formatDuration(Math.max(0, nowUnixMs - sinceUnixMs)) },
    { text: waitingWords(row) },
    { text: changeWords(row) },
  ];
}

function waitingWords({ waiting }: ElectionRow): string {
  if (waiting === null) return '?';
  const more = waiting.length - mostIds;
  const shown = waiting.slice(0, mostIds).map(visible).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
}

function changeWords({ why, previous }: ElectionRow): string {
  const ended = previous === null ? undefined : `${previous.why} (${visible(previous.id)})`;
  if (why === null) return ended ?? '';
  return ended === undefined ? visible(why) : `${visible(why)}; ${ended}`;
}

export function asJson(row: ElectionRow): string {
  return toJson(row);
}

/** `orders-2` before `orders-10`. */
const byNumber = new Intl.Collator('en', { numeric: true });

export function byElection(a: ElectionRow, b: ElectionRow): number {
  if (a.election === b.election) return 0;
  return byNumber.compare(a.election, b.election) || (a.election < b.election ? -1 : 1);
}

/** `12 elections: 10 led, 2 vacant` */
export function countWords(rows: readonly ElectionRow[]): string {
  const counts = new Map<string, number>();
  for (const { state } of rows) counts.set(state, (counts.get(state) ?? 0) + 1);
  const parts = ['led', 'vacant', 'unknown', 'ended'].flatMap((state) =>
    counts.has(state) ? `${counts.get(state)} ${state}` : [],
  );
  const total = `${rows.length} election${rows.length === 1 ? '' : 's'}`;
  return parts.length === 0 ? total : `${total}: ${parts.join(', ')}`;
}
