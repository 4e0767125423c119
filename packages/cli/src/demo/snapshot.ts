/** Shared with the page, which a browser runs: no imports of Node here. */

/** The state of a candidate that an onlooker can see, apart from the work of its program. */
export type Condition = 'starts' | 'waits' | 'frozen' | 'gone';
export type Mark = 'killed' | 'frozen' | 'thawed' | 'resigned';

/** Something that happened, with what came of it. */
export interface Note {
  readonly atMs: number;
  readonly mark?: Mark;
  readonly what: string;
  outcome?: string;
}

/** The buttons of the page, each with its effect on a candidate. */
export const acts = ['kill', 'freeze', 'thaw', 'resign', 'start'] as const;
export type Act = (typeof acts)[number];

/** All that the page shows, as JSON has it. Times are milliseconds since the beginning. */
export interface Snapshot {
  readonly nowMs: number;
  readonly windowMs: number;
  readonly lanes: readonly {
    readonly id: string;
    readonly condition: Condition;
    readonly leads: boolean;
    readonly conditions: readonly (readonly [sinceMs: number, condition: Condition])[];
    readonly work: readonly (readonly [fromMs: number, toMs: number, token: string])[];
    readonly marks: readonly (readonly [atMs: number, mark: Mark])[];
  }[];
  readonly notes: readonly Note[];
  readonly effects: number;
  readonly terms: number;
  readonly overlaps: number;
  readonly violations: readonly string[];
  readonly token: string | undefined;
  /** The last lines of the fenced log. */
  readonly lines: readonly {
    readonly token: string;
    readonly candidate: string;
    readonly atMs: number;
  }[];
}
