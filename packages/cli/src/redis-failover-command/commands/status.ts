import type { NodeAddress } from '@incumbent/redis-failover';
import type { Report } from '@incumbent/redis-failover/internal';
import { pathsBelow } from '@incumbent/redis-failover/internal';
import { parseDuration } from 'incumbent';
import { span } from '../../output/span.ts';
import { painter } from '../../terminal/style.ts';
import type { Cell, Column } from '../../terminal/table.ts';
import { fields, table } from '../../terminal/table.ts';
import { toJson, visible } from '../../terminal/text.ts';
import type { FlagValues } from '../config/collect.ts';
import type { Place } from '../config/place.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import { withZooKeeper } from '../look/connect.ts';
import type { Problem } from '../look/judge.ts';
import { findProblems, primaryOf } from '../look/judge.ts';
import type { Answer } from '../look/roles.ts';
import { askRoles } from '../look/roles.ts';
import { placeAndAccess } from '../look/set.ts';
import type { Znodes } from '../look/znodes.ts';
import { addressesOf, readZnodes } from '../look/znodes.ts';

interface StatusFlags extends FlagValues {
  readonly timeout: string;
  readonly nodeTimeout: string;
  readonly json?: true;
}

/** The state of a set, as the command has found it. */
interface Found {
  readonly place: Place;
  readonly znodes: Znodes;
  readonly answers: ReadonlyMap<NodeAddress, Answer>;
  readonly problems: readonly Problem[];
}

export async function status(flags: StatusFlags, context: Context): Promise<number> {
  const { place, access } = await placeAndAccess(flags, context);
  const nodeTimeoutMs = parseDuration('--node-timeout', flags.nodeTimeout);
  const found = await withZooKeeper(
    place,
    flags.timeout,
    context,
    async ({ zk, signal, takeTime }) => {
      const znodes = await readZnodes(zk, pathsBelow(place.root), signal);
      takeTime();
      const answers = await askRoles(addressesOf(znodes), access, nodeTimeoutMs, context.signal);
      return { place, znodes, answers, problems: findProblems(znodes, answers) };
    },
  );
  if (flags.json) {
    context.stdout.write(`${toJson(asJson(found))}\n`);
  } else {
    context.stdout.write(`${asLines(found, context).join('\n')}\n`);
  }
  return found.problems.length === 0 ? exitCodes.ok : exitCodes.no;
}

function asJson({ place, znodes, answers, problems }: Found): object {
  const { record, leader, reports, requests } = znodes;
  return {
    root: place.root,
    healthy: problems.length === 0,
    problems,
    primary: primaryOf(znodes) ?? null,
    term: record?.term ?? null,
    former: record?.former ?? null,
    clientViewMs: record?.viewMs ?? null,
    leader: leader === undefined ? null : { id: leader.id, token: leader.token ?? null },
    waitingRequests: requests,
    managers: [...reports].map(([id, report]) => ({
      id,
      leading: id === leader?.id,
      available: report.available,
      unavailable: report.unavailable,
    })),
    nodes: [...answers].map(([address, { replication, error }]) => ({
      address,
      recorded: recordedRole(address, znodes) ?? null,
      role: replication?.role ?? null,
      primary: replication?.primary ?? null,
      linkUp: replication?.linkUp ?? null,
      syncing: replication?.syncing ?? null,
      offset: replication?.offset ?? null,
      latencyMs: meanLatencyMs(address, reports) ?? null,
      availableTo: managersThat(reports, (report) => Object.hasOwn(report.available, address)),
      unavailableTo: managersThat(reports, (report) => report.unavailable.includes(address)),
      error: error?.message ?? null,
    })),
  };
}

