/**
 * The argument of a library candidate, the messages that it sends, and those that it is sent. Times
 * are monotonic ms.
 */
export interface CandidateArgument {
  readonly directory: string;
  readonly election: string;
  /** Undefined: the default. */
  readonly lease?: string;
  /** How often it notes that it still leads; undefined: never. */
  readonly noteEveryMs?: number;
}

export type FromCandidate =
  /** It campaigns. */
  | { readonly say: 'waiting' }
  /** Its work has started, at `atMs`. */
  | { readonly say: 'leading'; readonly token: string; readonly atMs: number }
  | {
      readonly say: 'ended';
      readonly reason: string;
      /** `resign()` was called; undefined: the term ended otherwise. */
      readonly resignedAtMs: number | undefined;
      /** `term.ended` has resolved: the seat was given back. */
      readonly endedAtMs: number;
      /** Read just before `isLeading()` last was true. */
      readonly ledAtMs: number;
    };

export type ToCandidate = { readonly do: 'campaign' } | { readonly do: 'resign' };
