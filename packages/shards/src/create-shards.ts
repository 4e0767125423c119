/// <reference lib="esnext.disposable" preserve="true" />
import { setMaxListeners } from 'node:events';
import type { Election, StoppableIterator, Timing } from 'incumbent';
import { ClosedError, createElection, resolveTiming } from 'incumbent';
import { leaseBackend } from 'incumbent/backend';
import {
  anyOf,
  checkSignalOption,
  Deferred,
  defaultId,
  isIncurable,
  sleep,
  stoppable,
  systemClock,
  TroubleTeller,
  Wakeup,
} from 'incumbent/internal';
import type { Directory } from './codec.ts';
import { Context } from './context.ts';
import { Coordinator } from './coordinator.ts';
import { DirectoryWatch, DirectoryWriter } from './directory.ts';
import { extendedStore } from './extended-store.ts';
import { followedName, OwnerElection, offerFollowing } from './following.ts';
import { HeadRecord, ListDiffersError } from './head.ts';
import type { Names } from './lists.ts';
import { Member } from './member.ts';
import { isAbandoned } from './old-list.ts';
import type { ShardsOptions } from './options.ts';
import { checkOptions } from './options.ts';
import type { ShardTerm } from './shard-term.ts';
import type { ShardOwner, ShardsView } from './view.ts';
import { viewOf } from './view.ts';

interface SignalOption {
  readonly signal?: AbortSignal;
}

/** A set of shards, as one process takes part in it or looks at it. */
export interface Shards<Shard extends string | number = string | number> {
  readonly name: string;
  /** The durations of this handle, with all defaults filled in. */
  readonly timing: Timing;
  /**
   * Resolves when this process has joined: from then on it is granted shards. Rejects when it is
   * refused, as with another list of shards, and with ClosedError. Without `own` it resolves at once.
   */
  readonly joined: Promise<void>;
  /** The shards that this process owns now, in no order. It reads both clocks, and asks no store. */
  owned(): readonly Shard[];
  /**
   * The present term of this process for a shard. Undefined: another process owns it, or none.
   * @throws InvalidOptionError for a shard that is not in the list
   */
  term(shard: Shard): ShardTerm<Shard> | undefined;
  /**
   * The process that owns a shard, as the coordinator has written it last. One read of the store.
   * @throws InvalidOptionError for a shard that is not in the list, ClosedError, the store's error
   */
  owner(shard: Shard, options?: SignalOption): Promise<ShardOwner | undefined>;
  /** Which process owns what. One read of the store. */
  view(options?: SignalOption): Promise<ShardsView<Shard>>;
  /**
   * The present view at once, then every change. A slow consumer gets the latest view only. Ends when
   * `signal` aborts or the handle is closed. While the store cannot be read, no view comes.
   */
  observe(options?: SignalOption): StoppableIterator<ShardsView<Shard>>;
  /**
   * Moves all shards of this process to others, `maxMoving` at a time, and closes the handle. If no
   * other process takes part, their work is stopped. Resolves when the slot was given back.
   *
   * Do not await it within the work.
   */
  drain(): Promise<void>;
  /**
   * Stops all work, waits until it has settled, and gives the slot back. It waits at most
   * `stopTimeout` and then until belief is over. A second call returns the same promise.
   *
   * Do not await it within the work.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Shares shards among all processes that call it with the same name on the same store. Each shard is
 * owned by one process at most, and all of them by about as many. All options are checked before
 * anything is touched.
 *
 * ```ts
 * const shards = createShards({
 *   name: 'queues',
 *   backend: postgres(pool),
 *   shards: 64,
 *   own: async (shard, term) => {
 *     while (!term.signal.aborted) await handleOne(shard, term);
 *   },
 * });
 * ```
 * @throws InvalidOptionError
 * @throws InvalidTimingError with every broken rule and its numbers
 */
export function createShards(options: ShardsOptions<number>): Shards<number>;
export function createShards(options: ShardsOptions<string>): Shards<string>;
export function createShards(
  options: ShardsOptions<number> | ShardsOptions<string>,
): Shards<number> | Shards<string> {
  // The checks below see to it that the kinds of shards agree.
  return new ShardsHandle(options as ShardsOptions) as Shards<number> | Shards<string>;
}

class ShardsHandle implements Shards {
  readonly name: string;
  readonly timing: Timing;
  readonly #context: Context<string | number>;
  readonly #names: Names<string | number>;
  readonly #head: HeadRecord;
  readonly #election: Election<undefined>;
  readonly #member: Member<string | number> | undefined;
  readonly #coordinator: Coordinator<string | number> | undefined;
  readonly #watch: DirectoryWatch;
  #directory: DirectoryWriter<string | number> | undefined;
  readonly #closing = new AbortController();
  readonly #joined = new Deferred<unknown>();
  readonly #changed = new Wakeup();
  #taking: Promise<void> = Promise.resolve();
  #closed: Promise<void> | undefined;
  #drained: Promise<void> | undefined;

