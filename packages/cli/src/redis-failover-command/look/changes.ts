/** The output of `watch`: the differences between two states of the znodes. */
import type { NodeAddress } from '@incumbent/redis-failover';
import type { Tone } from '../../terminal/style.ts';
import { primaryOf } from './judge.ts';
import type { Znodes } from './znodes.ts';

export interface Change {
  /** A name that programs can rely on. */
  readonly change: 'primary' | 'node' | 'leader' | 'manager' | 'sight' | 'requests' | 'zookeeper';
  readonly sentence: string;
  readonly tone?: Tone;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** @param before undefined: the complete state is reported */
export function changesBetween(before: Znodes | undefined, after: Znodes): readonly Change[] {
  return [
    ...primaryChanges(before, after),
    ...nodeChanges(before, after),
    ...leaderChanges(before, after),
    ...managerChanges(before, after),
    ...requestChanges(before, after),
  ];
}

function primaryChanges(before: Znodes | undefined, after: Znodes): readonly Change[] {
  const [was, is] = [before && primaryOf(before), primaryOf(after)];
  const [oldTerm, term] = [before?.record?.term, after.record?.term];
  if (before !== undefined && (was ?? null) === (is ?? null) && oldTerm === term) return [];
  const former = after.record?.former ?? null;
  const fields = { primary: is ?? null, term: term ?? null, former };
  if (is === undefined || is === null) {
    const moving = former === null ? '' : `: it is being moved away from ${former}`;
    return [{ change: 'primary', sentence: `no primary${moving}`, tone: 'bad', fields }];
  }
  const words = term === undefined ? '' : `, term ${term}`;
  return [{ change: 'primary', sentence: `primary ${is}${words}`, tone: 'good', fields }];
}

function nodeChanges(before: Znodes | undefined, after: Znodes): readonly Change[] {
  const [was, is] = [downIn(before), downIn(after)];
  // While the primary moves there is no such list, which says nothing about any node.
  if (is === undefined) return [];
  const tell = (node: NodeAddress, down: boolean): Change => ({
    change: 'node',
    sentence: `node ${node} is ${down ? 'down' : 'up again'}`,
    tone: down ? 'bad' : 'good',
    fields: { node, down },
  });
  return [
    ...[...is].filter((node) => !was?.has(node)).map((node) => tell(node, true)),
    ...[...(was ?? [])].filter((node) => !is.has(node)).map((node) => tell(node, false)),
  ];
}

function downIn(znodes: Znodes | undefined): ReadonlySet<NodeAddress> | undefined {
  return znodes?.nodes && new Set(znodes.nodes.unavailable);
}

function leaderChanges(before: Znodes | undefined, after: Znodes): readonly Change[] {
  const [was, is] = [before?.leader, after.leader];
  if (before !== undefined && was?.id === is?.id && was?.token === is?.token) return [];
  if (is === undefined) {
    const fields = { manager: null, token: null };
    return [{ change: 'leader', sentence: 'no manager leads', tone: 'warn', fields }];
  }
  const fields = { manager: is.id, token: is.token ?? null };
  return [{ change: 'leader', sentence: `manager ${is.id} leads`, fields }];
}

function managerChanges(before: Znodes | undefined, after: Znodes): readonly Change[] {
  const changes: Change[] = [];
  const tell = (manager: string, reports: boolean) =>
    changes.push({
      change: 'manager',
      sentence: `manager ${manager} ${reports ? 'reports' : 'reports no more'}`,
      ...(reports ? {} : { tone: 'warn' as const }),
      fields: { manager, reports },
    });
  for (const [manager, report] of after.reports) {
    const old = before?.reports.get(manager);
    if (old === undefined) tell(manager, true);
    const [was, is] = [old?.unavailable ?? [], report.unavailable];
    for (const node of is) if (!was.includes(node)) changes.push(sight(manager, node, false));
    for (const node of was) {
      if (Object.hasOwn(report.available, node)) changes.push(sight(manager, node, true));
    }
  }
  for (const manager of before?.reports.keys() ?? []) {
    if (!after.reports.has(manager)) tell(manager, false);
  }
  return changes;
}

function sight(manager: string, node: NodeAddress, reaches: boolean): Change {
  return {
    change: 'sight',
    sentence: `manager ${manager} ${reaches ? 'reaches' : 'does not reach'} ${node}`,
    tone: reaches ? 'good' : 'warn',
    fields: { manager, node, reaches },
  };
}

function requestChanges(before: Znodes | undefined, after: Znodes): readonly Change[] {
  if ((before?.requests ?? 0) === after.requests) return [];
  const { requests } = after;
  const words = requests === 1 ? 'a request' : `${requests} requests`;
  const sentence = requests === 0 ? 'no request waits any more' : `${words} for a failover`;
  return [{ change: 'requests', sentence, fields: { requests } }];
}
