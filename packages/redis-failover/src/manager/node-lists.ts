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

export function sayShortList({ manager, lacks }: ShortList): string {
  return (
    `the manager ${manager} does not watch ${lacks.join(', ')}, which others do: ` +
    'give all managers the same nodes, spelt alike'
  );
}
