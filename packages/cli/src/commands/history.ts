import { resolve } from 'node:path';
import type { Snapshot } from 'incumbent';
import { look } from '../ask.ts';
import type { Context } from '../context.ts';
import { exitCodes, UsageError } from '../failure.ts';
import type { Place } from '../history/history-reader.ts';
import { HistoryReader } from '../history/history-reader.ts';
import { recordedRows } from '../history/recorded-rows.ts';
import { loadSqlite } from '../history/sqlite.ts';
import type { HistoryOptions } from '../options.ts';
import type { TermRow } from '../output/term-rows.ts';
import { printTerms, withGaps } from '../output/term-rows.ts';
import { shownUrl } from '../shown-url.ts';
import { parseSpanOf } from '../until.ts';

/** Rows that are read from a file at once. */
const pageSize = 1_000;

export async function history(options: HistoryOptions, context: Context): Promise<number> {
  const { from, since, json = false } = options;
  if (from === undefined && since !== undefined) {
    throw new UsageError(
      '--since reads a file that `incumbent record` writes: give --from, or leave it out',
    );
  }
  if (from !== undefined && options.seat !== undefined) {
    throw new UsageError(
      `--seat ${options.seat}: a file of \`incumbent record\` knows each seat by its own name, such as ` +
        '--election jobs.seat-2',
    );
  }
  const terms =
    from === undefined
      ? termsOf(
          await look(options, context, async ({ election, signal, noteNeverLed, oneSeat }) => {
            const first = await election.inspect({ signal });
            await noteNeverLed(first.view);
            const { election: asked, of } = oneSeat(first.seats, options.seat);
            return of.seat === undefined ? first : asked.inspect({ signal, ...of });
          }),
        )
      : await recordedTerms(from, options, context);
  printTerms(terms, json, context);
  return exitCodes.ok;
}

async function recordedTerms(
  from: string,
  options: HistoryOptions,
  context: Context,
): Promise<TermRow[]> {
  const { cwd } = context;
  const { election: name, since } = options;
  // A URL that was given may hold a password, which the file does not have.
  const store = options.store === undefined ? undefined : await shownUrl(options.store, context);
  const sinceUnixMs = since === undefined ? -Infinity : Date.now() - parseSpanOf('--since', since);
  const reader = new HistoryReader(resolve(cwd, from), loadSqlite(cwd));
  try {
    const election = reader.election(name, store);
    const pages: (readonly TermRow[])[] = [];
    let place: Place | undefined;
    do {
      const { rows, next } = recordedRows(reader, election, sinceUnixMs, pageSize, place);
      pages.unshift(rows);
      place = next;
    } while (place !== undefined);
    return pages.flat();
  } finally {
    reader.close();
  }
}

/** The past terms, the oldest first, and the present one. */
export function termsOf({ history: past, view, unfenced }: Snapshot): readonly TermRow[] {
  const terms: Omit<TermRow, 'gapBeforeMs'>[] = [...past];
  if (view.state === 'led' && view.leader !== undefined && view.token !== undefined) {
    const { id, incarnation } = view.leader;
    const { token, sinceUnixMs: fromUnixMs } = view;
    terms.push({ token, id, incarnation, fromUnixMs, toUnixMs: undefined, why: undefined });
  }
  return withGaps(terms).map((row) => {
    const isUnfenced = unfenced.some(
      (leader) => leader.token === row.token && leader.incarnation === row.incarnation,
    );
    return isUnfenced ? { ...row, unfenced: true } : row;
  });
}
