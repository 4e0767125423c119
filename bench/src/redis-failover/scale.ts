/** How much is measured in one round. */
export interface Scale {
  readonly kills: number;
  readonly planned: number;
  readonly sentinel: number;
  readonly bare: number;
  /** Of each scenario, with us and with Sentinel. */
  readonly scenarios: number;
}

/** Five rounds of it: 50 kills, 20 planned failovers. */
export const full: Scale = { kills: 10, planned: 4, sentinel: 4, bare: 10, scenarios: 1 };

/** Only to see whether everything works: the numbers are worth little. */
export const quick: Scale = { kills: 2, planned: 2, sentinel: 1, bare: 2, scenarios: 1 };