function asLines(found: Found, { stdout, env }: Context): string[] {
  const { place, znodes, answers, problems } = found;
  const paint = painter(stdout, env);
  const { record, leader, reports } = znodes;
  const primary = primaryOf(znodes);
  const term = record === undefined ? '' : `  (term ${record.term})`;
  const healthy = problems.length === 0;
  const head = fields(
    [
      ['set', [{ text: visible(`${place.root} on ${place.zookeeper}`) }]],
      ['state', [{ text: healthy ? 'healthy' : 'degraded', tone: healthy ? 'good' : 'bad' }]],
      [
        'primary',
        [{ text: visible(`${primary ?? 'none'}${term}`), tone: primary ? 'strong' : 'bad' }],
      ],
      [
        'leader',
        [
          {
            text: visible(leader?.id ?? noLeader(znodes)),
            tone: leader === undefined ? 'warn' : 'strong',
          },
        ],
      ],
    ],
    paint,
  );
  const nodes = [...answers].map(([address, answer]) => nodeRow(address, answer, znodes, problems));
  const managers = [...reports].map(([id, { available, unavailable }]): readonly Cell[] => [
    { text: visible(id), ...(id === leader?.id ? { tone: 'strong' as const } : {}) },
    { text: id === leader?.id ? 'leads' : 'waits' },
    {
      text: `${Object.keys(available).length} of ${Object.keys(available).length + unavailable.length}`,
    },
    { text: visible(unavailable.join(' ')), tone: 'bad' },
  ]);
  const lines = [...head];
  if (nodes.length > 0) {
    const titles = ['node', 'recorded', 'says', 'offset', 'latency', 'seen by', 'remarks'];
    lines.push('', ...table(columnsOf(titles), nodes, paint, undefined));
  }
  if (managers.length > 0) {
    const titles = ['manager', '', 'reaches', 'does not reach'];
    lines.push('', ...table(columnsOf(titles), managers, paint, undefined));
  }
  if (!healthy) {
    lines.push('', ...problems.map(({ message }) => `${paint('bad', '!')} ${visible(message)}`));
  }
  return lines;
}

function columnsOf(titles: readonly string[]): readonly Column[] {
  return titles.map((title) => ({ title }));
}

/** Managers of the Ruby gem elect one in their own way. */
function noLeader({ record, nodes, reports }: Znodes): string {
  const isGem = record === undefined && nodes !== undefined && reports.size > 0;
  return isGem ? 'not known (managers of the Ruby gem)' : 'none';
}

function nodeRow(
  address: NodeAddress,
  { replication }: Answer,
  znodes: Znodes,
  problems: readonly Problem[],
): readonly Cell[] {
  const { reports } = znodes;
  const recorded = recordedRole(address, znodes);
  const mean = meanLatencyMs(address, reports);
  const seenBy = managersThat(reports, (report) => Object.hasOwn(report.available, address)).length;
  const isWrong = problems.some(({ node }) => node === address);
  return [
    { text: visible(address), ...(recorded === 'primary' ? { tone: 'strong' as const } : {}) },
    { text: recorded ?? 'not at all', tone: recorded === 'down' ? 'bad' : 'faint' },
    { text: replication?.role ?? 'nothing', tone: isWrong ? 'bad' : 'good' },
    { text: replication === undefined ? '-' : `${replication.offset}` },
    { text: mean === undefined ? '-' : span(mean) },
    {
      text: `${seenBy} of ${reports.size}`,
      ...(seenBy < reports.size ? { tone: 'warn' as const } : {}),
    },
    { text: remarks(replication) },
  ];
}

function remarks(replication: Answer['replication']): string {
  if (replication === undefined) return '';
  const { role, primary, linkUp, syncing, loading, connectedReplicas } = replication;
  if (loading) return 'loads its data';
  if (role === 'primary')
    return connectedReplicas === 1 ? '1 replica' : `${connectedReplicas} replicas`;
  const link = syncing ? ', copies all data' : linkUp ? '' : ', no connection with it';
  return visible(`of ${primary}${link}`);
}

function recordedRole(
  address: NodeAddress,
  znodes: Znodes,
): 'primary' | 'replica' | 'down' | undefined {
  const { nodes } = znodes;
  if (nodes?.unavailable.includes(address)) return 'down';
  if (address === primaryOf(znodes)) return 'primary';
  return nodes?.slaves.includes(address) ? 'replica' : undefined;
}

function managersThat(
  reports: Znodes['reports'],
  condition: (report: Report) => boolean,
): readonly string[] {
  return [...reports].flatMap(([id, report]) => (condition(report) ? [id] : []));
}

/** The mean of the managers' reports. */
function meanLatencyMs(address: NodeAddress, reports: Znodes['reports']): number | undefined {
  const latencies = [...reports.values()].flatMap(({ available }) => available[address] ?? []);
  if (latencies.length === 0) return undefined;
  const mean = latencies.reduce((sum, each) => sum + each, 0) / latencies.length;
  return Math.round(mean * 1e5) / 100;
}
