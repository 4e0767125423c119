/** How results are printed: for people, for programs, for docs/benchmarks.md. */
import type { Figure } from './figure.ts';
import { digits, verdictOf, withUnit } from './figure.ts';
import type { Machine } from './machine.ts';
import { loadWarning, machineLine } from './machine.ts';

export interface Report {
  start(machine: Machine, rounds: number): string;
  figures(figures: readonly Figure[]): string;
  /** What could not be measured, or went wrong. */
  trouble(benchmark: string, kind: 'skipped' | 'failed' | 'wrong', message: string): string;
}

const text: Report = {
  start: (machine, rounds) => lines([...heading(machine), `rounds: ${rounds}`]),
  figures: (figures) =>
    lines(
      figures.map((figure) => {
        const { benchmark, name, value, unit, goal } = figure;
        const verdict = verdictOf(figure);
        return [
          benchmark.padEnd(10),
          `${name}: ${withUnit(value, unit)}${range(figure)}`,
          ...(goal === undefined ? [] : [`goal ≤ ${withUnit(goal, unit)}: ${verdict}`]),
        ].join('  ');
      }),
    ),
  trouble: (benchmark, kind, message) => lines([`${benchmark.padEnd(10)}  ${kind}: ${message}`]),
};

const json: Report = {
  start: (machine, rounds) => object({ kind: 'machine', ...machine, rounds }),
  figures: (figures) =>
    figures
      .map((figure) => {
        const { goal, value } = figure;
        const met = goal === undefined ? {} : { met: value <= goal };
        return object({ kind: 'figure', ...figure, ...met });
      })
      .join(''),
  trouble: (benchmark, kind, message) => object({ kind, benchmark, message }),
};

const markdown: Report = {
  start: (machine, rounds) =>
    lines([
      ...heading(machine).map((line) => `${line}  `),
      `\`npm run bench -- --markdown --rounds ${rounds}\``,
      '',
      '| | median | p95 | min to max | n | goal | |',
      '| --- | --: | --: | --- | --: | --: | --- |',
    ]),
  figures: (figures) =>
    lines(
      figures.map((figure) => {
        const { name, value, unit, spread, goal } = figure;
        const cells = [
          name,
          goal === undefined ? withUnit(value, unit) : `**${withUnit(value, unit)}**`,
          digits(spread.p95),
          `${digits(spread.min)} to ${digits(spread.max)}`,
          String(spread.count),
          goal === undefined ? '' : `≤ ${withUnit(goal, unit)}`,
          verdictOf(figure) ?? '',
        ];
        return `| ${cells.join(' | ')} |`;
      }),
    ),
  trouble: (benchmark, kind, message) =>
    lines([`| ${benchmark}: ${kind}: ${message.replaceAll('|', '\\|')} | | | | | | |`]),
};

export const reports: Readonly<Record<'text' | 'json' | 'markdown', Report>> = {
  text,
  json,
  markdown,
};

function heading(machine: Machine): string[] {
  const warning = loadWarning(machine);
  return [machineLine(machine), ...(warning === undefined ? [] : [`Warning: ${warning}`])];
}

function range({ spread: { count, min, p95, max } }: Figure): string {
  if (count === 1) return ' (n 1)';
  return ` (p95 ${digits(p95)}, ${digits(min)} to ${digits(max)}, n ${count})`;
}

function object(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

function lines(all: readonly string[]): string {
  return all.map((line) => `${line}\n`).join('');
}
