import type { KnownTerm } from './known-term.ts';
import type { Row } from './sqlite.ts';

/** A row of the table `terms`. */
export function termOf(row: Row): KnownTerm {
  const { token, incarnation, leader, from_unix_ms: from, to_unix_ms: to, why } = row;
  return {
    token: String(token),
    incarnation: String(incarnation),
    id: String(leader),
    fromUnixMs: Number(from),
    end: to === null || to === undefined ? null : { toUnixMs: Number(to), why: String(why) },
  };
}
