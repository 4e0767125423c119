/** The elections of a store, from the pages that it hands out. */
import { setMaxListeners } from 'node:events';
import { checkElectionName, describeValue } from '../base/candidate.ts';
import { checkNames } from '../base/check-names.ts';
import type { Clock } from '../base/clock.ts';
import { systemClock } from '../base/clock.ts';
import { InvalidOptionError, StoreUnsuitableError } from '../base/errors.ts';
import { asError } from '../base/thrown.ts';
import type { Timing } from '../base/timing.ts';
import { bounded } from '../base/wait.ts';
import type {
  Backend,
  ElectionSummary,
  ListingOptions,
  Scope,
  Snapshot,
  SurveyOptions,
} from './contest.ts';
import { checkSignal } from './options.ts';

/** The time for one page. A page may be a thousand small requests. */
const pageTimeoutMs = 30_000;

/** The parts of an election that a listing is to tell. A store may leave out what only summaries need. */
export type Wanted = 'names' | 'summaries';

/** Some elections of a store. */
export interface ElectionPage {
  readonly elections: readonly FoundElection[];
  /** For the next call of `page`. Undefined: this page is the last one. */
  readonly next: unknown;
}

/** An election that a page names. */
export interface FoundElection {
  readonly name: string;
  /** Only called where summaries are wanted. Throws for a record that cannot be read. */
  summarize(look: SurveyLook): Pick<ElectionSummary, 'waiting'> & Snapshot;
  /** The waiting candidates, beside a record that cannot be read. */
  readonly waiting?: ElectionSummary['waiting'];
}

/** The tools for a summary. */
export interface SurveyLook {
  readonly clock: Clock;
  /** The last survey has remembered this of the election. */
  readonly remembered: unknown;
  remember(what: unknown): void;
}

/** The side of the store. */
export interface ElectionPages {
  /**
   * One attempt to read a page. A name may come twice. Never writes.
   * @param after `next` of the page before. Undefined: from the beginning
   */
  page(after: unknown, wanted: Wanted, signal: AbortSignal): Promise<ElectionPage>;
}

/** Where only names are wanted. */
export function onlyNamed(name: string): FoundElection {
  return unreadable(name, new Error('only the name was asked for'));
}

/** An election that is there, and cannot be read. */
export function unreadable(name: string, error: unknown): FoundElection {
  return {
    name,
    summarize() {
      throw error;
    },
  };
}

/** For a store that is opened to be looked at once. */
export function lookingScope(election: string, timing: Timing): Scope {
  return {
    ...{ election, timing, clock: systemClock, random: Math.random },
    uniqueId: () => '',
    onTrouble: () => {},
  };
}

type Listing = Pick<Backend, 'elections' | 'survey'>;

/** The listing of a store that can tell which elections it holds. */
export function listingOf(pages: ElectionPages): Listing {
  return {
    elections(options = {}) {
      checkListing('elections()', options, { signal: true, clock: true });
      return namesIn(pages, options);
    },
    survey(options = {}) {
      checkListing('survey()', options, { signal: true, clock: true, memory: true });
      return summariesIn(pages, options);
    },
  };
}

/**
 * The listing of a store that cannot tell.
 * @param why a sentence that says what to do instead
 */
export function noListing(why: string): Listing {
  const refuse = () => {
    throw new StoreUnsuitableError(why);
  };
  return { elections: refuse, survey: refuse };
}

function checkListing(
  call: string,
  options: SurveyOptions,
  known: Readonly<Record<string, true>>,
): void {
  checkNames(call, options, known);
  checkSignal(options.signal);
  const { memory } = options;
  if (memory === undefined || memory instanceof Map) return;
  throw new InvalidOptionError(`memory must be a Map, not ${describeValue(memory)}`);
}

async function* namesIn(
  pages: ElectionPages,
  options: ListingOptions,
): AsyncGenerator<string, void, void> {
  for await (const { name } of foundIn(pages, 'names', options)) yield name;
}

async function* summariesIn(
  pages: ElectionPages,
  options: SurveyOptions,
): AsyncGenerator<ElectionSummary, void, void> {
  const { clock = systemClock, memory } = options;
  const seen = new Set<string>();
  for await (const found of foundIn(pages, 'summaries', options)) {
    const { name } = found;
    seen.add(name);
    const remember = (what: unknown) => void memory?.set(name, what);
    yield summaryOf(found, { clock, remembered: memory?.get(name), remember });
  }
  // Otherwise the memory would keep every election that ever was.
  for (const name of memory?.keys() ?? []) if (!seen.has(name)) memory?.delete(name);
}

function summaryOf(found: FoundElection, look: SurveyLook): ElectionSummary {
  const { name, waiting } = found;
  try {
    return { name, ...found.summarize(look) };
  } catch (error) {
    const sinceUnixMs = look.clock.wallMs();
    return {
      ...{
        name,
        waiting,
        history: [],
        drains: [],
        unfenced: [],
        request: undefined,
        leaseMs: undefined,
      },
      view: { state: 'unknown', sinceUnixMs, error: asError(error) },
      holderGone: false,
    };
  }
}

/** False for a name that no election can have, so that nothing could be done with it. */
function isElectionName(name: string): boolean {
  try {
    checkElectionName(name);
    return true;
  } catch {
    return false;
  }
}

/** Each election once. */
async function* foundIn(
  pages: ElectionPages,
  wanted: Wanted,
  { signal, clock = systemClock }: ListingOptions,
): AsyncGenerator<FoundElection, void, void> {
  const until = signal ?? new AbortController().signal;
  const told = new Set<string>();
  let after: unknown;
  do {
    const from = after;
    const { elections, next } = await bounded(
      clock,
      'listing the elections',
      pageTimeoutMs,
      until,
      (operation) => {
        // A page may be hundreds of requests at once, and each of them listens.
        setMaxListeners(0, operation);
        return pages.page(from, wanted, operation);
      },
    );
    for (const found of elections) {
      if (told.has(found.name) || !isElectionName(found.name)) continue;
      // A listing that ends early must not look like a whole one.
      until.throwIfAborted();
      told.add(found.name);
      yield found;
    }
    after = next;
  } while (after !== undefined);
}
