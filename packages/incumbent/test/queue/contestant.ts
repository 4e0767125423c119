import { setMaxListeners } from 'node:events';
import type { NotElectedReason } from '../../src/base/not-elected.ts';
import { resolveTiming } from '../../src/base/timing.ts';
import type { Candidacy, ElectionBackend, Scope, Seat, WaitMode } from '../../src/core/contest.ts';
import type { EndMark, QueueStore, Watched } from '../../src/mechanisms/queue/store.ts';
import type { SimulatedQueueSession } from '../../src/testing/index.ts';
import type { Stage } from './support.ts';

/** T is 10 s, so R and X are 1 s, a pause after a failure 250 ms, and H is 4 s. */
export const timing = resolveTiming({}, { sessionTimeoutMs: 10_000 });

/** For calls that are never cancelled. */
export const never = new AbortController().signal;
// Many wait with it at one time.
setMaxListeners(0, never);

export interface ContestantOptions {
  readonly session?: SimulatedQueueSession;
  /** Default `jobs`. */
  readonly name?: string;
  readonly random?: () => number;
  /** Methods and fields of the store that differ. */
  readonly says?: (store: QueueStore) => Partial<QueueStore>;
}

/**
 * One candidate's part in an election, without the core: the questions and answers
 * of the mechanism.
 */
export class Contestant {
  readonly session: SimulatedQueueSession;
  readonly election: ElectionBackend<bigint>;
  readonly contest: ReturnType<ElectionBackend<bigint>['contest']>;
  /** Why it was told to wait. */
  readonly told: NotElectedReason[] = [];
  /** Whom it was told that it follows, and why it waits there. */
  readonly following: [string | undefined, NotElectedReason | undefined][] = [];
  readonly troubles: string[] = [];
  readonly #stage: Stage;
  readonly #candidacy: Candidacy;

  constructor(stage: Stage, id: string, options: ContestantOptions = {}) {
    const { name = 'jobs', random = () => 0.5, says = () => ({}) } = options;
    this.#stage = stage;
    this.session = options.session ?? stage.store.connect();
    const open = this.session.open.bind(this.session);
    this.session.open = (election) => {
      const store = open(election);
      return { ...store, ...says(store) };
    };
    let ids = 0;
    const scope: Scope = {
      election: name,
      clock: stage.clock,
      timing,
      random,
      uniqueId: () => {
        ids += 1;
        return `${id}-${ids}`;
      },
      onTrouble: (what) => void this.troubles.push(what),
    };
    this.election = stage.backendOf(this.session).open(scope);
    this.session.open = open;
    this.contest = this.election.contest({ id, incarnation: 'once', addresses: [], metadata: {} });
    this.#candidacy = {
      stateAtWin: (unfenced) => ({
        announced: unfenced.length === 0,
        actors: null,
        addresses: [],
        metadata: {},
      }),
      onQueuePosition: ({ following }, why) => void this.following.push([following, why]),
      onWaiting: (why) => void this.told.push(why),
    };
  }

  campaign(waitMode: WaitMode = 'wait', signal: AbortSignal = never) {
    const campaign = this.contest.campaign(this.#candidacy, waitMode, signal);
    campaign.catch(() => {});
    return campaign;
  }

  async win(): Promise<Seat<bigint>> {
    let seat: Seat<bigint> | undefined;
    void this.campaign().then((won) => {
      seat = won;
    });
    // No time passes: nothing is waited for.
    await this.#stage.clock.advance(0);
    if (seat === undefined) throw new Error('it has not won');
    return seat;
  }
}

/** The mark of the end, as a test sets it. */
export class Mark implements EndMark {
  isThere = false;
  /** The actions of operators: `set`, `clear`. */
  readonly done: string[] = [];
  watches = 0;
  #tell: ((isSet: boolean) => void)[] = [];

  isSet = async () => this.isThere;

  async watch(): Promise<Watched<boolean> & { readonly changed: Promise<boolean> }> {
    this.watches += 1;
    const changed = new Promise<boolean>((resolve) => this.#tell.push(resolve));
    return { value: this.isThere, changed, cancel: () => {} };
  }

  set = async () => {
    this.done.push('set');
  };

  clear = async () => {
    this.done.push('clear');
  };

  /** Watchers hear that the mark was set, or that this can no longer be told. */
  tell(isSet: boolean): void {
    for (const tell of this.#tell.splice(0)) tell(isSet);
  }
}
