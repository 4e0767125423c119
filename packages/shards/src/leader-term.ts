import type { Term } from 'incumbent';
import { followedName } from './following.ts';
import type { ShardTerm } from './shard-term.ts';

const known = new WeakMap<ShardTerm, Term>();

/** The term of a shard, as what serves calls of a leader looks at it. The same one each time. */
export function leaderTermOf(own: ShardTerm): Term {
  const before = known.get(own);
  if (before !== undefined) return before;
  const { token, signal, ended } = own;
  const election = followedName(own.name, own.shard);
  const term: Pick<
    Term,
    'election' | 'token' | 'signal' | 'isReady' | 'isLeading' | 'remaining' | 'assertLeading'
  > & { readonly ended: Promise<void> } = {
    ...{ election, token, signal, ended },
    get isReady() {
      return own.isReady;
    },
    isLeading: () => own.isLeading(),
    remaining: () => own.remaining(),
    assertLeading: (minMs) => own.assertLeading(minMs),
  };
  const leading = term as unknown as Term;
  known.set(own, leading);
  return leading;
}
