/**
 * An election with k leaders: k ordinary elections, each with a record of its own. A candidate
 * campaigns for all of them, and takes the first seat that it can (docs/design/seats.md).
 */
import { setMaxListeners } from 'node:events';
import type { CandidateInfo } from '../base/candidate.ts';
import { checkElectionName, describeValue } from '../base/candidate.ts';
import { InvalidOptionError, isIncurable, RefusedError } from '../base/errors.ts';
import type { NotElectedReason } from '../base/not-elected.ts';
import { bounded, Deferred, onAbort, sleep } from '../base/wait.ts';
import type { View } from '../record/record.ts';
import { requireSeats } from '../record/seat-count.ts';
import { backoffMs } from './backoff.ts';
import type {
  ActorProcess,
  AdminRequest,
  AdminResult,
  Backend,
  Candidacy,
  Contest,
  ElectionBackend,
  Scope,
  Seat,
  Snapshot,
  WaitMode,
} from './contest.ts';

/** A waiting candidate watches as many records. */
const mostSeats = 100;

/** How often a candidate looks whether the first winner ever has told the number of seats. */
const agreeEveryMs = 1_000;

/** The name of the election that is one seat of `election`. The first seat has the same name. */
export function seatName(election: string, seat: number): string {
  return seat === 1 ? election : `${election}.seat-${seat}`;
}

/**
 * Opens an election with so many seats.
 * @throws InvalidOptionError
 */
export function openSeats<Guard>(
  backend: Backend<Guard>,
  scope: Scope,
  seats: unknown = 1,
): ElectionBackend<Guard> {
  checkSeat('seats', seats, mostSeats);
  return seats === 1 ? backend.open(scope) : new SeatsElection(backend, scope, seats);
}

/**
 * The election that is one seat.
 * @throws InvalidOptionError when there are several, and `seat` is none of them
 */
export function seatOf<Guard>(
  opened: ElectionBackend<Guard>,
  seat: unknown,
): ElectionBackend<Guard> {
  const seats = seatsOf(opened);
  if (seat === undefined && seats.length > 1) {
    throw new InvalidOptionError(
      `this election has ${seats.length} seats: say which one is meant, such as { seat: 1 }`,
    );
  }
  const number = seat ?? 1;
  checkSeat('seat', number, seats.length);
  return seats[number - 1] as ElectionBackend<Guard>;
}

function checkSeat(what: string, value: unknown, most: number): asserts value is number {
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most) return;
  throw new InvalidOptionError(
    `${what} must be a whole number from 1 to ${most}, not ${describeValue(value)}`,
  );
}

class SeatsElection<Guard> implements ElectionBackend<Guard> {
  readonly seats: readonly ElectionBackend<Guard>[];
  readonly #scope: Scope;
  readonly #gate: Gate;
  #contest: SeatsContest<Guard> | undefined;

  constructor(backend: Backend<Guard>, scope: Scope, count: number) {
    checkElectionName(seatName(scope.election, count));
    this.#scope = scope;
    this.#gate = new Gate(scope.turns);
    this.seats = Array.from({ length: count }, (_, index) =>
      backend.open({
        ...scope,
        election: seatName(scope.election, index + 1),
        seats: count,
        turns: this.#gate,
      }),
    );
  }

  get #first(): ElectionBackend<Guard> {
    return this.seats[0] as ElectionBackend<Guard>;
  }

  get canListCandidates(): boolean {
    return this.#first.canListCandidates;
  }

  contest(candidate: CandidateInfo): Contest<Guard> {
    this.#contest = new SeatsContest(this.seats, this.#scope, this.#gate, candidate);
    return this.#contest;
  }

  observe(signal: AbortSignal): AsyncIterable<View> {
    return this.#first.observe(signal);
  }

  /** The first seat. */
  inspect(signal: AbortSignal): Promise<Snapshot> {
    return this.#first.inspect(signal);
  }

  /** For requests that concern the whole election. */
  async administer(request: AdminRequest, signal: AbortSignal): Promise<AdminResult> {
    const results = await askAll(this.seats, signal, (seat) => seat.administer(request, signal));
    return { ...(results[0] as AdminResult), changed: results.some(({ changed }) => changed) };
  }

  /** Each candidate once, with those that lead first. */
  async candidates(signal: AbortSignal): Promise<readonly CandidateInfo[]> {
    const lists = await askAll(this.seats, signal, (seat) => seat.candidates(signal));
    const ordered = [...lists.map(([first]) => first), ...lists.flat()];
    const found = ordered.filter((candidate) => candidate !== undefined);
    return [...new Map(found.map((each) => [each.incarnation, each])).values()];
  }

  async init(signal: AbortSignal): Promise<void> {
    for (const seat of this.seats) await seat.init(signal);
  }

  async close(): Promise<void> {
    await this.#contest?.left;
    await Promise.all(this.seats.map((seat) => seat.close()));
  }
}

