import type { CandidateInfo } from '../base/candidate.ts';
import type { Clock } from '../base/clock.ts';
import { StoreUnavailableError } from '../base/errors.ts';
import type { Backend } from '../core/contest.ts';
import type { ElectionPage } from '../core/listing.ts';
import { listingOf } from '../core/listing.ts';
import { QueueElection } from '../mechanisms/queue/backend.ts';
import { foundQueue } from '../mechanisms/queue/listing.ts';
import type {
  CommitResult,
  Member,
  Place,
  QueueSession,
  QueueStore,
  RecordReading,
  SessionEvent,
  Watched,
} from '../mechanisms/queue/store.ts';
import type { QueueRecord } from '../record/queue-record.ts';
import type {
  HeldQueueOperation,
  QueueFault,
  QueueOperation,
  QueueOutage,
  SimulatedQueueOptions,
} from './queue-faults.ts';
import { readOnly } from './queue-faults.ts';
import type { QueueState } from './simulated-queues.ts';
import { SimulatedQueues, stateIn } from './simulated-queues.ts';

/**
 * A store with sessions, in memory, for the queue. A test can delay, lose, fail and hold
 * operations of each connection. It can suspend and expire its session, let its view lag, and
 * take places away.
 *
 * ```ts
 * const clock = new SimulatedClock();
 * const store = new SimulatedQueueStore({ clock });
 * const [a, b] = [store.connect(), store.connect()];
 * const election = createElection({ name: 'jobs', backend: a.backend, clock });
 * a.next('enter', { lose: 'reply' }); // applied, and a never hears of it
 * b.lag(); // from now on b sees what stands here now
 * ```
 */
export class SimulatedQueueStore {
  readonly #clock: Clock;
  readonly #queues = new SimulatedQueues();
  readonly #options: SimulatedQueueOptions;
  #sessions = 0;

  constructor(options: SimulatedQueueOptions) {
    this.#clock = options.clock;
    this.#options = options;
  }

  /**
   * A session of its own, as another process has it.
   * @param path where this session finds the queues. The names of its places begin with it, as with
   * a chroot of ZooKeeper or a namespace of etcd. Default none
   */
  connect(path: string = ''): SimulatedQueueSession {
    return new SimulatedQueueSession(this.#clock, this.#queues, { ...this.#options, path }, () => {
      this.#sessions += 1;
      return this.#sessions;
    });
  }

  /** The names of all places, in order. */
  places(election: string): readonly string[] {
    return this.#queues.state(election).places.map(({ name }) => name);
  }

  /** The members of the queue in order, by their candidates' ids. */
  waiting(election: string): readonly string[] {
    return this.#queues.state(election).places.map(({ candidate }) => candidate.id);
  }

  /** The record in the store. */
  record(election: string): QueueRecord | undefined {
    return this.#queues.state(election).record;
  }

  /** The version of the record, which grows with every write. */
  version(election: string): number {
    return this.#queues.state(election).version;
  }

  /** Changes the record by hand. Undefined deletes it. */
  put(election: string, record: QueueRecord | undefined): void {
    this.#queues.put(election, record);
  }

  /** Deletes a place by hand. */
  deletePlace(name: string): void {
    this.#queues.sweep((place) => place.name === name);
  }

  /**
   * A member that is not ours enters.
   * @returns the name of its place
   */
  enterForeign(election: string, id: string): string {
    const candidate: CandidateInfo = { id, incarnation: '', addresses: [], metadata: {} };
    return this.#queues.enter(election, 0, { guid: `foreign-${id}`, candidate }, false).name;
  }
}

interface Watch {
  /** The watched part of the state, as text. Another text is a change. */
  readonly show: (state: QueueState) => string;
  readonly election: string;
  shown: string;
  readonly told: () => void;
}

/**
 * One session on a `SimulatedQueueStore`, with its own faults. Made by
 * `SimulatedQueueStore.connect`.
 */
