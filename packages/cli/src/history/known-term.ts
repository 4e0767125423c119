import type { Followed } from '../follow/store-follower.ts';

/** All that is known of one term. It is the term of this token and incarnation. */
export interface KnownTerm {
  readonly token: string;
  readonly incarnation: string;
  readonly id: string;
  readonly fromUnixMs: number;
  /** Null: it leads, or its end is not known. */
  readonly end: TermEnd | null;
}

export interface TermEnd {
  /** After `unclean`: when the next leader took over. */
  readonly toUnixMs: number;
  readonly why: string;
}

/** The terms that a store shows: those that are over, and the one that leads. */
export function termsShown({ history, view }: Pick<Followed, 'history' | 'view'>): KnownTerm[] {
  const terms = history.map(
    ({ token, incarnation, id, fromUnixMs, toUnixMs, why }): KnownTerm => ({
      ...{ token: token.toString(), incarnation, id, fromUnixMs },
      end: { toUnixMs, why },
    }),
  );
  const { leader, token, sinceUnixMs: fromUnixMs } = view;
  if (view.state === 'led' && leader !== undefined && token !== undefined) {
    const { id, incarnation } = leader;
    terms.push({ token: token.toString(), incarnation, id, fromUnixMs, end: null });
  }
  return terms;
}

/**
 * All that two pieces of knowledge say of the same term. The order in which pieces are merged does not
 * matter, nor does it how often: a recorder that starts again reads what it has read before.
 */
export function mergeTerms(one: KnownTerm, other: KnownTerm): KnownTerm {
  return {
    token: one.token,
    incarnation: one.incarnation,
    id: one.id < other.id ? one.id : other.id,
    fromUnixMs: beginning(one, other),
    end: mergeEnds(one.end, other.end),
  };
}

/** While it leads, the record says when the seat was won. At the end the leader tells when its term began. */
function beginning(one: KnownTerm, other: KnownTerm): number {
  if ((one.end === null) !== (other.end === null)) {
    return one.end === null ? other.fromUnixMs : one.fromUnixMs;
  }
  return Math.min(one.fromUnixMs, other.fromUnixMs);
}

/** A reason that the leader gave says more than `unclean`, and any end says more than none. */
function mergeEnds(one: TermEnd | null, other: TermEnd | null): TermEnd | null {
  if (one === null) return other;
  if (other === null) return one;
  const isUnclean = one.why === 'unclean';
  if (isUnclean !== (other.why === 'unclean')) return isUnclean ? other : one;
  if (one.toUnixMs !== other.toUnixMs) return one.toUnixMs < other.toUnixMs ? one : other;
  return one.why < other.why ? one : other;
}

export function sameTerm(one: KnownTerm, other: KnownTerm): boolean {
  return (
    one.id === other.id &&
    one.fromUnixMs === other.fromUnixMs &&
    one.end?.toUnixMs === other.end?.toUnixMs &&
    one.end?.why === other.end?.why
  );
}
