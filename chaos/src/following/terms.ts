import type { TermLine } from './messages.ts';

/** The statements of a process about one term of its own. */
export interface ToldTerm {
  readonly token: bigint;
  readonly candidate: string;
  readonly beginsMs: number;
  /** When its belief ended: the last deadline that it was told, or sooner, if it knew so. */
  readonly endsMs: number;
}

/** @returns by token; terms that never began are left out */
export function readTerms(text: string): readonly ToldTerm[] {
  const terms = new Map<string, { candidate: string; beginsMs?: number; endsMs: number }>();
  for (const line of text.split('\n')) {
    // A killed process may leave half a line.
    if (!line.endsWith('}')) continue;
    const told = JSON.parse(line) as TermLine;
    const { token, candidate } = told;
    const term = terms.get(token) ?? { candidate, endsMs: Number.NEGATIVE_INFINITY };
    terms.set(token, term);
    if ('beginsMs' in told) term.beginsMs = told.beginsMs;
    else if ('untilMs' in told) term.endsMs = told.untilMs;
    else term.endsMs = Math.min(term.endsMs, told.overMs);
  }
  return [...terms]
    .flatMap(([token, { candidate, beginsMs, endsMs }]) =>
      beginsMs === undefined ? [] : [{ token: BigInt(token), candidate, beginsMs, endsMs }],
    )
    .sort((a, b) => (a.token < b.token ? -1 : 1));
}
