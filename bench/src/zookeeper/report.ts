/** How the results are printed: for people, for programs, for the documentation. */
import { digits } from '../figure.ts';
import type { Machine } from '../machine.ts';
import { loadWarning, machineLines } from '../machine.ts';
import { goals, goalText, judge, verdictText } from './goals.ts';
import { candidateNames } from './messages.ts';
import type { Metric, MetricId } from './metrics.ts';
import { metrics } from './metrics.ts';
import type { Column, Results } from './results.ts';

export interface Run {
  readonly machine: Machine;
  readonly command: string;
  readonly server: string;
  readonly rounds: number;
  /** Those that take part, with their versions. */
  readonly versions: ReadonlyMap<Column, string>;
  /** The reasons of those that do not. */
  readonly absent: ReadonlyMap<Column, string>;
  readonly loadAtEnd: number;
  readonly seconds: number;
}

export interface Trouble {
  readonly benchmark: string;
  readonly column: Column | undefined;
  readonly message: string;
}

export type Report = (run: Run, results: Results, troubles: readonly Trouble[]) => string;

const columns: readonly Column[] = [...candidateNames, 'empty'];
/** The rows that decide. */
const ids = Object.keys(metrics) as MetricId[];

const text: Report = (run, results, troubles) =>
  lines([
    ...heading(run),
    '',
    ...padded([['', '', ...columns, 'goal'], ...rows(results)]),
    ...(troubles.length === 0 ? [] : ['', ...troubles.map(troubleLine)]),
  ]);

const markdown: Report = (run, results, troubles) =>
  lines([
    ...heading(run).map((line) => `- ${line}`),
    '',
    `| | | ${columns.join(' | ')} | goal |`,
    `| --- | --- |${' --: |'.repeat(columns.length)} --- |`,
    ...rows(results).map((cells) => `| ${cells.join(' | ')} |`),
    ...(troubles.length === 0 ? [] : ['', ...troubles.map((each) => `- ${troubleLine(each)}`)]),
  ]);

const json: Report = (run, results, troubles) => {
  const { machine, versions, absent, ...rest } = run;
  const object = (value: object) => JSON.stringify(value);
  return lines([
    object({
      kind: 'run',
      ...machine,
      ...rest,
      versions: Object.fromEntries(versions),
      absent: Object.fromEntries(absent),
    }),
    ...ids.flatMap((metric) =>
      columns.flatMap((candidate) => {
        const spread = results.spread(metric, candidate);
        if (spread === undefined) return [];
        return [object({ kind: 'figure', metric, ...metrics[metric], candidate, ...spread })];
      }),
    ),
    ...goals.map((goal) => {
      const { value, met } = judge(goal, results) ?? { value: null, met: null };
      return object({ kind: 'goal', ...goal, text: goalText(goal), value, met });
    }),
    ...troubles.map((trouble) => object({ kind: 'trouble', ...trouble })),
  ]);
};

export const reports: Readonly<Record<'text' | 'json' | 'markdown', Report>> = {
  text,
  json,
  markdown,
};

function heading(run: Run): string[] {
  const warning = loadWarning(run.machine);
  return [
    ...machineLines(run.machine, 'server', run.loadAtEnd),
    ...(warning === undefined ? [] : [`Warning: ${warning}`]),
    `${run.command} (${run.rounds} rounds, ${run.seconds} s)`,
    `ZooKeeper ${run.server}; ${[...run.versions].map(([name, version]) => `${name}: ${version}`).join(', ')}`,
    ...[...run.absent].map(([name, reason]) => `${name} is absent: ${reason}`),
  ];
}

/** Name, unit, a median for each column, goals. Rows without any figure are left out. */
function rows(results: Results): string[][] {
  return ids.flatMap((id) => {
    const metric: Metric = metrics[id];
    const spreads = columns.map((column) => results.spread(id, column));
    if (spreads.every((spread) => spread === undefined)) return [];
    const verdicts = goals
      .filter((goal) => goal.metric === id)
      .map((goal) => `${goalText(goal)}: ${verdictText(judge(goal, results))}`);
    return [
      [
        metric.name,
        metric.unit,
        ...spreads.map((spread) => (spread === undefined ? '' : digits(spread.p50))),
        verdicts.join('; '),
      ],
    ];
  });
}

function padded(table: readonly (readonly string[])[]): string[] {
  const widths = (table[0] ?? []).map((_, column) =>
    Math.max(...table.map((row) => row[column]?.length ?? 0)),
  );
  return table.map((row) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        const isNumber = column >= 2 && column < row.length - 1;
        return isNumber ? cell.padStart(width) : cell.padEnd(width);
      })
      .join('  ')
      .trimEnd(),
  );
}

function troubleLine({ benchmark, column, message }: Trouble): string {
  return `${benchmark}${column === undefined ? '' : `, ${column}`}: could not be measured: ${message.split('\n')[0]}`;
}

function lines(all: readonly string[]): string {
  return all.map((line) => `${line}\n`).join('');
}
