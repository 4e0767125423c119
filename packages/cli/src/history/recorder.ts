import { setImmediate as breathe, setTimeout as sleep } from 'node:timers/promises';
import { exitCodes } from '../failure.ts';
import type { Followed, StoreListener, StoreReading } from '../follow/store-follower.ts';
import { HistoryError } from './history-file.ts';
import type { Finding, HistoryWriter, Shown } from './history-writer.ts';
import { termsShown } from './known-term.ts';

/** Findings are collected so long, and then written in one transaction. */
const collectMs = 50;
/** More findings than this are several transactions: signals are heard in between. */
const batch = 200;
const pruneEveryMs = 3_600_000;

export interface RecorderEvents {
  /** All elections of the store were read, and are on file. Once for each store. */
  onRead(url: string): void;
  /** The store cannot be read, or (null) can be read again. */
  onTrouble(url: string, error: string | null): void;
}

/** Writes what followers of stores find. */
export class Recorder {
  readonly #writer: HistoryWriter;
  readonly #events: RecorderEvents;
  readonly #findings: (Finding | (() => void))[] = [];
  readonly #failed: (error: unknown) => void;
  /** Rejects when the file cannot be written any more. */
  readonly failure: Promise<never>;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;

  constructor(writer: HistoryWriter, events: RecorderEvents) {
    this.#writer = writer;
    this.#events = events;
    let failed: (error: unknown) => void = () => {};
    this.failure = new Promise((_resolve, reject) => {
      failed = reject;
    });
    this.#failed = failed;
  }

  /** Is told of one store. */
  listenTo(url: string): StoreListener {
    const store = this.#writer.store(url);
    const lastTerms = new Map<string, string>();
    let isRead = false;
    let trouble: string | null = null;
    const add = (finding: Omit<Finding, 'store' | 'atUnixMs'>) =>
      this.#add({ ...finding, store, atUnixMs: Date.now() });
    return {
      onStore: ({ seenUnixMs, error }: StoreReading) => {
        if ((error === null) !== (trouble === null)) this.#events.onTrouble(url, error);
        trouble = error;
        if (seenUnixMs === null || isRead) return;
        isRead = true;
        // Those went while no recorder ran.
        for (const election of this.#onFile(store)) {
          if (!lastTerms.has(election)) add({ election, shown: gone, terms: null });
        }
        this.#add(() => this.#events.onRead(url));
      },
      onElection: (election: string, summary: Followed) => {
        const marks = marksOf(summary);
        const terms = lastTerms.get(election) === marks ? null : termsShown(summary);
        lastTerms.set(election, marks);
        add({ election, shown: shownOf(summary), terms });
      },
      onGone: (election: string) => {
        lastTerms.delete(election);
        add({ election, shown: gone, terms: null });
      },
    };
  }

  /** Prunes now and then, until the signal aborts. */
  async prune(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      while (!signal.aborted && this.#tryTo(() => this.#writer.prune(Date.now()))) await breathe();
      await sleep(pruneEveryMs, undefined, { signal }).catch(() => {});
    }
  }

  /** Writes what was found and is not on file yet. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  #add(finding: Finding | (() => void)): void {
    this.#findings.push(finding);
    if (this.#writing === undefined) this.#timer ??= setTimeout(() => void this.flush(), collectMs);
  }

  async #writeAll(): Promise<void> {
    while (this.#findings.length > 0) {
      const taken = this.#findings.splice(0, batch);
      const findings = taken.filter((each) => typeof each !== 'function');
      const isWritten = this.#tryTo(() => {
        this.#writer.write(findings);
        return true;
      });
      if (!isWritten) return;
      for (const each of taken) if (typeof each === 'function') each();
      await breathe();
    }
  }

  #onFile(store: number): readonly string[] {
    let names: readonly string[] = [];
    this.#tryTo(() => {
      names = this.#writer.listed(store);
      return true;
    });
    return names;
  }

  #tryTo(job: () => boolean): boolean {
    try {
      return job();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const words = `the history cannot be written: ${why}`;
      this.#failed(new HistoryError(words, { cause: error }, exitCodes.output));
      return false;
    }
  }
}

const gone: Shown = {
  ...{ state: 'gone', token: null, leader: null, incarnation: null, ready: false, why: null },
};

function shownOf({ view }: Followed): Shown {
  const { state, token, leader, ready, error } = view;
  return {
    state,
    token: token?.toString() ?? null,
    leader: leader?.id ?? null,
    incarnation: leader?.incarnation ?? null,
    ready: state === 'led' && ready !== false,
    why: error?.message ?? null,
  };
}

/** A record only adds to its history, and drops the oldest: the ends of it tell whether it has changed. */
function marksOf({ history, view }: Followed): string {
  const { state, leader, token, sinceUnixMs } = view;
  const [first, last] = [history[0], history.at(-1)];
  return [
    ...[history.length, first?.token, first?.incarnation],
    ...[last?.token, last?.incarnation, last?.toUnixMs, last?.why],
    ...(state === 'led' ? [token, leader?.incarnation, sinceUnixMs] : []),
  ].join(' ');
}