/** One look at every seat. */
export function inspectSeats(
  opened: ElectionBackend<unknown>,
  signal: AbortSignal,
): Promise<readonly Snapshot[]> {
  return askAll(seatsOf(opened), signal, (seat) => seat.inspect(signal));
}

/** @throws RefusedError when the candidate leads another seat */
export async function requireSeatless(
  opened: ElectionBackend<unknown>,
  id: string,
  seat: unknown = 1,
  signal: AbortSignal,
): Promise<void> {
  if (!(opened instanceof SeatsElection)) return;
  const looks = await inspectSeats(opened, signal);
  const led = 1 + looks.findIndex(({ view }) => view.leader?.id === id);
  if (led === 0 || led === seat) return;
  throw new RefusedError(`"${id}" leads seat ${led}: a candidate has one seat at most`);
}

function seatsOf<Guard>(opened: ElectionBackend<Guard>): readonly ElectionBackend<Guard>[] {
  return opened instanceof SeatsElection ? opened.seats : [opened];
}

/** Asks every seat, also when one of them fails. */
async function askAll<Guard, T>(
  seats: readonly ElectionBackend<Guard>[],
  signal: AbortSignal,
  ask: (seat: ElectionBackend<Guard>) => Promise<T>,
): Promise<readonly T[]> {
  setMaxListeners(0, signal);
  const asked = seats.map(ask);
  await Promise.allSettled(asked);
  return Promise.all(asked);
}

/**
 * Lets a candidate attempt one seat at a time. So it never wins two, and leaves the other lines
 * before it would look at them again.
 */
class Gate {
  readonly #turns: Scope['turns'];
  #last: Promise<void> = Promise.resolve();
  /** Called before the next attempt could begin. */
  onWon: () => void = () => {};

  constructor(turns: Scope['turns']) {
    this.#turns = turns;
  }

  async take<T>(attempt: () => Promise<T>, signal: AbortSignal, isInLine: boolean): Promise<T> {
    const before = this.#last;
    const turn = new Deferred<void>();
    this.#last = turn.promise;
    await before;
    try {
      signal.throwIfAborted();
      const verdict = await (this.#turns?.take(attempt, signal, isInLine) ?? attempt());
      if ((verdict as { readonly kind?: unknown }).kind === 'won') this.onWon();
      return verdict;
    } finally {
      turn.resolve();
    }
  }
}

class SeatsContest<Guard> implements Contest<Guard> {
  readonly #seats: readonly ElectionBackend<Guard>[];
  readonly #contests: readonly Contest<Guard>[];
  readonly #scope: Scope;
  readonly #gate: Gate;
  /** Resolves when nothing of the last campaign is left but its seat. */
  left: Promise<void> = Promise.resolve();

  constructor(
    seats: readonly ElectionBackend<Guard>[],
    scope: Scope,
    gate: Gate,
    candidate: CandidateInfo,
  ) {
    this.#seats = seats;
    this.#contests = seats.map((seat) => seat.contest(candidate));
    this.#scope = scope;
    this.#gate = gate;
  }

  get #first(): Contest<Guard> {
    return this.#contests[0] as Contest<Guard>;
  }

  get standAsideMs(): number {
    return this.#first.standAsideMs;
  }