  constructor(options: ShardsOptions) {
    const resolved = checkOptions(options);
    const { name, names, leases } = resolved;
    const { backend, own, clock = systemClock, random = Math.random } = options;
    this.name = name;
    this.#names = names;
    this.timing = resolveTiming(timingOf(options), backend.limits);
    const candidate = { ...options.candidate, id: options.candidate?.id ?? defaultId() };
    const trouble = new TroubleTeller({
      election: name,
      candidate: candidate.id,
      backend,
      clock,
      leaseMs: this.timing.leaseMs,
      listener: options.onTrouble,
    });
    const { onTrouble, init } = options;
    const common = {
      ...timingOf(options),
      ...(onTrouble === undefined ? {} : { onTrouble }),
      ...(init === undefined ? {} : { init }),
      ...(options.clock === undefined ? {} : { clock }),
      ...(options.random === undefined ? {} : { random }),
    };
    this.#context = new Context({
      ...{ name, backend, leases, names, candidate, clock, random },
      timing: this.timing,
      makesMissing: init === 'auto',
      onTrouble: trouble.tell,
      onAnswer: trouble.onAnswer,
      election: common,
    });
    this.#watch = new DirectoryWatch(this.#context);
    // Requests for many shards wait for many owners.
    setMaxListeners(0, this.#closing.signal);
    offerFollowing(this, {
      isNumbered: names.list.digest === 0n,
      follow: (shard) => {
        // Checks that it may be in the list.
        names.numberOf(shard);
        return new OwnerElection({
          name: followedName(name, shard),
          ...{ timing: this.timing, numberOf: () => names.numberOf(shard), watch: this.#watch },
          wallMs: () => clock.wallMs(),
          closed: this.#closing.signal,
        });
      },
    });
    this.#head = new HeadRecord(name, names.list);
    const { kind, description, limits } = backend;
    // On a session a process renews more often than that, and all but one look in vain.
    const lookEveryMs = Math.max(this.timing.pollEveryMs, Math.round(this.timing.leaseMs / 5));
    // Checks the candidate, the clock and the name.
    this.#election = createElection<undefined>({
      ...common,
      ...{ name, candidate, pollEvery: options.pollEvery ?? lookEveryMs },
      backend: leaseBackend<undefined>({
        ...{ kind, description },
        ...(limits === undefined ? {} : { limits }),
        openStore: (scope) => extendedStore(leases.open(scope), this.#head),
        guard: () => undefined,
      }),
    });
    if (own === undefined) {
      this.#joined.resolve(undefined);
      return;
    }
    const directory = new DirectoryWriter(this.#context);
    this.#directory = directory;
    this.#coordinator = new Coordinator(this.#context, this.#head, {
      maxMoving: resolved.maxMoving,
      onChange: (slots) => directory.update(slots),
    });
    this.#member = new Member(this.#context, {
      ...{ weight: resolved.weight, zone: resolved.zone, campaign: campaignOf(options) },
      settings: {
        ...{ name, clock, own, onUnclean: resolved.onUnclean },
        manual: options.ready === 'manual',
        candidate: candidate.id,
        stopTimeoutMs: this.timing.stopTimeoutMs,
        hookTimeoutMs: resolved.hookTimeoutMs,
        onTrouble: trouble.tell,
      },
      onChange: () => {
        if (this.#member?.hasJoined === true) this.#joined.resolve(undefined);
        this.#changed.raise();
      },
    });
    this.#taking = this.#takePart(this.#member, this.#coordinator);
  }

  get joined(): Promise<void> {
    return this.#joined.promise.then((error) => {
      if (error !== undefined) throw error;
    });
  }

  owned(): readonly (string | number)[] {
    const terms = this.#member?.terms ?? [];
    return terms.filter((term) => term.isLeading()).map(({ shard }) => shard);
  }

  term(shard: string | number): ShardTerm | undefined {
    return this.#member?.termOf(this.#names.numberOf(shard));
  }

  async owner(shard: string | number, options: SignalOption = {}): Promise<ShardOwner | undefined> {
    this.#names.numberOf(shard);
    return (await this.#view('owner', options)).owner(shard);
  }

  async view(options: SignalOption = {}): Promise<ShardsView> {
    return this.#view('view', options);
  }

  async #view(call: string, options: SignalOption): Promise<ShardsView> {
    checkSignalOption(call, options);
    options.signal?.throwIfAborted();
    this.#closing.signal.throwIfAborted();
    return viewOf(await this.#watch.read(options.signal ?? this.#closing.signal), this.#names);
  }

  observe(options: SignalOption = {}): StoppableIterator<ShardsView> {
    checkSignalOption('observe', options);
    return stoppable((stop) => this.#observe(options.signal, stop));
  }

  async *#observe(
    wanted: AbortSignal | undefined,
    stop: AbortSignal,
  ): AsyncGenerator<ShardsView, void, void> {
    const [either, forgetEither] = anyOf(wanted, stop);
    const [signal, forget] = anyOf(either, this.#closing.signal);
    const wakeup = new Wakeup();
    const unsubscribe = this.#watch.subscribe(() => wakeup.raise());
    let last: Directory | undefined | 'nothing' = 'nothing';
    try {
      while (!signal.aborted) {
        wakeup.clear();
        const { sight } = this.#watch;
        if (sight !== undefined && sight.error === undefined && sight.directory !== last) {
          last = sight.directory;
          yield viewOf(sight.directory, this.#names);
          continue;
        }
        const { clock } = this.#context.options;
        await wakeup.wait(clock, this.timing.leaseMs, signal, true).catch(() => {});
      }
    } finally {
      unsubscribe();
      forget();
      forgetEither();
    }
  }

  drain(): Promise<void> {
    this.#drained ??= this.#drain();
    return this.#drained;
  }

  async #drain(): Promise<void> {
    const { clock } = this.#context.options;
    const member = this.#member;
    member?.leave();
    while (member !== undefined && !member.hasLeft && !this.#closing.signal.aborted) {
      await this.#changed
        .wait(clock, this.timing.renewEveryMs, this.#closing.signal)
        .catch(() => {});
    }
    await this.close();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const error = new ClosedError(this.name);
    this.#closing.abort(error);
    this.#joined.resolve(error);
    // No longer than the slot needs: work that hangs must not make `close` hang.
    await Promise.race([this.#taking, this.#member?.close() ?? this.#taking]);
    this.#watch.close();
    await this.#election.close();
    await this.#directory?.close();
    await this.#context.close();
  }

  /** Never rejects. */
  async #takePart(
    member: Member<string | number>,
    coordinator: Coordinator<string | number>,
  ): Promise<void> {
    const { onTrouble } = this.#context.options;
    const { signal } = this.#closing;
    const refused = (error: unknown) => {
      if (signal.aborted) return;
      this.#joined.resolve(error);
      onTrouble('taking part', error);
      void this.close();
    };
    await Promise.all([
      member.run(signal).catch(refused),
      this.#coordinate(coordinator, signal).catch(refused),
    ]);
  }

  async #coordinate(coordinator: Coordinator<string | number>, signal: AbortSignal): Promise<void> {
    const { clock, onTrouble } = this.#context.options;
    while (!signal.aborted) {
      try {
        await this.#election.lead((term) => coordinator.run(term), { signal });
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ListDiffersError) {
          if (!error.canReplace) throw error;
          const isFree = await isAbandoned(this.#context, signal).catch((failed: unknown) => {
            if (isIncurable(failed)) throw failed;
            if (!signal.aborted) onTrouble('reading the slots', failed);
          });
          if (isFree === false) throw error;
          if (isFree === true) {
            this.#head.takeOver();
            continue;
          }
          // The store did not answer. The slots are watched again from the beginning.
          await sleep(clock, this.timing.retryBackoffMs, signal).catch(() => {});
          continue;
        }
        if (isIncurable(error)) throw error;
        onTrouble('coordinating', error);
      }
      await sleep(clock, this.timing.retryBackoffMs, signal).catch(() => {});
    }
  }
}

function campaignOf({ watchdog, actors, onBelief }: ShardsOptions) {
  return {
    ...(watchdog === undefined ? {} : { watchdog }),
    ...(actors === undefined ? {} : { actors }),
    ...(onBelief === undefined ? {} : { onBelief }),
  };
}

function timingOf(options: ShardsOptions) {
  const { lease, belief, stopMargin, renewEvery, operationTimeout } = options;
  const { retryBackoff, pollEvery, stopTimeout, clockDrift } = options;
  return {
    ...(lease === undefined ? {} : { lease }),
    ...(belief === undefined ? {} : { belief }),
    ...(stopMargin === undefined ? {} : { stopMargin }),
    ...(renewEvery === undefined ? {} : { renewEvery }),
    ...(operationTimeout === undefined ? {} : { operationTimeout }),
    ...(retryBackoff === undefined ? {} : { retryBackoff }),
    ...(pollEvery === undefined ? {} : { pollEvery }),
    ...(stopTimeout === undefined ? {} : { stopTimeout }),
    ...(clockDrift === undefined ? {} : { clockDrift }),
  };
}
