import type {
  Round as AnyRound,
  Card,
  Cards,
  Faults,
  Opening as OpeningOf,
  Strike,
} from '../harness/rounds.ts';
import { anyLength, drawRounds } from '../harness/rounds.ts';

/** The faults of one process, or of its network. */
export type MemberFault =
  | 'kill'
  | 'freeze'
  /** It moves its shards away, and leaves. */
  | 'drain'
  /** It stops its work, and leaves. */
  | 'close'
  /** It gives up one shard. */
  | 'resign'
  | 'cut'
  | 'silence'
  | 'drop replies';

/** The faults of the store, or of all processes at once. */
export type CommonFault = 'freeze everybody' | 'cut everybody' | 'kill store' | 'freeze store';

const processFaults = {
  kill: { cards: 4 },
  freeze: { cards: 4, ...anyLength },
  drain: { cards: 2 },
  close: { cards: 1 },
  resign: { cards: 1 },
} as const satisfies Partial<Cards<MemberFault>>;

const networkFaults = {
  cut: { cards: 1, to: 0.4 },
  silence: { cards: 3, ...anyLength },
  'drop replies': { cards: 2, from: 0.2, to: 1.2 },
} as const satisfies Partial<Cards<MemberFault>>;

const none: Card = { cards: 0 };

/** @param isRemote the store is a server that processes reach over a network */
function faultsOn(isRemote: boolean): Faults<MemberFault, MemberFault, CommonFault> {
  const possible = (card: Card): Card => (isRemote ? card : none);
  const member: Cards<MemberFault> = {
    ...processFaults,
    cut: possible(networkFaults.cut),
    silence: possible(networkFaults.silence),
    'drop replies': possible(networkFaults['drop replies']),
  };
  return {
    leader: member,
    waiting: member,
    server: {
      'freeze everybody': { cards: 1, from: 0.2, to: 1.5 },
      'cut everybody': possible({ cards: 1, to: 0.4 }),
      'kill store': possible({ cards: 2, to: 1.2 }),
      'freeze store': possible({ cards: 2, from: 0.2, to: 1.5 }),
    },
  };
}

/** `leader` is the coordinator, `waiting` another process, `server` the store or all of them. */
export type Round = AnyRound<MemberFault, MemberFault, CommonFault>;
type Opening = OpeningOf<MemberFault, MemberFault, CommonFault>;

function openingsOn(isRemote: boolean): readonly Opening[] {
  return [
    { leader: 'freeze', leaderLength: 2 },
    // Back before its belief is over, and long after it was heard of last.
    isRemote ? { waiting: 'silence', waitingLength: 1 } : { waiting: 'freeze', waitingLength: 0.6 },
    { waiting: 'kill' },
    { waiting: 'drain' },
    { leader: 'kill', waiting: 'kill' },
  ];
}

/** Endless. */
export function planRounds(seed: number, isRemote: boolean): Generator<Round> {
  return drawRounds(seed, {
    faults: faultsOn(isRemote),
    shares: { leader: 0.85, waiting: 0.6, server: 0.15 },
    openings: openingsOn(isRemote),
  });
}

/** As the rows of the table name them. */
export function rowsOf({ leader, waiting, server }: Round): readonly string[] {
  const row = (who: string, strike: Strike<string> | undefined) =>
    strike === undefined ? [] : [`${who}: ${strike.fault}`];
  return [...row('coordinator', leader), ...row('another', waiting), ...row('all', server)];
}