  present(candidate: CandidateInfo): void {
    for (const contest of this.#contests) contest.present(candidate);
  }

  describe(process: ActorProcess): ReturnType<Contest<Guard>['describe']> {
    return this.#first.describe(process);
  }

  async campaign(
    candidacy: Candidacy,
    waitMode: WaitMode,
    signal: AbortSignal,
  ): Promise<Seat<Guard> | undefined> {
    await this.left;
    signal.throwIfAborted();
    const stops = this.#contests.map(() => new AbortController());
    const entering = new AbortController();
    const stopAll = (reason: unknown) => {
      entering.abort(reason);
      for (const stop of stops) stop.abort(reason);
    };
    const removeListener = onAbort(signal, () => stopAll(signal.reason));
    // The campaign that has won is over: a stop does nothing to its seat.
    this.#gate.onWon = () => stopAll(new Error('a seat is won'));
    let won: Seat<Guard> | undefined;
    let failure: { readonly error: unknown } | undefined;
    const fail = (error: unknown) => {
      // It was told to stop. The campaign that has won was not.
      if (entering.signal.aborted) return;
      failure = { error };
      stopAll(error);
    };
    const settled = new Deferred<void>();
    const told = candidaciesFor(candidacy, stops.length, entering.signal);
    const runs: Promise<void>[] = [];
    const enter = (index: number): Promise<void> => {
      const contest = this.#contests[index] as Contest<Guard>;
      const { signal: stop } = stops[index] as AbortController;
      const run = contest.campaign(told[index] as Candidacy, waitMode, stop).then((seat) => {
        if (seat === undefined) return;
        won = Object.assign(seat, { number: index + 1 });
        settled.resolve();
      }, fail);
      runs.push(run);
      return run;
    };
    this.left = this.#enterAll(enter, told[0] as Candidacy, waitMode, entering.signal)
      .catch(fail)
      .then(async () => {
        await Promise.all(runs);
        settled.resolve();
      });
    // A winner does not wait until it has left the other lines: its belief runs.
    await settled.promise;
    removeListener();
    if (won !== undefined) return won;
    signal.throwIfAborted();
    if (failure !== undefined) throw failure.error;
    return undefined;
  }

  /**
   * The record of the first seat says how many there are: its first winner has written that. So
   * until one has won it, a candidate campaigns for no other seat.
   * @throws InvalidOptionError when any of the records names another number
   */
  async #enterAll(
    enter: (index: number) => Promise<void>,
    { onWaiting }: Candidacy,
    waitMode: WaitMode,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, timing, election, onTrouble } = this.#scope;
    let first: Promise<void> | undefined;
    let isFirstOver = false;
    for (let failures = 0; ; ) {
      const isLastLook = isFirstOver;
      let pauseMs = Math.min(agreeEveryMs, timing.pollEveryMs);
      try {
        const looks = await bounded(
          clock,
          'looking at all seats',
          timing.operationTimeoutMs,
          signal,
          (operation) => askAll(this.#seats, operation, (seat) => seat.inspect(operation)),
        );
        for (const [index, { seats }] of looks.entries()) {
          requireSeats(seatName(election, index + 1), seats, looks.length);
        }
        first ??= enter(0).then(() => {
          isFirstOver = true;
        });
        if (looks[0]?.seats !== undefined) {
          for (let index = 1; index < looks.length; index += 1) void enter(index);
          return;
        }
        failures = 0;
      } catch (error) {
        if (signal.aborted || isIncurable(error)) throw error;
        onWaiting({ kind: 'unreachable', cause: error });
        if (waitMode === 'wait') onTrouble('campaigning', error);
        else if (first === undefined) return;
        failures += 1;
        pauseMs = backoffMs(this.#scope, failures);
      }
      if (isLastLook) return;
      const pause = sleep(clock, pauseMs, signal);
      await (first === undefined ? pause : Promise.race([pause, first]));
    }
  }
}

/**
 * Makes one candidacy of those for each seat. It waits for all of them, so the reason is the first
 * that is no other leader. Once the campaign is over, it says nothing.
 */
function candidaciesFor(
  candidacy: Candidacy,
  count: number,
  over: AbortSignal,
): readonly Candidacy[] {
  const reasons: (NotElectedReason | undefined)[] = Array.from({ length: count });
  return reasons.map((_, index): Candidacy => {
    const onWaiting = (why: NotElectedReason) => {
      reasons[index] = why;
      const known = reasons.filter((each) => each !== undefined);
      const told = known.find(({ kind }) => kind !== 'led') ?? known[0];
      if (told === undefined || over.aborted) return;
      candidacy.onWaiting(told.kind === 'led' ? { ...told, seats: count } : told);
    };
    return {
      stateAtWin: (unfenced, self) => candidacy.stateAtWin(unfenced, self),
      // It has a place in each of the queues, so it tells none of them.
      onQueuePosition(_position, why) {
        if (why !== undefined) onWaiting(why);
      },
      onWaiting,
      onWrite: (write) => candidacy.onWrite?.({ ...write, seat: index + 1 }),
    };
  });
}
