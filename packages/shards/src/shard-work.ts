import { setMaxListeners } from 'node:events';
import type { Clock, EndReason, TermState, Timer } from 'incumbent';
import {
  describeEnd,
  ElectionError,
  formatDuration,
  MisuseError,
  NotLeadingError,
  TermEndedError,
} from 'incumbent';
import { bounded, Deferred, onAbort, toJson } from 'incumbent/internal';
import type { ShardFenceHook, ShardTerm, Stay } from './shard-term.ts';
import type { Entry } from './slot.ts';

/** The things that all works of a process have in common. */
export interface WorkSettings<Shard> {
  readonly name: string;
  readonly candidate: string;
  readonly clock: Clock;
  readonly stopTimeoutMs: number;
  readonly hookTimeoutMs: number;
  /** Each work says itself when it is ready. */
  readonly manual: boolean;
  readonly own: (shard: Shard, term: ShardTerm<Shard>) => Promise<unknown> | unknown;
  readonly onUnclean: readonly ShardFenceHook<Shard>[];
  readonly onTrouble: (what: string, error: unknown) => void;
}

/** Told by all works of a stay to the stay. A process may have many thousands of them. */
export interface WorkEvents {
  /** The leaders before were fenced, so the work begins. */
  onFenced(entry: Entry): void;
  /** The record shall show that the work is ready. */
  onReady(entry: Entry): void;
  /** The work has settled, and its belief is over. */
  onSettled(entry: Entry): void;
}

/** The work for one shard, from the confirmed grant until it has settled: stop, settle, end of belief. */
export class ShardWork<Shard> implements ShardTerm<Shard> {
  readonly shard: Shard;
  readonly token: bigint;
  readonly #stay: Stay;
  readonly #settings: WorkSettings<Shard>;
  readonly #stopped = new AbortController();
  #has: 'nothing' | 'begun' | 'settled' = 'nothing';
  /** Made when it is asked for: most works are never waited for. */
  #ended: Deferred<void> | undefined;
  #stopTimer: Timer | undefined;
  /** Resolves when the record shows that the work is ready. Undefined: it has not said so. */
  #shownReady: Deferred<void> | undefined;
  /** Undefined: it is ready when it begins. */
  #tellReady: (() => void) | undefined;

