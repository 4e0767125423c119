/** The strikes on candidates that every store allows. */
import type { CandidateProcess, FencedLog } from '@incumbent/cli/trial';
import { waitUntil } from '@incumbent/cli/trial';
import type { Crew, Seat } from './crew.ts';
import type { Liveness } from './liveness.ts';
import type { Strike } from './rounds.ts';
import { strikeProxies } from './strike-network.ts';
import { monotonicMs, pause } from './time.ts';

/** Where they are struck. */
export interface Field {
  readonly crew: Crew;
  readonly log: FencedLog;
  readonly liveness: Liveness;
  /** For faults of the servers: the longest of all leases. */
  readonly longestLeaseMs: number;
  readonly longestBeliefMs: number;
  /** An operator asks the leader to go. Rejects when the command fails. */
  readonly vacate: () => Promise<void>;
  readonly note: (line: string) => void;
}

/** The facts about a candidate in the election. */
export interface CandidateFacts {
  readonly token?: bigint | undefined;
  /** Of the processes of its program. */
  readonly group?: number | undefined;
}

/** One candidate, and how it is hit. */
export interface Blow extends CandidateFacts {
  readonly victim: CandidateProcess;
  readonly seat: Seat;
  readonly forMs: number;
  readonly choice: number;
  readonly restartMs: number;
}

/** How each fault is brought about. Each resolves when it is over. */
export type Blows<Fault extends string, Arena extends Field> = Readonly<
  Record<Fault, (arena: Arena, blow: Blow) => Promise<void>>
>;

/** Faults that need nothing of the store but that it can be reached. */
export type UsualFault =
  | 'kill supervisor'
  | 'kill guard'
  | 'kill both'
  /** And the program with its group. */
  | 'kill all'
  | 'freeze supervisor'
  | 'freeze guard'
  | 'freeze both'
  | 'withdraw'
  /** An operator asks the leader to go. */
  | 'vacate'
  | 'cut'
  | 'silence'
  | 'drop replies';

type Who = { readonly supervisor: boolean; readonly guard: boolean };

const kill =
  (who: Who) =>
  async ({ crew }: Field, { victim, restartMs }: Blow) =>
    crew.fleet.kill(victim, who, restartMs);

const freeze =
  (who: Who) =>
  async ({ crew }: Field, { victim, forMs }: Blow) => {
    await crew.fleet.freeze(victim, who, forMs);
  };

const strikeNetwork =
  (fault: 'cut' | 'silence' | 'drop replies') =>
  (_field: Field, { seat, forMs, choice }: Blow) =>
    strikeProxies(seat.proxies, fault, { forMs, choice });

export const usualBlows: Blows<UsualFault, Field> = {
  'kill supervisor': kill({ supervisor: true, guard: false }),
  'kill guard': kill({ supervisor: false, guard: true }),
  'kill both': kill({ supervisor: true, guard: true }),
  async 'kill all'({ crew }, { victim, restartMs, group }) {
    const who = { supervisor: true, guard: true, ...(group === undefined ? {} : { group }) };
    crew.fleet.kill(victim, who, restartMs);
  },
  'freeze supervisor': freeze({ supervisor: true, guard: false }),
  'freeze guard': freeze({ supervisor: false, guard: true }),
  'freeze both': freeze({ supervisor: true, guard: true }),
  async withdraw({ crew }, { victim, seat, restartMs }) {
    crew.fleet.withdraw(victim, crew.recruit(seat), restartMs);
  },
  vacate: ({ vacate, note }) => vacate().catch((error: Error) => note(`refused: ${error.message}`)),
  cut: strikeNetwork('cut'),
  silence: strikeNetwork('silence'),
  'drop replies': strikeNetwork('drop replies'),
};

/** Strikes whoever leads then, unless it is being struck already. */
export async function strikeLeader<Fault extends string, Arena extends Field>(
  arena: Arena,
  strike: Strike<Fault>,
  restartMs: number,
  blows: Blows<Fault, Arena>,
): Promise<void> {
  await pause(strike.afterMs);
  const { crew, log } = arena;
  const newest = log.judge.newest;
  // Its report may come after its first effect.
  const victim = newest && (await waitUntil(() => crew.fleet.leaderOf(newest.token), 5_000));
  if (newest === undefined || victim === undefined || victim.hasEnded || !crew.isFree(victim)) {
    return arena.note(`nobody to ${strike.fault}`);
  }
  await strikeCandidate(arena, victim, strike, restartMs, blows, newest);
}

/** Those who do not lead now and can be struck. */
export function whoWaits({ crew, log }: Field): CandidateProcess[] {
  const leader = log.judge.newest?.candidate;
  return crew.free.filter(({ id, hasEnded }) => id !== leader && !hasEnded);
}

export async function strikeCandidate<Fault extends string, Arena extends Field>(
  arena: Arena,
  victim: CandidateProcess,
  { fault, length, choice }: Strike<Fault>,
  restartMs: number,
  blows: Blows<Fault, Arena>,
  { token, group }: CandidateFacts = {},
): Promise<void> {
  const { crew, liveness, note } = arena;
  const seat = crew.seatOf(victim);
  const forMs = Math.round(length * seat.leaseMs);
  const named = token === undefined ? victim.id : `${victim.id} (token ${token})`;
  note(`${named}: ${fault} for ${forMs} ms`);
  const struck = () => liveness.struck(monotonicMs());
  await crew.alone(victim, async () => {
    struck();
    await blows[fault](arena, { victim, seat, forMs, choice, restartMs, token, group });
    // A deletion or a request took effect only at the end.
    if (forMs === 0) struck();
  });
  note(`${victim.id}: ${fault} is over`);
}
