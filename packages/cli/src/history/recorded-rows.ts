import type { TermRow } from '../output/term-rows.ts';
import { withGaps } from '../output/term-rows.ts';
import type { HistoryReader, Place } from './history-reader.ts';
import type { KnownTerm } from './known-term.ts';

/** The end of a term that nobody has told the recorder. */
export const notRecorded = 'not-recorded';

export interface RecordedRows {
  /** The oldest first. */
  readonly rows: readonly TermRow[];
  readonly next: Place | undefined;
}

/** A page of the terms of an election, with the gaps between them. */
export function recordedRows(
  reader: HistoryReader,
  election: number,
  sinceUnixMs: number,
  limit: number,
  before?: Place,
): RecordedRows {
  const { terms, predecessor, next } = reader.terms(election, sinceUnixMs, limit, before);
  const last = reader.lastChange(election);
  const known = (term: KnownTerm) => {
    const { token, id, incarnation, fromUnixMs, end } = term;
    const leads = last?.state === 'led' && last.token === token && last.incarnation === incarnation;
    const why = end === null ? (leads ? undefined : notRecorded) : end.why;
    return { token, id, incarnation, fromUnixMs, toUnixMs: end?.toUnixMs, why };
  };
  const oldestFirst = terms.map(known).reverse();
  const rows = withGaps(
    predecessor === undefined ? oldestFirst : [known(predecessor), ...oldestFirst],
  );
  return { rows: predecessor === undefined ? rows : rows.slice(1), next };
}
