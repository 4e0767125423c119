/** How much is measured. */
export interface Scale {
  /** D of everything but the crashes. */
  readonly leaseMs: number;
  /** D of the crashes. */
  readonly leasesMs: readonly number[];
  readonly handOver: { readonly warmUps: number; readonly perRound: number };
  readonly roundTrips: { readonly warmUps: number; readonly handOvers: number };
  readonly idle: { readonly elections: number; readonly windowMs: number };
  readonly many: {
    readonly elections: number;
    readonly windowMs: number;
    /** All contenders at the same time. */
    readonly isTogether: boolean;
  };
}

export const full: Scale = {
  leaseMs: 15_000,
  leasesMs: [3_000, 15_000],
  handOver: { warmUps: 12, perRound: 50 },
  roundTrips: { warmUps: 10, handOvers: 15 },
  idle: { elections: 10, windowMs: 60_000 },
  many: { elections: 1_000, windowMs: 15_000, isTogether: false },
};

/** Only to see whether everything works: the numbers are worth little. */
export const quick: Scale = {
  leaseMs: 5_000,
  leasesMs: [5_000],
  handOver: { warmUps: 1, perRound: 2 },
  roundTrips: { warmUps: 2, handOvers: 2 },
  idle: { elections: 2, windowMs: 2_000 },
  many: { elections: 20, windowMs: 1_000, isTogether: true },
};
