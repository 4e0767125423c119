import type { View } from 'incumbent';

/** Two views in a row with the same outline are one too many. */
export function outline({ state, token, leader, ready }: View): string {
  const who = leader === undefined ? '' : `${leader.id} ${leader.incarnation}`;
  return `${state} ${ready ?? ''} ${token ?? ''} ${who} ${leader?.addresses.join() ?? ''} ${JSON.stringify(leader?.metadata ?? {})}`;
}
