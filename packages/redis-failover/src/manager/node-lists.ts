/** Whether all managers watch the same nodes. Each manager reports on all nodes of its list. */
import type { Report } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';

/** A manager whose list lacks nodes that other managers watch. */
export interface ShortList {
  readonly manager: string;
  /** The nodes that others watch, and this manager does not. */
  readonly lacks: readonly NodeAddress[];
}

/** @param reports by the managers' ids. A manager that has looked at nothing yet is left out */
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

/** The nodes that only other managers watch. */
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
 * One entry for each Redis process. A manager may spell a node differently than others, so one
 * process may have several names. The first of them in `preferred` stays.
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
