/** How much is measured. */
export interface Scale {
  /** D on the file store. */
  readonly leaseMs: number;
  readonly reaction: { readonly warmUps: number; readonly perRound: number };
  readonly calls: { readonly warmUps: number; readonly perRound: number };
  readonly objects: {
    /** D; undefined: the default on object stores. */
    readonly leaseMs: number | undefined;
    readonly elections: number;
    /** For how long, in D. */
    readonly windowLeases: number;
    readonly looks: number;
  };
}

export const full: Scale = {
  leaseMs: 15_000,
  reaction: { warmUps: 5, perRound: 50 },
  calls: { warmUps: 500, perRound: 2_000 },
  objects: { leaseMs: undefined, elections: 10, windowLeases: 4, looks: 200 },
};

/** Only to see whether everything works: the numbers are worth little. */
export const quick: Scale = {
  leaseMs: 5_000,
  reaction: { warmUps: 1, perRound: 3 },
  calls: { warmUps: 20, perRound: 50 },
  objects: { leaseMs: 6_000, elections: 2, windowLeases: 2, looks: 5 },
};
