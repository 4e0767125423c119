import { setTimeout as sleep } from 'node:timers/promises';
import type { CandidateInfo, Election, ElectionSummary, View } from 'incumbent';
import { createElection, formatDuration } from 'incumbent';
import { leave, patientTiming } from '../ask.ts';
import { waitingIn } from '../commands/drain.ts';
import type { OpenStore } from '../context.ts';
import { isScratch } from '../elections.ts';

/** From one reading of all elections to the next, at least. */
const surveyEveryMs = 2_000;
/** The share of its time for which a store is read, at most. */
const readingShare = 0.03;
/** Of elections that are observed one by one; others change with the next reading of all. */
const mostObserved = 2_000;
/** For an observer that is told of nothing, where it reads by itself: rarer, the more there are. */
const pollEachMs = 10;
const leastPollMs = 2_000;
const mostPollMs = 60_000;

export type Followed = Omit<ElectionSummary, 'name'>;

/** Is told what a follower finds. It must not throw: that would be taken for trouble of the store. */
export interface StoreListener {
  /** At the start, and after each reading of all elections, or each that failed. */
  onStore(reading: StoreReading): void;
  /** Again and again, whether anything has changed or not. */
  onElection(name: string, summary: Followed): void;
  /** The store does not list it any more. */
  onGone(name: string): void;
}

export interface StoreReading {
  /** When all elections were last read; null: never yet. */
  readonly seenUnixMs: number | null;
  /** Why they cannot be read; null: they can. */
  readonly error: string | null;
}

export interface FollowedStore {
  readonly open: OpenStore;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/**
 * Follows the elections of one store. All are read again and again, which finds new ones and those that are
 * gone. Each is observed too, so that a change is told at once where the store tells of changes.
 */
export class StoreFollower {
  readonly #followed: FollowedStore;
  readonly #listener: StoreListener;
  readonly #memory = new Map<string, unknown>();
  readonly #watches = new Map<string, Watch>();
  readonly #known = new Map<string, Followed>();
  /** Until when records protect their leaders, by the monotonic clock, as of the last reading of all. */
  readonly #leases = new Map<string, number>();
  #seenUnixMs: number | null = null;

  constructor(followed: FollowedStore, listener: StoreListener) {
    this.#followed = followed;
    this.#listener = listener;
  }

  /** The rest of the lease, in ms, if no confirmation has come since it was last seen. */
  leaseLeftMs(name: string): number | undefined {
    const untilMs = this.#leases.get(name);
    return untilMs && Math.max(0, untilMs - performance.now());
  }

  /** Until the signal aborts. Trouble with the store is told, and tried again. */
  async run(): Promise<void> {
    const { signal } = this.#followed;
    this.#tellStore(null);
    try {
      while (!signal.aborted) {
        let pauseMs = surveyEveryMs;
        try {
          const beganMs = performance.now();
          await this.#survey();
          pauseMs = Math.max(pauseMs, (performance.now() - beganMs) / readingShare);
          this.#seenUnixMs = Date.now();
          this.#tellStore(null);
        } catch (error) {
          if (signal.aborted) return;
          this.#tellStore(error instanceof Error ? error.message : String(error));
        }
        await sleep(pauseMs, undefined, { signal }).catch(() => {});
      }
    } finally {
      for (const watch of this.#watches.values()) watch.close();
    }
  }

  async #survey(): Promise<void> {
    const { open, signal, timeoutMs } = this.#followed;
    const beganMs = performance.now();
    const found = new Set<string>();
    const surveyed = whileItMoves(timeoutMs, signal, (limit) =>
      open.backend.survey({ signal: limit, memory: this.#memory }),
    );
    for await (const { name, ...summary } of surveyed) {
      if (isScratch(name)) continue;
      found.add(name);
      this.#noteLease(name, summary);
      // An observer may have told of a change that this reading is too old for.
      const changedMs = this.#watches.get(name)?.changedMs ?? -Infinity;
      if (changedMs < beganMs) this.#tell(name, summary);
    }
    this.#watch(found);
    for (const name of [...this.#known.keys()].filter((each) => !found.has(each))) {
      this.#known.delete(name);
      this.#leases.delete(name);
      this.#listener.onGone(name);
    }
  }

  #noteLease(name: string, { leaseLeftMs }: Followed): void {
    if (leaseLeftMs === undefined) this.#leases.delete(name);
    else this.#leases.set(name, performance.now() + leaseLeftMs);
  }

  #watch(found: ReadonlySet<string>): void {
    for (const [name, watch] of this.#watches) {
      if (found.has(name)) continue;
      watch.close();
      this.#watches.delete(name);
    }
    for (const name of found) {
      if (this.#watches.has(name) || this.#watches.size >= mostObserved) continue;
      const election = this.#open(name, found.size);
      if (election === undefined) continue;
      this.#watches.set(
        name,
        new Watch(election, {
          tell: (change) => this.#changed(name, change),
          lastTold: () => this.#known.get(name),
        }),
      );
    }
  }

  /** Undefined: a name that other programs gave it, and that we do not take. It is shown all the same. */
  #open(name: string, count: number): Election | undefined {
    const { open, timeoutMs } = this.#followed;
    const pollEvery = Math.min(mostPollMs, Math.max(leastPollMs, count * pollEachMs));
    const timing = { ...patientTiming(timeoutMs, open.backend.limits), pollEvery };
    try {
      return createElection({ name, backend: open.backend, ...timing });
    } catch {
      return undefined;
    }
  }

