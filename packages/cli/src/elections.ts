/**
 * A misspelt name is another election: it works, and no other candidate takes part in it. So when
 * an election has never been led, we list the elections with similar names.
 */
import type { TimingOptions } from 'incumbent';
import { createElection } from 'incumbent';
import type { OpenStore } from './context.ts';
import { isLedOnce } from './output/describe.ts';
import { nearest } from './terminal/nearest.ts';
import { within } from './url/reach.ts';

/** The list is only a hint, so no command waits longer for it. */
const longestLookMs = 2_000;
/** More names than this are not compared. */
const mostNames = 10_000;
/** At most this many similar names are looked at: a name may exist that has never been led. */
const mostLooks = 3;
/** More names than this are counted, not shown. */
const mostShown = 5;

interface Others {
  /** Led before, and nearly of that name. */
  readonly nearest: string | undefined;
  readonly all: readonly string[];
}

/**
 * @returns the rest of a sentence, such as `; did you mean "nightly"?`; empty where no other is
 * known
 * @throws the reason of `signal`, and nothing else
 */
export async function meantInstead(
  store: OpenStore,
  name: string,
  timing: TimingOptions,
  signal: AbortSignal,
): Promise<string> {
  const others = await othersThan(store, name, timing, signal);
  if (others === undefined) return '';
  const { nearest: meant, all } = others;
  if (meant !== undefined) return `; did you mean ${quoted(meant)}?`;
  if (all.length === 0) return '';
  return `; there ${all.length === 1 ? 'is' : 'are'} ${listed(all)}`;
}

/**
 * @returns undefined where the list is not found within bounds
 * @throws the reason of `signal`, and nothing else
 */
export async function othersThan(
  store: OpenStore,
  name: string,
  timing: TimingOptions,
  signal: AbortSignal,
): Promise<Others | undefined> {
  const stop = new AbortController();
  try {
    const either = AbortSignal.any([signal, stop.signal]);
    return await within(longestLookMs, signal, lookFor(store, name, timing, either));
  } catch {
    signal.throwIfAborted();
    return undefined;
  } finally {
    stop.abort();
  }
}

async function lookFor(
  store: OpenStore,
  name: string,
  timing: TimingOptions,
  signal: AbortSignal,
): Promise<Others | undefined> {
  const all: string[] = [];
  for await (const each of store.backend.elections({ signal })) {
    if (each !== name && !isScratch(each)) all.push(each);
    if (all.length === mostNames) break;
  }
  all.sort();
  const near = new Set(all);
  for (let looks = 0; looks < mostLooks; looks += 1) {
    const meant = nearest(name, near);
    if (meant === undefined) break;
    if (await wasLed(store, meant, timing, signal)) return { nearest: meant, all };
    near.delete(meant);
  }
  return { nearest: undefined, all };
}

/** `doctor` measures on an election of its own. */
export function isScratch(election: string): boolean {
  return election.startsWith('incumbent-doctor');
}

async function wasLed(
  { backend }: OpenStore,
  name: string,
  timing: TimingOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const election = createElection({ name, backend, ...timing });
  try {
    return isLedOnce(await election.leader({ signal }));
  } finally {
    election.close().catch(() => {});
  }
}

/** `"a", "b" and 3 more` */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, mostShown).map(quoted);
  const more = names.length - shown.length;
  if (more > 0) return `${shown.join(', ')} and ${more} more`;
  return shown.length < 2 ? shown.join('') : `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
}

function quoted(name: string): string {
  return `"${name}"`;
}
