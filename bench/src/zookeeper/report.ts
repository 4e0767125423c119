/** How the results are printed: for people, for programs, for the documentation. */
import type { Spread } from '../figure.ts';
import { digits } from '../figure.ts';
import type { Machine } from '../machine.ts';
import { loadWarning, machineLines } from '../machine.ts';
import type { Goal } from './goals.ts';
import { goals, goalText, judge, verdictText } from './goals.ts';
import { candidateNames } from './messages.ts';
import type { Metric, MetricId } from './metrics.ts';
import { metrics } from './metrics.ts';
import type { Column, Results } from './results.ts';

export interface RunLine extends Machine {
  readonly kind: 'run';
  readonly command: string;
  readonly server: string;
  readonly rounds: number;
  /** Those that take part, with their versions. */
  readonly versions: Readonly<Partial<Record<Column, string>>>;
  /** The reasons of those that do not. */
  readonly absent: Readonly<Partial<Record<Column, string>>>;
  readonly loadAtEnd: number;
  readonly seconds: number;
}

export interface FigureLine extends Metric, Spread {
  readonly kind: 'figure';
  readonly metric: MetricId;
  readonly candidate: Column;
}

export interface GoalLine extends Goal {
  readonly kind: 'goal';
  /** `≤ 1.40 × raw`. */
  readonly text: string;
  /** In the terms of its limit; null where it was not measured. */
  readonly value: number | null;
  readonly met: boolean | null;
}

export interface TroubleLine {
  readonly kind: 'trouble';
  readonly benchmark: string;
  readonly column?: Column | undefined;
  readonly message: string;
}

export type Line = RunLine | FigureLine | GoalLine | TroubleLine;

const columns: readonly Column[] = [...candidateNames, 'empty'];
/** The rows that decide. */
const ids = Object.keys(metrics) as MetricId[];

export function resultOf(
  run: Omit<RunLine, 'kind'>,
  results: Results,
  troubles: readonly Omit<TroubleLine, 'kind'>[],
): Line[] {
  return [
    { kind: 'run', ...run },
    ...ids.flatMap((metric) =>
      columns.flatMap((candidate): FigureLine[] => {
        const spread = results.spread(metric, candidate);
        if (spread === undefined) return [];
        return [{ kind: 'figure', metric, ...metrics[metric], candidate, ...spread }];
      }),
    ),
    ...goals.map((goal): GoalLine => {
      const { value, met } = judge(goal, results) ?? { value: null, met: null };
      return { kind: 'goal', ...goal, text: goalText(goal), value, met };
    }),
    ...troubles.map((trouble): TroubleLine => ({ kind: 'trouble', ...trouble })),
  ];
}

export const formats: Readonly<
  Record<'text' | 'json' | 'markdown', (result: readonly Line[]) => string>
> = {
  text: (result) =>
    lines([
      ...heading(result),
      '',
      ...padded([['', '', ...columns, 'goal'], ...rows(result)]),
      ...troublesOf(result, (line) => line),
    ]),
  json: (result) => lines(result.map((line) => JSON.stringify(line))),
  markdown: (result) =>
    lines([
      ...heading(result).map((line) => `- ${line}`),
      '',
      ...tableOf(result, ids),
      ...troublesOf(result, (line) => `- ${line}`),
    ]),
};

/** The rows of these metrics, with a column for each candidate. */
export function tableOf(result: readonly Line[], chosen: readonly MetricId[]): string[] {
  return [
    `| | | ${columns.join(' | ')} | goal |`,
    `| --- | --- |${' --: |'.repeat(columns.length)} --- |`,
    ...rows(result, chosen).map((cells) => `| ${cells.join(' | ')} |`),
  ];
}

export function heading(result: readonly Line[]): string[] {
  const run = result.find((line) => line.kind === 'run');
  if (run === undefined) throw new Error('the results do not say what they were measured on');
  const warning = loadWarning(run);
  const versions = Object.entries(run.versions).map(([name, version]) => `${name}: ${version}`);
  return [
    ...machineLines(run, 'server', run.loadAtEnd),
    ...(warning === undefined ? [] : [`Warning: ${warning}`]),
    `${run.command} (${run.rounds} rounds, ${run.seconds} s)`,
    `ZooKeeper ${run.server}; ${versions.join(', ')}`,
    ...Object.entries(run.absent).map(([name, reason]) => `${name} is absent: ${reason}`),
  ];
}

/** Name, unit, a median for each column, goals. Rows without any figure are left out. */
function rows(result: readonly Line[], chosen: readonly MetricId[] = ids): string[][] {
  return chosen.flatMap((id) => {
    const figures = result.filter((line) => line.kind === 'figure' && line.metric === id);
    const [first] = figures;
    if (first?.kind !== 'figure') return [];
    const medians = columns.map((column) => {
      const figure = figures.find((line) => line.kind === 'figure' && line.candidate === column);
      return figure?.kind === 'figure' ? digits(figure.p50) : '';
    });
    const verdicts = result.flatMap((line) =>
      line.kind === 'goal' && line.metric === id ? [`${line.text}: ${verdictText(line)}`] : [],
    );
    return [[first.name, first.unit, ...medians, verdicts.join('; ')]];
  });
}

function troublesOf(result: readonly Line[], shown: (line: string) => string): string[] {
  const troubles = result.flatMap((line) => (line.kind === 'trouble' ? [troubleLine(line)] : []));
  return troubles.length === 0 ? [] : ['', ...troubles.map(shown)];
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

function troubleLine({ benchmark, column, message }: TroubleLine): string {
  return `${benchmark}${column === undefined ? '' : `, ${column}`}: could not be measured: ${message.split('\n')[0]}`;
}

function lines(all: readonly string[]): string {
  return all.map((line) => `${line}\n`).join('');
}