  #changed(name: string, change: Change): void {
    const before = this.#known.get(name);
    if (change.kind === 'whole') this.#tell(name, change.summary);
    else if (before !== undefined) this.#tell(name, { ...before, view: change.view });
  }

  #tell(name: string, summary: Followed): void {
    const observed = asObserved(summary.view, this.#watches.get(name));
    const view = sinceTheEarlier(observed, this.#known.get(name)?.view);
    const followed = view === summary.view ? summary : { ...summary, view };
    this.#known.set(name, followed);
    this.#listener.onElection(name, followed);
  }

  #tellStore(error: string | null): void {
    this.#listener.onStore({ seenUnixMs: this.#seenUnixMs, error });
  }
}

/**
 * Hands on what `open` gives, and aborts its signal when nothing has come for `ms`: however much a store keeps,
 * it can be read to its end. `AbortSignal.any` would not do: Node 20 keeps its signal as long as `signal` lives.
 */
async function* whileItMoves<T>(
  ms: number,
  signal: AbortSignal,
  open: (limit: AbortSignal) => AsyncIterable<T>,
): AsyncGenerator<T> {
  const limit = new AbortController();
  const onAbort = () => limit.abort(signal.reason);
  const stuck = `no election came from the store for ${formatDuration(ms)}`;
  const timer = setTimeout(() => limit.abort(new Error(stuck)), ms);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    for await (const each of open(limit.signal)) {
      timer.refresh();
      yield each;
    }
  } catch (error) {
    throw limit.signal.aborted ? limit.signal.reason : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

/**
 * One look at a record cannot tell that its leader no longer renews. An observer that saw this term led, and
 * then vacant, is believed until it says itself that the leader is back. Before a term is announced it is
 * vacant too, with the same token: then the look is newer.
 */
export function asObserved(view: View, observed: Observed | undefined): View {
  if (view.state !== 'led' || observed?.view?.state !== 'vacant') return view;
  const isDead = observed.view.token === view.token && isSameTerm(observed.led, view);
  return isDead ? observed.view : view;
}

export interface Observed {
  /** The last view. */
  readonly view: View | undefined;
  /** The last view with a leader. */
  readonly led: View | undefined;
}

/** One look often does not know since when, and says "now". A state that was known before began no later. */
function sinceTheEarlier(view: View, before: View | undefined): View {
  const isSame = before?.state === view.state && isSameTerm(before, view);
  if (!isSame || before.sinceUnixMs >= view.sinceUnixMs) return view;
  return { ...view, sinceUnixMs: before.sinceUnixMs };
}

function isSameTerm(one: View | undefined, other: View): boolean {
  return one?.token === other.token && one?.leader?.incarnation === other.leader?.incarnation;
}

export type Change =
  | { readonly kind: 'view'; readonly view: View }
  | { readonly kind: 'whole'; readonly summary: Followed };

export interface WatchListener {
  tell(change: Change): void;
  /** Another object after each telling, whoever found what was told. */
  lastTold(): Followed | undefined;
}

/** One election that is observed: its view at every change, and then all else. */
export class Watch implements Observed {
  /** When it last told of a change, by the monotonic clock. */
  changedMs: number = -Infinity;
  /** The last one that it was told. */
  view: View | undefined;
  led: View | undefined;
  readonly #election: Election;
  readonly #listener: WatchListener;
  readonly #stop = new AbortController();
  #isReading = false;
  #isOld = false;

  constructor(election: Election, listener: WatchListener) {
    this.#election = election;
    this.#listener = listener;
    void this.#observe();
  }

  close(): void {
    this.#stop.abort();
    leave(this.#election);
  }

  async #observe(): Promise<void> {
    let isFirst = true;
    try {
      for await (const view of this.#election.observe({ signal: this.#stop.signal })) {
        this.view = view;
        if (view.state === 'led') this.led = view;
        // It was read a moment ago.
        if (isFirst) isFirst = false;
        else this.#changed(view);
      }
    } catch {
      // Closed meanwhile. Trouble of the store is a view.
    }
  }

  #changed(view: View): void {
    this.changedMs = performance.now();
    this.#listener.tell({ kind: 'view', view });
    if (view.state === 'unknown') return;
    this.#isOld = true;
    if (!this.#isReading) void this.#read();
  }

  /** One after the other; changes that come meanwhile are read once. */
  async #read(): Promise<void> {
    this.#isReading = true;
    const { signal } = this.#stop;
    try {
      while (this.#isOld && !signal.aborted) {
        this.#isOld = false;
        const toldBefore = this.#listener.lastTold();
        const question = { election: this.#election, signal };
        const [snapshot, waiting] = await Promise.all([
          this.#election.inspect({ signal }),
          waitingIn(question),
        ]);
        // A view, or a reading of all, came meanwhile: the snapshot may be older. A view has it read again.
        if (this.#isOld || this.#listener.lastTold() !== toldBefore) continue;
        this.changedMs = performance.now();
        this.#listener.tell({
          kind: 'whole',
          summary: { ...snapshot, waiting: withoutLeader(waiting, snapshot.view) },
        });
      }
    } catch {
      // The next reading of all shows it, or why it cannot be read.
    } finally {
      this.#isReading = false;
    }
  }
}

/** `candidates` has the leader first. */
function withoutLeader(
  candidates: readonly CandidateInfo[] | undefined,
  { leader }: View,
): readonly CandidateInfo[] | undefined {
  return candidates?.filter(
    ({ id, incarnation }) => id !== leader?.id || incarnation !== leader.incarnation,
  );
}