export class SimulatedQueueSession {
  /** For `createElection`. Its guard is the token. */
  readonly backend: Backend<bigint>;
  /** Shared by all elections of this session. */
  readonly session: QueueSession;
  /** A lasting fault of all operations. Default `none`. */
  outage: QueueOutage = 'none';
  /** How late changes are reported, in ms. Reads show them at once. */
  hintMs = 0;
  /** Operations that wait for the test, the oldest first. */
  readonly held: readonly HeldQueueOperation[];
  /** How many operations were sent. */
  readonly sent: Map<QueueOperation, number> = new Map();
  readonly #clock: Clock;
  readonly #queues: SimulatedQueues;
  readonly #isMixed: boolean;
  readonly #path: string;
  readonly #newSession: () => number;
  readonly #faults: { readonly kind: QueueOperation; readonly fault: QueueFault }[] = [];
  readonly #waiting: HeldQueueOperation[] = [];
  readonly #holding = new Set<QueueOperation>();
  readonly #listeners = new Set<(event: SessionEvent) => void>();
  readonly #watches = new Set<Watch>();
  readonly #pending = new Set<(error: Error) => void>();
  #parked: (() => void)[] = [];
  #id: number;
  /** True: its places are gone, but this side has not heard of it. */
  #isUnheard = false;
  #isSuspended = false;
  /** Requests of an older connection are refused. */
  #connection = 0;
  #frozen: ReadonlyMap<string, QueueState> | undefined;

