/** The section on the ZooKeeper client in the page of the benchmarks: a column for each client. */
import type { ResultLine } from '../kept-results.ts';
import type { MetricId } from './metrics.ts';
import { metrics } from './metrics.ts';
import type { Line } from './report.ts';
import { heading, tableOf } from './report.ts';

/** The metrics that readers look at first. */
const charted: readonly MetricId[] = ['get100Rate', 'canned1000Cpu', 'watchBytes'];

export function zooKeeperSectionOf(result: readonly ResultLine[]): string[] {
  const lines = result as readonly Line[];
  return [
    ...charted.flatMap((metric) => chartOf(metric, lines)),
    ...tableOf(lines, Object.keys(metrics) as MetricId[]),
    '',
    ...heading(lines).map((line) => `- ${line}`),
    ...lines.flatMap((line) =>
      line.kind === 'trouble' ? [`- ${line.benchmark}: ${line.message.split('\n')[0]}`] : [],
    ),
  ];
}

function chartOf(metric: MetricId, lines: readonly Line[]): string[] {
  const columns = lines.flatMap((line) =>
    line.kind === 'figure' && line.metric === metric && line.p50 > 0 ? [line.candidate] : [],
  );
  if (columns.length < 2) return [];
  const { name, unit } = metrics[metric];
  const others = columns.filter((column) => column !== 'ours');
  const chart = { title: `${name}, ${unit}`, unit, row: name, columns, others };
  return [`<!-- chart ${JSON.stringify(chart)} -->`, ''];
}
