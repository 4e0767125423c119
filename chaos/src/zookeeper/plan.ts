import { seeded, shuffle } from '@incumbent/servers';
import { deckOf, draw } from '../harness/deck.ts';

/** The faults between one client and the servers. Times are parts of the session timeout. */
const networkFaults = {
  /** Connections are reset, and each new one, for a while. */
  cut: { cards: 3, from: 0, to: 0.4 },
  /** A black hole in front of all servers; the session lives on. */
  silence: { cards: 3, from: 0.3, to: 0.8 },
  /** The client's present server alone is silent. */
  'silence one': { cards: 2, from: 0.7, to: 1.5 },
  /** A black hole that outlasts the session. */
  expire: { cards: 2, from: 1.3, to: 2 },
  /** Requests arrive, replies do not. */
  'drop replies': { cards: 3, from: 0.2, to: 0.8 },
  /** The connection ends inside a reply. */
  'half a frame': { cards: 2, from: 0.05, to: 0.2 },
  refuse: { cards: 2, from: 0.1, to: 0.7 },
} as const;

/** The faults of the servers. */
const serverFaults = {
  'kill leader': { cards: 2, from: 0.1, to: 0.7 },
  'kill follower': { cards: 2, from: 0.1, to: 0.7 },
  'freeze leader': { cards: 2, from: 0.2, to: 1.5 },
  'freeze follower': { cards: 2, from: 0.2, to: 1.5 },
  /** SIGTERM. */
  'stop leader': { cards: 1, from: 0, to: 0.2 },
  'lose quorum': { cards: 2, from: 0.1, to: 0.7 },
  'rolling restart': { cards: 1, from: 0, to: 0 },
  /** Of every client at once. */
  'cut everybody': { cards: 2, from: 0, to: 0.3 },
} as const;

export type NetworkFault = keyof typeof networkFaults;
export type ServerFault = keyof typeof serverFaults;
/** Of the servers alone. */
export type ProcessFault = Exclude<ServerFault, 'cut everybody'>;

export interface Strike<Fault> {
  readonly fault: Fault;
  readonly afterMs: number;
  readonly forMs: number;
  /** 0 up to 1: whatever else has to be chosen. */
  readonly choice: number;
}

/** The strikes of a round. All of it follows from the seed. */
export interface Round {
  /** From 1. */
  readonly number: number;
  readonly server: Strike<ServerFault> | undefined;
  /** By the index of the client; each has at most one. */
  readonly clients: readonly (Strike<NetworkFault> & { readonly client: number })[];
}

/** Endless. The first two rounds are those that every run needs: a session ends, a leader dies. */
export function* planRounds(seed: number, clients: number, timeoutMs: number): Generator<Round> {
  const random = seeded(seed);
  const network = deckOf(networkFaults, random);
  const servers = deckOf(serverFaults, random);
  const strike = <Fault extends string>(
    table: Readonly<Record<Fault, { readonly from: number; readonly to: number }>>,
    fault: Fault,
    latestMs: number,
  ): Strike<Fault> => {
    const { from, to } = table[fault];
    return {
      fault,
      afterMs: Math.round(random() * latestMs),
      forMs: Math.round((from + random() * (to - from)) * timeoutMs),
      choice: random(),
    };
  };
  for (let number = 1; ; number += 1) {
    const struck = shuffle(
      Array.from({ length: clients }, (_, index) => index),
      random,
    ).slice(0, 1 + Math.floor(random() * 2));
    const first: readonly NetworkFault[] = number === 1 ? ['expire', 'half a frame'] : [];
    const withServers = number === 1 ? false : number === 2 || random() < 0.5;
    const server = withServers
      ? strike(serverFaults, number === 2 ? 'kill leader' : draw(servers), 500)
      : undefined;
    const alone = server?.fault === 'cut everybody';
    yield {
      number,
      server,
      clients: alone
        ? []
        : struck.map((client, i) => ({
            client,
            ...strike(networkFaults, first[i] ?? draw(network), 800),
          })),
    };
  }
}
