/** Whether all managers watch the same nodes: each reports on all of its own. */
import type { Report } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';

export interface ShortList {
  readonly manager: string;
  /** What others watch, and this one does not. */
  readonly lacks: readonly NodeAddress[];
}

/** @param reports by the managers' ids. One that has looked at nothing yet is left out */
export function shortLists(reports: ReadonlyMap<string, Report>): readonly ShortList[] {
  const lists = [...reports]
    .map(([manager, { available, unavailable }]) => ({
      manager,
      nodes: new Set([...Object.keys(available), ...unavailable]),
    }))
    .filter(({ nodes }) => nodes.size > 0);
  const all = [...new Set(lists.flatMap(({ nodes }) => [...nodes]))].sort();
  return lists.flatMap(({ manager, nodes }) => {
    const lacks = all.filter((node) => !nodes.has(node));
    return lacks.length === 0 ? [] : [{ manager, lacks }];
  });
}

/** Nodes that only other managers watch. */
export function foreignNodes(
  own: readonly NodeAddress[],
  reports: ReadonlyMap<string, Report>,
): readonly NodeAddress[] {
  const all = [...reports.values()].flatMap(({ available, unavailable }) => [
    ...Object.keys(available),
    ...unavailable,
  ]);
  return [...new Set(all)].filter((node) => !own.includes(node)).sort();
}

/**
 * One entry for each Redis. Of several names of one the first in `preferred` stays: a manager may spell
 * a node as others do not.
 */
export function oncePerProcess<Each extends { readonly runId: string }>(
  known: ReadonlyMap<NodeAddress, Each>,
  preferred: readonly NodeAddress[],
): ReadonlyMap<NodeAddress, Each> {
  const names = [...preferred, ...known.keys()];
  const nameOf = new Map<string, NodeAddress>();
  for (const node of names) {
    const runId = known.get(node)?.runId;
    if (runId !== undefined && !nameOf.has(runId)) nameOf.set(runId, node);
  }
  return new Map([...known].filter(([node, { runId }]) => nameOf.get(runId) === node));
}

export function sayShortList({ manager, lacks }: ShortList): string {
  return (
    `the manager ${manager} does not watch ${lacks.join(', ')}, which others do: ` +
    'give all managers the same nodes, spelt alike'
  );
}
