import type { Snapshot } from 'incumbent';
import { look } from '../ask.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import type { ElectionQuestion } from '../options.ts';
import { span } from '../output/span.ts';
import { painter } from '../terminal/style.ts';
import type { Cell } from '../terminal/table.ts';
import { table } from '../terminal/table.ts';
import { toJson, visible } from '../terminal/text.ts';
import { isoTime, localTime } from '../terminal/time.ts';

export async function history(options: ElectionQuestion, context: Context): Promise<number> {
  const snapshot = await look(options, context, async ({ election, signal, noteNeverLed }) => {
    const found = await election.inspect({ signal });
    await noteNeverLed(found.view);
    return found;
  });
  const terms = termsOf(snapshot);
  if (options.json) {
    for (const { fromUnixMs, toUnixMs, why, ...term } of terms) {
      const to = toUnixMs === undefined ? null : isoTime(toUnixMs);
      const durationMs = toUnixMs === undefined ? null : toUnixMs - fromUnixMs;
      const line = { ...term, from: isoTime(fromUnixMs), to, durationMs, why: why ?? null };
      context.stdout.write(`${toJson(line)}\n`);
    }
    return exitCodes.ok;
  }
  if (terms.length === 0) {
    context.stderr.write('no term is on record\n');
    return exitCodes.ok;
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
    painter(context.stdout, context.env),
    context.stdout.isTTY === true ? context.stdout.columns : undefined,
  );
  context.stdout.write(`${lines.join('\n')}\n`);
  return exitCodes.ok;
}

interface TermRow {
  readonly token: bigint;
  readonly id: string;
  readonly incarnation: string;
  readonly fromUnixMs: number;
  /** Undefined: it still leads. */
  readonly toUnixMs: number | undefined;
  readonly why: string | undefined;
  /** The next leader has to fence it first. */
  readonly unfenced?: true;
  /** How long the seat was vacant before; null where that is not known. */
  readonly gapBeforeMs: number | null;
}

/** The past terms, the oldest first, and the present one. */
export function termsOf({ history, view, unfenced }: Snapshot): readonly TermRow[] {
  const terms: Omit<TermRow, 'gapBeforeMs'>[] = [...history];
  if (view.state === 'led' && view.leader !== undefined && view.token !== undefined) {
    const { id, incarnation } = view.leader;
    const { token, sinceUnixMs: fromUnixMs } = view;
    terms.push({ token, id, incarnation, fromUnixMs, toUnixMs: undefined, why: undefined });
  }
  return terms.map(({ token, id, incarnation, fromUnixMs, toUnixMs, why }, i) => {
    const before = terms[i - 1];
    // After an unclean end only its successor's beginning is known, and that is what `to` says.
    const isKnown = before?.toUnixMs !== undefined && before.why !== 'unclean';
    const gapBeforeMs = isKnown ? Math.max(0, fromUnixMs - (before.toUnixMs ?? 0)) : null;
    const isUnfenced = unfenced.some(
      (leader) => leader.token === token && leader.incarnation === incarnation,
    );
    const row = { token, id, incarnation, fromUnixMs, toUnixMs, why, gapBeforeMs };
    return isUnfenced ? { ...row, unfenced: true } : row;
  });
}

function asRow(term: TermRow, nowUnixMs: number): Cell[] {
  const { token, id, fromUnixMs, toUnixMs, why, gapBeforeMs, unfenced } = term;
  return [
    { text: String(token) },
    { text: visible(id) },
    { text: localTime(fromUnixMs) },
    { text: toUnixMs === undefined ? 'now' : localTime(toUnixMs) },
    { text: span((toUnixMs ?? nowUnixMs) - fromUnixMs) },
    { text: gapBeforeMs === null ? '' : span(gapBeforeMs) },
    why === undefined
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