  constructor(shard: Shard, { token }: Entry, stay: Stay, settings: WorkSettings<Shard>) {
    this.shard = shard;
    this.token = token;
    this.#stay = stay;
    this.#settings = settings;
    // The work passes this signal to everything that it waits for.
    setMaxListeners(0, this.#stopped.signal);
  }

  get name(): string {
    return this.#settings.name;
  }

  get candidate(): string {
    return this.#settings.candidate;
  }

  /** Runs the hooks for the owners before, then the work. Never rejects. */
  async run(entry: Entry, events: WorkEvents): Promise<void> {
    if (this.#settings.manual) this.#tellReady = () => events.onReady(entry);
    let work: unknown;
    try {
      await this.#fence(entry.unfenced);
      // This process may have stood still in a hook, and no timer has said so yet.
      if (!this.#stay.isLeading()) this.stop('stalled');
      if (!this.signal.aborted) {
        this.#has = 'begun';
        events.onFenced(entry);
        work = this.#settings.own(this.shard, this);
      }
    } catch (thrown) {
      this.#settle(entry, events, { thrown });
      return;
    }
    // Nothing of this function is kept while the work lasts.
    void Promise.resolve(work).then(
      () => this.#settle(entry, events),
      (thrown: unknown) => this.#settle(entry, events, { thrown }),
    );
  }

  #settle(entry: Entry, events: WorkEvents, error?: { readonly thrown: unknown }): void {
    if (error !== undefined && !this.#isOwnEnd(error.thrown)) {
      this.#settings.onTrouble(`the work of shard ${this.shard}`, error.thrown);
    }
    this.stop(error === undefined ? 'work-finished' : 'work-failed', error?.thrown);
    // Before anything is written: the next owner may begin as soon as the record says so.
    this.#has = 'settled';
    this.#stopTimer?.cancel();
    events.onSettled(entry);
    this.#ended?.resolve();
  }

  /** The first reason stays. The shard is owned until the work has settled. */
  stop(reason: EndReason, cause?: unknown): void {
    if (this.signal.aborted) return;
    const { clock, stopTimeoutMs, onTrouble } = this.#settings;
    this.#stopped.abort(
      new TermEndedError(
        reason,
        this.token,
        `term ${this.token} of shard ${this.shard} of "${this.name}" ended: ${describeEnd(reason)}`,
        cause === undefined ? {} : { cause },
      ),
    );
    if (this.#has === 'settled') return;
    this.#stopTimer = clock.setTimer(
      () => {
        if (this.#has === 'settled') return;
        const why =
          `the work of shard ${this.shard} has not settled within ` +
          `${formatDuration(stopTimeoutMs)} after it was told to stop: no other process gets the ` +
          'shard before that, unless this one loses its slot';
        onTrouble('stopping a shard', new ElectionError('OPERATION_TIMEOUT', why));
      },
      stopTimeoutMs,
      true,
    );
  }

  /** True from the confirmed grant until the work has settled. */
  get isOver(): boolean {
    return this.#has === 'settled';
  }

  get state(): TermState {
    if (this.#has === 'settled') return 'ended';
    const { state } = this.#stay;
    return this.signal.aborted && state !== 'ended' ? 'stopping' : state;
  }

  get signal(): AbortSignal {
    return this.#stopped.signal;
  }

  get ended(): Promise<void> {
    if (this.#has === 'settled') return Promise.resolve();
    this.#ended ??= new Deferred<void>();
    return this.#ended.promise;
  }

  isLeading(): boolean {
    return this.#has === 'begun' && this.#stay.isLeading();
  }

  assertLeading(minMs = 0): void {
    try {
      this.#stay.assertLeading(minMs);
    } catch (error) {
      if (error instanceof NotLeadingError) throw this.#notLeading(minMs, error.remainingMs);
      throw error;
    }
    if (this.#has !== 'begun') throw this.#notLeading(minMs, 0);
  }

  remaining(): number {
    return this.#has === 'begun' ? this.#stay.remaining() : 0;
  }

  async ready(): Promise<void> {
    const tell = this.#tellReady;
    if (tell === undefined) {
      throw new MisuseError(
        "term.ready() needs the option ready: 'manual'. Without it a shard is ready when its work begins",
      );
    }
    this.signal.throwIfAborted();
    if (this.#shownReady === undefined) {
      this.#shownReady = new Deferred();
      tell();
    }
    const shown = this.#shownReady.promise;
    await new Promise<void>((resolve, reject) => {
      const forget = onAbort(this.signal, () => reject(this.signal.reason));
      void shown.then(() => {
        forget();
        resolve();
      });
    });
  }

  /** The record shows that it is ready. */
  onShownReady(): void {
    this.#shownReady?.resolve();
  }

  get isReady(): boolean {
    return (
      this.#has === 'begun' && (this.#tellReady === undefined || this.#shownReady !== undefined)
    );
  }

  resign(): void {
    this.stop('resigned');
  }

  toJSON(): Readonly<Record<string, unknown>> {
    const { name, shard, candidate, token, state } = this;
    return toJson({ name, shard, candidate, token, state });
  }

  #notLeading(minMs: number, remainingMs: number): NotLeadingError {
    return new NotLeadingError(`${this.name}, shard ${this.shard}`, this.token, minMs, remainingMs);
  }

  /** An error that only repeats the end of this term. */
  #isOwnEnd(error: unknown): boolean {
    if (error instanceof NotLeadingError && error.token === this.token) return true;
    if (!this.signal.aborted) return false;
    return error === this.signal.reason || (error as Error | undefined)?.name === 'AbortError';
  }

  async #fence(unfenced: Entry['unfenced']): Promise<void> {
    const { onUnclean, clock, hookTimeoutMs } = this.#settings;
    const { name, shard, token } = this;
    for (const predecessor of unfenced) {
      for (const hook of onUnclean) {
        if (this.signal.aborted) return;
        const what = `fencing "${predecessor.id}" from shard ${shard}`;
        // A hook that goes on after it was aborted is unsettled work.
        let settled: Promise<unknown> = Promise.resolve();
        try {
          await bounded(clock, what, hookTimeoutMs, this.signal, (signal) => {
            const remaining = () => this.#stay.remaining();
            const ran = Promise.resolve(
              hook(predecessor, { name, shard, token, signal, remaining }),
            );
            settled = ran.catch(() => {});
            return ran;
          });
        } finally {
          await settled;
        }
      }
    }
  }
}
