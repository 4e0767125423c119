/** The section on one subject in the page of the benchmarks. */
import type { Figure, Unit } from './figure.ts';
import type { ResultLine } from './kept-results.ts';
import type { FigureLine, Line, TroubleLine } from './report.ts';
import { heading, rowOf, tableHead } from './report.ts';

/** Fewer bars compare nothing. */
const leastBars = 2;
/** A longer chart is not looked at. */
const mostBars = 14;
/** Where the largest is so many times the smallest, a short bar would not be seen. */
const logarithmicFrom = 50;

export function sectionOf(result: readonly ResultLine[]): string[] {
  const lines = result as readonly Line[];
  const run = lines.find((line) => line.kind === 'machine');
  if (run === undefined) throw new Error('the results do not say what they were measured on');
  const figures = lines.filter((line): line is FigureLine => line.kind === 'figure');
  const troubles = lines.filter((line): line is TroubleLine =>
    ['skipped', 'failed', 'wrong'].includes(line.kind),
  );
  const benchmarks = [...new Set(figures.map(({ benchmark }) => benchmark))];
  const load = lines.find((line) => line.kind === 'end')?.load;
  return [
    ...benchmarks.flatMap((name) => benchmarkOf(name, figures)),
    ...troubles.map(({ kind, benchmark, message }) => `- ${benchmark}: ${kind}: ${message}`),
    ...(troubles.length > 0 ? [''] : []),
    `\`${run.command} --save --rounds ${run.rounds}\``,
    '',
    ...heading(run).map((each) => `- ${each}`),
    ...(load === undefined ? [] : [`- load at the end: ${load.toFixed(2)}`]),
  ];
}

function benchmarkOf(name: string, all: readonly FigureLine[]): string[] {
  const figures = all.filter(({ benchmark }) => benchmark === name);
  return [
    `### ${name}`,
    '',
    ...chartsOf(name, figures),
    ...tableHead,
    ...figures.map((figure) => rowOf(named(figure))),
    '',
  ];
}

/** A chart for each unit that compares something. The goals are in the table. */
function chartsOf(name: string, figures: readonly FigureLine[]): string[] {
  const units = [...new Set(figures.map(({ unit }) => unit))];
  return units.flatMap((unit) => {
    const bars = figures.filter((figure) => figure.unit === unit && figure.value > 0);
    if (bars.length < leastBars || bars.length > mostBars) return [];
    const values = bars.map(({ value }) => value);
    const chart = {
      title: titleOf(name, unit),
      unit,
      columns: ['median'],
      rows: bars.map((bar) => named(bar).name),
      others: bars.filter(isPeer).map((bar) => named(bar).name),
      ...(Math.max(...values) > logarithmicFrom * Math.min(...values) ? { scale: 'log' } : {}),
    };
    return [`<!-- chart ${JSON.stringify(chart)} -->`, ''];
  });
}

function titleOf(name: string, unit: Unit): string {
  return unit === '' ? name : `${name}, ${unit}`;
}

/** Drawn in grey: what ours is compared with. */
function isPeer({ name }: Figure): boolean {
  return /\bfloor\b|etcd3|redlock|Curator|kazoo|Sentinel|node-zookeeper-client|bare/i.test(name);
}

/** A chart finds its rows by their names, which are plain text in the table. */
function named(figure: FigureLine): FigureLine {
  return { ...figure, name: figure.name.replaceAll('`', '').replaceAll('|', '/') };
}
