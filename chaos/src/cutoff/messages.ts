/** The orders and messages of a candidate's process; kazoo_candidate.py speaks them too. */

/** All instants in ms of the machine's monotonic clock, which all processes share. */
export interface CandidatePlan {
  readonly id: string;
  /** `host:port`, comma-separated. */
  readonly hosts: string;
  readonly timeoutMs: number;
  readonly election: string;
  /** Of ours; default `incumbent`. */
  readonly layout?: 'kazoo';
  readonly broken?: 'no-wait' | 'pings' | 'arithmetic';
}

/** One time of leading, as it was sampled. */
export interface Spell {
  readonly fromMs: number;
  /** The last sample that said "I lead". */
  readonly lastMs: number;
  /** Until when a sample might have said so; undefined while one still does. */
  readonly untilMs: number | undefined;
  /** Decimal; 0 for kazoo, which has none. */
  readonly token: string;
}

/** A transaction that the quorum had to commit. */
export interface Check {
  readonly sentMs: number;
  readonly settledMs: number;
  readonly ok: boolean;
}

export type CandidateMessage =
  | { readonly type: 'connected'; readonly timeoutMs: number }
  /** Leads from here on. `place` is its node, where it is known. */
  | { readonly type: 'leading'; readonly atMs: number; readonly place?: string }
  | { readonly type: 'over'; readonly atMs: number }
  | ({ readonly type: 'check' } & Check)
  /** The state of its connection, as the client was told. */
  | { readonly type: 'state'; readonly atMs: number; readonly state: string }
  | { readonly type: 'failed'; readonly message: string }
  | {
      readonly type: 'report';
      readonly spells: readonly Spell[];
      /** The longest time between two samples of a spell. */
      readonly longestGapMs: number;
    };

/** One line each on the standard input. `stop` gives the seat back. The end of it ends the process. */
export type Command = 'report' | 'stop';