  constructor(
    clock: Clock,
    queues: SimulatedQueues,
    options: SimulatedQueueOptions & { readonly path: string },
    newSession: () => number,
  ) {
    this.#clock = clock;
    this.#queues = queues;
    this.#path = options.path;
    this.#isMixed = options.isMixed ?? false;
    this.backend = {
      kind: 'simulated',
      description: 'a simulated store with sessions',
      limits: { sessionTimeoutMs: options.sessionTimeoutMs ?? 10_000 },
      open: (scope) =>
        new QueueElection<bigint>(scope, this.open(scope.election), {
          waitsForPredecessor: true,
          stepsDownWhenDisconnected: false,
          recheckMs: 30_000,
          delayAfterWinMs: 0,
          ...options.settings,
          guard: ({ token }) => token,
        }),
      ...listingOf({ page: (_after, _wanted, signal) => this.#page(signal) }),
    };
    this.#newSession = newSession;
    this.#id = newSession();
    this.held = this.#waiting;
    queues.onChange(() => this.#lookAtWatches());
    const isSuspended = () => this.#isSuspended;
    this.session = {
      get isSuspended() {
        return isSuspended();
      },
      confirm: (places, signal) =>
        this.#send('confirm', signal, () => {
          const gone = places.find(({ name, token }) => !queues.isThere(plain(name), token));
          // As ZooKeeper does: a refused transaction names the operation, and no more.
          return gone === undefined ? { there: places, gone: [] } : { there: [], gone: [gone] };
        }),
      isOver: (place) => place.session !== this.#id,
      onEvent: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
      maxPlaces: 1_000,
    };
  }

  // --- for tests ---

  /**
   * Gives the next `times` operations of this kind this fault, unless another fault comes first.
   */
  next(kind: QueueOperation, fault: QueueFault, times: number = 1): void {
    for (let i = 0; i < times; i += 1) this.#faults.push({ kind, fault });
  }

  /** From now on operations of this kind wait in `held`. */
  hold(kind: QueueOperation): void {
    this.#holding.add(kind);
  }

  /** Operations of this kind go through again. Those that wait are answered. */
  release(kind: QueueOperation): void {
    this.#holding.delete(kind);
    for (const operation of this.#waiting.filter((each) => each.kind === kind)) operation.answer();
  }

  /** From now on reads show the state of now, until this session writes, or `catchUp`. */
  lag(): void {
    this.#frozen ??= this.#queues.snapshot;
  }

  /** From now on reads show the newest state again. */
  catchUp(): void {
    this.#frozen = undefined;
    this.#lookAtWatches();
  }

  /**
   * No server can be reached. Operations under way fail (and may be applied), and new ones wait.
   */
  suspend(): void {
    if (this.#isSuspended) return;
    this.#isSuspended = true;
    this.#failPending('the connection was lost');
    this.#tell('suspended');
  }

  /**
   * A server can be reached again. `moved`: another one, which makes the old one refuse the
   * operations under way.
   */
  restore(options: { readonly moved?: boolean } = {}): void {
    if (options.moved === true) this.#connection += 1;
    if (!this.#isSuspended) return;
    this.#isSuspended = false;
    if (this.#isUnheard) this.hearExpiry();
    else this.#tell('restored');
    for (const send of this.#parked.splice(0)) send();
  }

  /**
   * The store ends the session. `unheard`: this side goes on without knowing, until `hearExpiry`.
   */
  expire(options: { readonly unheard?: boolean } = {}): void {
    const id = this.#id;
    this.#isUnheard = true;
    this.#queues.sweep((place) => place.session === id);
    if (options.unheard !== true) this.hearExpiry();
  }

  /** This side learns that its session is over. */
  hearExpiry(): void {
    if (!this.#isUnheard) return;
    this.#isUnheard = false;
    this.#connection += 1;
    this.#id = this.#newSession();
    this.#frozen = undefined;
    this.#failPending('the session is over');
    for (const { told } of [...this.#watches]) told();
    this.#tell('over');
  }

  async #page(signal: AbortSignal): Promise<ElectionPage> {
    const states = await this.#send('list', signal, () => this.#frozen ?? this.#queues.snapshot);
    const here = (name: string) => `${this.#path}${name}`;
    const elections = [...states].flatMap(([name, { record, version, places }]) => {
      if (record === undefined && places.length === 0) return [];
      const members = places.map((place) => ({ ...place, name: here(place.name) }));
      return foundQueue({
        ...{ name, members, places: members.map((member) => member.name) },
        isMixed: this.#isMixed,
        nameHere: (recorded) => here(plain(recorded)),
        reading: () => ({ record, version }),
      });
    });
    return { elections, next: undefined };
  }

  // --- for the queue ---

  // Long, because it lists the effect of each operation on the state.
  open(election: string): QueueStore {
    const queues = this.#queues;
    const state = () => stateIn(this.#frozen ?? queues.snapshot, election);
    const here = (name: string) => `${this.#path}${name}`;
    const names = () => state().places.map(({ name }) => here(name));
    const reading = (): RecordReading => ({ record: state().record, version: state().version });
    const numberOf = (name: string) => Number(name.slice(-10));
    return {
      session: this.session,
      nameHere: (recorded) => here(plain(recorded)),
      isMixed: this.#isMixed,
      enter: (entry, signal) =>
        this.#send('enter', signal, () => {
          const place = queues.enter(election, this.#id, entry);
          return { ...place, name: here(place.name) };
        }),
      leave: ({ guid }, place, signal) =>
        this.#send('leave', signal, () =>
          queues.sweep((each) => each.guid === guid || each.name === plain(place?.name)),
        ),
      list: (signal) => this.#send('list', signal, names),
      read: (signal) => this.#send('read', signal, reading),
      look: (signal) => this.#send('read', signal, () => ({ reading: reading(), names: names() })),
      // Not a read: a server that is cut off cannot answer it, and it ends a lag.
      sync: (signal) => this.#send('sync', signal, () => {}),
      commit: (place, record, version, signal) =>
        this.#send('commit', signal, () =>
          queues.change(
            election,
            { present: [plain(place.name)], version },
            { record, remove: [] },
          ),
        ),
      release: (place, record, version, signal) =>
        this.#send<CommitResult>('release', signal, () =>
          queues.change(
            election,
            {
              present: [plain(place.name)],
              version: record === undefined ? 'any' : version,
            },
            { record, remove: [plain(place.name)] },
          ),
        ),
      amend: ({ record, version, present, remove = [] }, signal) =>
        this.#send('amend', signal, () => {
          const removed = remove.map(plain);
          const named = present === undefined ? removed : [plain(present), ...removed];
          return queues.change(election, { present: named, version }, { record, remove: removed });
        }),
      remove: (name, signal) =>
        this.#send('remove', signal, () => queues.sweep((each) => each.name === plain(name))),
      members: (signal) =>
        this.#send('members', signal, (): readonly Member[] =>
          state().places.map(({ name, token, candidate, isOurs }) => ({
            name: here(name),
            token,
            candidate,
            isOurs,
          })),
        ),
      watchPlace: (name, signal) =>
        this.#watch(election, signal, ({ places }) =>
          places.some((each) => each.name === plain(name)),
        ),
      watchRecord: (signal) =>
        this.#watch(
          election,
          signal,
          ({ record, version }): RecordReading => ({ record, version }),
          ({ version }) => String(version),
        ),
      watchList: (signal) =>
        this.#watch(election, signal, ({ places }) => places.map(({ name }) => here(name))),
      ...(this.#isMixed
        ? {
            directlyFollows: (place: Place, previous: string) =>
              numberOf(place.name) === numberOf(previous) + 1,
          }
        : {}),
      init: async () => {},
    };
  }

