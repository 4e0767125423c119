import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { CandidateInfo } from '../../base/candidate.ts';
import type { TermEndedError } from '../../base/errors.ts';
import { isVoluntary } from '../../base/reasons.ts';
import { Deferred, onAbort } from '../../base/wait.ts';
import type { DiagnosticEvents, DiagnosticSource } from '../../core/diagnostics.ts';
import { publish } from '../../core/diagnostics.ts';
import type { Election } from '../../core/election.ts';
import type { LeadOptions } from '../../core/options.ts';
import type { Term } from '../../core/term.ts';
import type { View } from '../../record/record.ts';
import type { ZooKeeperGuard } from './options.ts';

/**
 * - `INIT`: nothing is known yet.
 * - `ACTIVE`: this member leads.
 * - `STANDBY`: another one does.
 * - `NEUTRAL`: it is not known which one does. The store cannot be reached, or the seat was
 *   lost just now.
 */
export type ActiveStandbyState = 'INIT' | 'ACTIVE' | 'STANDBY' | 'NEUTRAL';

/**
 * Told of changes only, one after the other: the next call is made when the one before has settled.
 * Errors of the last two go to the diagnostics channel `incumbent:trouble`.
 */
export interface ActiveStandbyMember {
  /**
   * This member leads from now on, or again after it was neutral. If the call fails, the seat is
   * given up. Then this member stays out for a second, so that another one comes first.
   */
  becomeActive(term: Term<ZooKeeperGuard>): Promise<void> | void;
  /**
   * Another member leads, or none after this one has stopped. A seat is given back after the call.
   */
  becomeStandby(leader: CandidateInfo | undefined): Promise<void> | void;
  /** Do nothing that only the active member may do, until the next call. */
  enterNeutralMode(): Promise<void> | void;
}

/**
 * An election as Hadoop's ActiveStandbyElector shows it: four states, and calls when they change.
 * Fencing goes to `onUnclean`, and the checks of ZKFC's health monitor go to `health`.
 * @param options `onState` is told every state, after its call has settled
 * @returns a promise that never resolves. It rejects with the reason of `options.signal` when the
 * seat was given back. It also rejects with errors that waiting cannot cure (ElectionEndedError,
 * StoreUnsuitableError …)
 */
export async function activeStandby(
  election: Election<ZooKeeperGuard>,
  member: ActiveStandbyMember,
  options: LeadOptions & { readonly onState?: (state: ActiveStandbyState) => void } = {},
): Promise<never> {
  const { onState, ...leadOptions } = options;
  const states = new States(election.name, member, onState ?? (() => {}));
  const observing = new AbortController();
  const watching = watchOthers(election, states, observing.signal);
  try {
    return await election.lead((term) => leadAs(states, term), leadOptions);
  } finally {
    observing.abort();
    await watching;
  }
}

/** Watches which member leads, while this one does not. */
async function watchOthers(
  election: Election<ZooKeeperGuard>,
  states: States,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const view of election.observe({ signal })) states.onView(view);
  } catch {
    // The handle was closed. `lead` reports it.
  }
}

/**
 * The work of one term. It ends by throwing the term's end, so that the campaign
 * decides what follows.
 */
async function leadAs(states: States, term: Term<ZooKeeperGuard>): Promise<never> {
  const over = new Deferred<void>();
  // The event may be another election's. The state of this term alone counts.
  const onState = () => {
    if (term.state === 'uncertain') void states.neutral();
    else if (term.state === 'leading') {
      void states.active(term).then((isActive) => {
        if (!isActive) term.resign();
      });
    }
  };
  const onOverrun = (message: unknown) => {
    const { token, election } = message as DiagnosticEvents['incumbent:overrun'] & DiagnosticSource;
    if (token !== term.token || election !== term.election) return;
    // Another election of this name, on another ensemble, may have the same token.
    if (term.state === 'ended') over.resolve();
  };
  subscribe('incumbent:state', onState);
  subscribe('incumbent:overrun', onOverrun);
  const ended = new Deferred<void>();
  const forget = onAbort(term.signal, () => ended.resolve());
  try {
    if (!(await states.active(term))) term.resign();
    await ended.promise;
    const { reason } = term.signal.reason as TermEndedError;
    if (!isVoluntary(reason) || reason === 'disconnected') {
      await states.neutral();
    } else if (!(await states.standby(undefined))) {
      // The call may still be running, and nothing has stopped it. So the seat is not given back as
      // clean, and the next leader waits and fences.
      await over.promise;
    }
  } finally {
    forget();
    unsubscribe('incumbent:state', onState);
    unsubscribe('incumbent:overrun', onOverrun);
    states.isOver(term);
  }
  throw term.signal.reason;
}

/** The one state, and the calls in their order. */
class States {
  readonly #election: string;
  readonly #member: ActiveStandbyMember;
  readonly #onState: (state: ActiveStandbyState) => void;
  /** The state of the last call, made or under way, and the outcome of that call. */
  #state: ActiveStandbyState = 'INIT';
  #called: Promise<boolean> = Promise.resolve(true);
  #term: bigint | undefined;
  #lastTerm: bigint | undefined;

  constructor(
    election: string,
    member: ActiveStandbyMember,
    onState: (state: ActiveStandbyState) => void,
  ) {
    this.#election = election;
    this.#member = member;
    this.#onState = onState;
  }

  onView({ state, leader, token }: View): void {
    if (this.#term !== undefined) return;
    // A view may still show our own term.
    if (state === 'led' && token !== this.#lastTerm) void this.standby(leader);
    else if (state === 'unknown') void this.neutral();
  }

  active(term: Term<ZooKeeperGuard>): Promise<boolean> {
    this.#term = term.token;
    // A call waits for slow ones before it, and meanwhile the term may have ended.
    const isStill = () => term.isLeading();
    return this.#enter('ACTIVE', () => this.#member.becomeActive(term), isStill);
  }

  standby(leader: CandidateInfo | undefined): Promise<boolean> {
    return this.#enter('STANDBY', () => this.#member.becomeStandby(leader));
  }

  neutral(): Promise<boolean> {
    return this.#enter('NEUTRAL', () => this.#member.enterNeutralMode());
  }

  isOver(term: Term<ZooKeeperGuard>): void {
    this.#lastTerm = term.token;
    this.#term = undefined;
  }

  /** @returns false when the call failed, or was not made because `isStill` was false */
  #enter(
    state: ActiveStandbyState,
    call: () => Promise<void> | void,
    isStill: () => boolean = () => true,
  ): Promise<boolean> {
    if (this.#state === state) return this.#called;
    this.#state = state;
    this.#called = this.#called.then(async () => {
      if (!isStill()) return false;
      try {
        await call();
        this.#onState(state);
        return true;
      } catch (error) {
        const what = `a member that was to be ${state}`;
        publish('incumbent:trouble', { election: this.#election, candidate: '' }, { what, error });
        return false;
      }
    });
    return this.#called;
  }
}
