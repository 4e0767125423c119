/** The terms before those that the stores keep, from the file of `incumbent record`. */
import { resolve } from 'node:path';
import type { Context } from '../context.ts';
import { HistoryError } from '../history/history-file.ts';
import type { Place } from '../history/history-reader.ts';
import { HistoryReader } from '../history/history-reader.ts';
import { recordedRows } from '../history/recorded-rows.ts';
import { loadSqlite } from '../history/sqlite.ts';
import { ActionError } from '../web/page-server.ts';
import { storeIndexOf, wholeNumberOf } from './query.ts';
import type { PastTerms } from './shown.ts';

const pageSize = 500;

export interface Past {
  /** Answers `/history`. @throws ActionError */
  readonly answer: (query: URLSearchParams) => PastTerms;
  close(): void;
}

/** @throws HistoryError */
export function openPast(
  file: string,
  stores: readonly { readonly url: string }[],
  { cwd }: Context,
): Past {
  const reader = new HistoryReader(resolve(cwd, file), loadSqlite(cwd));
  return {
    answer(query) {
      const url = stores[storeIndexOf(query)]?.url;
      if (url === undefined) throw new ActionError(`there is no store ${query.get('store')}`);
      const since = wholeNumberOf(query, 'since');
      const before = placeOf(query.get('before'));
      try {
        const election = reader.election(query.get('election') ?? '', url);
        const { rows, next } = recordedRows(reader, election, since, pageSize, before);
        return {
          terms: rows.toReversed().map(({ token, toUnixMs, why, ...term }) => ({
            ...{ ...term, token: String(token), toUnixMs: toUnixMs ?? null, why: why ?? null },
          })),
          next: next === undefined ? null : `${next.fromUnixMs} ${next.token} ${next.incarnation}`,
        };
      } catch (error) {
        throw error instanceof HistoryError ? new ActionError(error.message) : error;
      }
    },
    close: () => reader.close(),
  };
}

function placeOf(text: string | null): Place | undefined {
  if (text === null) return undefined;
  const [, from, token, incarnation] = /^(\S+) (\S+) (.*)$/s.exec(text) ?? [];
  const fromUnixMs = Number(from);
  if (token === undefined || incarnation === undefined || Number.isNaN(fromUnixMs)) {
    throw new ActionError(`before="${text}" is no place in a history`);
  }
  return { fromUnixMs, token, incarnation };
}
