/** The recorded terms of one election, from the file of `incumbent record`. */
import { useEffect, useState } from 'preact/hooks';
import type { PastTerm, PastTerms, ShownElection, ShownTerm } from '../../src/dashboard/shown.ts';
import { nowUnixMs, page } from './model.ts';
import { windowMs, windowWords } from './overview.tsx';

export interface Past {
  /** The newest first, in the window that is chosen. */
  readonly terms: readonly PastTerm[];
  readonly error: string | undefined;
  /** Which window, as the end of a sentence. */
  readonly words: string;
  /** Reads older ones; undefined: there are none in this window. */
  readonly more: (() => void) | undefined;
  /** The election with all recorded terms that are over. */
  lengthen(shown: ShownElection): ShownElection;
}

const nothing: PastTerms = { terms: [], next: null };

/** Reads it again when a term has begun or ended. */
export function usePast(store: number, election: string, shown: ShownElection | undefined): Past {
  const [found, setFound] = useState(nothing);
  const [error, setError] = useState<string>();
  const isKept = page.value?.history === true;
  const span = windowMs.value;
  const newest = `${shown?.token} ${shown?.history.at(-1)?.token} ${shown?.state}`;

  useEffect(() => setFound(nothing), [span]);
  useEffect(() => {
    if (!isKept) return;
    let isLeft = false;
    // The recorder writes a moment after it is told, as this page is.
    const read = () =>
      readPast(store, election, span)
        .then((newest) => {
          if (isLeft) return;
          setError(undefined);
          setFound((before) => followedBy(newest, before));
        })
        .catch(({ message }: Error) => {
          if (!isLeft) setError(message);
        });
    void read();
    const again = setTimeout(read, 3_000);
    return () => {
      isLeft = true;
      clearTimeout(again);
    };
  }, [isKept, store, election, span, newest]);

  const { terms, next } = found;
  const more = () => {
    // Nobody waits: the page shows what comes of it.
    void readPast(store, election, span, next ?? '')
      .then((older) =>
        setFound((now) =>
          now.next === next ? { terms: [...now.terms, ...older.terms], next: older.next } : now,
        ),
      )
      .catch(({ message }: Error) => setError(message));
  };
  return {
    ...{ terms, error, words: isKept ? ` in the last ${windowWords()}` : '' },
    more: next === null ? undefined : more,
    lengthen: (live) => (isKept ? { ...live, history: together(terms, live.history) } : live),
  };
}

/** The newest terms, and behind them the older ones that were read before. */
function followedBy(newest: PastTerms, before: PastTerms): PastTerms {
  const last = newest.terms.at(-1);
  const at = before.terms.findIndex(
    ({ token, incarnation }) => token === last?.token && incarnation === last.incarnation,
  );
  const older = at === -1 ? [] : before.terms.slice(at + 1);
  return older.length === 0 ? newest : { terms: [...newest.terms, ...older], next: before.next };
}

/** The terms that are over, the oldest first. A newer one may be known to the store alone. */
function together(recorded: readonly PastTerm[], kept: readonly ShownTerm[]): readonly ShownTerm[] {
  const terms = new Map<string, ShownTerm>();
  for (const { token, id, fromUnixMs, toUnixMs, why } of recorded.toReversed()) {
    if (toUnixMs === null || why === null) continue;
    terms.set(`${token} ${id}`, { token, id, fromUnixMs, toUnixMs, why });
  }
  for (const term of kept) terms.set(`${term.token} ${term.id}`, term);
  return [...terms.values()].sort((a, b) => a.toUnixMs - b.toUnixMs);
}

async function readPast(
  store: number,
  election: string,
  spanMs: number,
  before?: string,
): Promise<PastTerms> {
  const query = new URLSearchParams({
    ...{ store: String(store), election },
    since: String(Math.max(0, nowUnixMs.peek() - spanMs)),
    ...(before !== undefined && { before }),
  });
  const response = await fetch(`/history?${query}`);
  const answer = (await response.json()) as PastTerms & { readonly error?: string };
  if (!response.ok) throw new Error(answer.error);
  return answer;
}
