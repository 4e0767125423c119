/** Terms as `history` prints them, from a store or from a file. */
import type { Context } from '../context.ts';
import { painter } from '../terminal/style.ts';
import type { Cell } from '../terminal/table.ts';
import { table } from '../terminal/table.ts';
import { toJson, visible } from '../terminal/text.ts';
import { isoTime, localTime } from '../terminal/time.ts';
import { span } from './span.ts';

export interface TermRow {
  readonly token: bigint | string;
  readonly id: string;
  readonly incarnation: string;
  readonly fromUnixMs: number;
  /** Undefined: it still leads, or its end is not on record. */
  readonly toUnixMs: number | undefined;
  /** Undefined: it still leads. */
  readonly why: string | undefined;
  /** The next leader has to fence it first. */
  readonly unfenced?: true;
  /** How long the seat was vacant before; null where that is not known. */
  readonly gapBeforeMs: number | null;
}

/** @param terms the oldest first */
export function withGaps(terms: readonly Omit<TermRow, 'gapBeforeMs'>[]): readonly TermRow[] {
  return terms.map(({ token, id, incarnation, fromUnixMs, toUnixMs, why }, i) => {
    const before = terms[i - 1];
    // After an unclean end only its successor's beginning is known, and that is what `to` says.
    const isKnown = before?.toUnixMs !== undefined && before.why !== 'unclean';
    const gapBeforeMs = isKnown ? Math.max(0, fromUnixMs - (before.toUnixMs ?? 0)) : null;
    return { token, id, incarnation, fromUnixMs, toUnixMs, why, gapBeforeMs };
  });
}

export function printTerms(
  terms: readonly TermRow[],
  json: boolean,
  { stdout, stderr, env }: Context,
): void {
  if (json) {
    for (const { fromUnixMs, toUnixMs, why, ...term } of terms) {
      const to = toUnixMs === undefined ? null : isoTime(toUnixMs);
      const durationMs = toUnixMs === undefined ? null : toUnixMs - fromUnixMs;
      const line = { ...term, from: isoTime(fromUnixMs), to, durationMs, why: why ?? null };
      stdout.write(`${toJson(line)}\n`);
    }
    return;
  }
  if (terms.length === 0) {
    stderr.write('no term is on record\n');
    return;
  }
  const nowUnixMs = Date.now();
  const lines = table(
    [
      { title: 'TOKEN', align: 'right' },
      { title: 'LEADER' },
      { title: 'FROM' },
      { title: 'TO' },
      { title: 'LASTED', align: 'right' },
      { title: 'GAP BEFORE', align: 'right' },
      { title: 'ENDED' },
    ],
    terms.map((term) => asRow(term, nowUnixMs)),
    painter(stdout, env),
    stdout.isTTY === true ? stdout.columns : undefined,
  );
  stdout.write(`${lines.join('\n')}\n`);
}

function asRow(term: TermRow, nowUnixMs: number): Cell[] {
  const { token, id, fromUnixMs, toUnixMs, why, gapBeforeMs, unfenced } = term;
  const leads = why === undefined;
  return [
    { text: String(token) },
    { text: visible(id) },
    { text: localTime(fromUnixMs) },
    { text: toUnixMs !== undefined ? localTime(toUnixMs) : leads ? 'now' : '?' },
    { text: leads || toUnixMs !== undefined ? span((toUnixMs ?? nowUnixMs) - fromUnixMs) : '?' },
    { text: gapBeforeMs === null ? '' : span(gapBeforeMs) },
    leads
      ? { text: 'leads', tone: 'good' }
      : {
          text: `${visible(why)}${unfenced ? ', not fenced' : ''}`,
          ...(badEnds.has(why) ? { tone: 'bad' as const } : {}),
        },
  ];
}

const badEnds: ReadonlySet<string> = new Set([
  'not-ready',
  'unclean',
  'work-failed',
  'renewal-failed',
  'stalled',
  'unhealthy',
  'takeover-failed',
  'record-gone',
  'session-expired',
]);