  #watch<Value>(
    election: string,
    signal: AbortSignal,
    look: (state: QueueState) => Value,
    show: (state: QueueState) => string = (state) => String(look(state)),
  ): Promise<Watched<Value>> {
    return this.#send('watch', signal, () => {
      const state = stateIn(this.#frozen ?? this.#queues.snapshot, election);
      const watches = this.#watches;
      let cancel = () => {};
      const changed = new Promise<void>((resolve) => {
        const watch: Watch = {
          election,
          show,
          shown: show(state),
          told: () => {
            watches.delete(watch);
            this.#after(this.hintMs === 0 ? undefined : this.hintMs, resolve);
          },
        };
        watches.add(watch);
        cancel = () => {
          watches.delete(watch);
          resolve();
        };
      });
      return { value: look(state), changed, cancel };
    });
  }

  #lookAtWatches(): void {
    if (this.#frozen !== undefined || this.#isSuspended) return;
    for (const watch of [...this.#watches]) {
      const shown = watch.show(this.#queues.state(watch.election));
      if (shown !== watch.shown) watch.told();
    }
  }

  #send<T>(kind: QueueOperation, signal: AbortSignal, apply: () => T): Promise<T> {
    this.sent.set(kind, (this.sent.get(kind) ?? 0) + 1);
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const fail = (error: unknown) => {
        this.#pending.delete(fail);
        reject(error);
      };
      signal.addEventListener('abort', () => fail(signal.reason), { once: true });
      const settle = (value: T) => {
        this.#pending.delete(fail);
        resolve(value);
      };
      const send = () => {
        if (signal.aborted) return;
        this.#pending.add(fail);
        if (this.#holding.has(kind)) this.#wait(kind, apply, settle, fail);
        else this.#travel(kind, apply, settle, fail);
      };
      if (this.#isSuspended) this.#parked.push(send);
      else send();
    });
  }

  #travel<T>(
    kind: QueueOperation,
    apply: () => T,
    settle: (value: T) => void,
    fail: (error: Error) => void,
  ): void {
    const { outage } = this;
    if (outage === 'silent' || (outage === 'cut-off' && !readOnly.has(kind))) return;
    if (outage === 'refuses') {
      fail(unavailable('refuses'));
      return;
    }
    const fault = this.#takeFault(kind);
    if (fault.lose === 'request') return;
    const connection = this.#connection;
    this.#after(fault.requestMs, () => {
      // A session that has moved is refused at its old server. One that is over
      // is refused everywhere.
      if (connection !== this.#connection) {
        fail(unavailable('has another connection'));
        return;
      }
      if (!readOnly.has(kind)) {
        if (this.#isUnheard) {
          this.hearExpiry();
          return;
        }
        if (fault.fail !== 'before') this.catchUp();
      }
      const result = fault.fail === 'before' ? undefined : apply();
      if (fault.lose === 'reply') return;
      this.#after(fault.replyMs, () => {
        if (fault.fail === undefined) settle(result as T);
        else fail(unavailable(`failed ${fault.fail} it`));
      });
    });
  }

  #wait<T>(
    kind: QueueOperation,
    apply: () => T,
    settle: (value: T) => void,
    fail: (error: Error) => void,
  ): void {
    let result: { readonly value: T } | undefined;
    const over = () => {
      const index = this.#waiting.indexOf(operation);
      if (index >= 0) this.#waiting.splice(index, 1);
    };
    const operation: HeldQueueOperation = {
      kind,
      apply() {
        result ??= { value: apply() };
      },
      answer() {
        result ??= { value: apply() };
        over();
        settle(result.value);
      },
      fail(error = unavailable('failed')) {
        over();
        fail(error);
      },
    };
    this.#waiting.push(operation);
  }

  #takeFault(kind: QueueOperation): QueueFault {
    const index = this.#faults.findIndex((each) => each.kind === kind);
    return index < 0 ? {} : (this.#faults.splice(index, 1)[0]?.fault ?? {});
  }

  #after(ms: number | undefined, run: () => void): void {
    if (ms === undefined) run();
    else this.#clock.setTimer(run, ms);
  }

  #failPending(what: string): void {
    for (const fail of [...this.#pending]) fail(unavailable(what));
  }

  #tell(event: SessionEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
}

/** As the store knows it, however a session spells it. */
function plain(name: string = ''): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

function unavailable(what: string): StoreUnavailableError {
  return new StoreUnavailableError(`the simulated store: ${what}`);
}
