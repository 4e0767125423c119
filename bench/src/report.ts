/** How results are printed: for people, for programs, for docs/evidence/benchmarks.md. */
import type { Figure } from './figure.ts';
import { digits, verdictOf, withUnit } from './figure.ts';
import type { Machine } from './machine.ts';
import { loadWarning, machineLines } from './machine.ts';

/** What is said before the figures. */
export interface Run {
  readonly machine: Machine;
  readonly rounds: number;
  /** `npm run bench`. */
  readonly command: string;
  /** What is on the machine's file system. */
  readonly stored: string;
  readonly notes: readonly string[];
}

export interface Report {
  start(run: Run): string;
  figures(figures: readonly Figure[]): string;
  /** What could not be measured, or went wrong. */
  trouble(benchmark: string, kind: 'skipped' | 'failed' | 'wrong', message: string): string;
  /** @param load of the last minute */
  end(load: number): string;
}

const text: Report = {
  start: (run) => lines([...heading(run), `rounds: ${run.rounds}`]),
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
  end: (load) => lines([endLine(load)]),
};

const json: Report = {
  start: ({ machine, rounds, notes }) => object({ kind: 'machine', ...machine, rounds, notes }),
  figures: (figures) =>
    figures
      .map((figure) => {
        const { goal, value } = figure;
        const met = goal === undefined ? {} : { met: value <= goal };
        return object({ kind: 'figure', ...figure, ...met });
      })
      .join(''),
  trouble: (benchmark, kind, message) => object({ kind, benchmark, message }),
  end: (load) => object({ kind: 'end', load }),
};

const markdown: Report = {
  start: (run) =>
    lines([
      ...heading(run).map((line) => `- ${line}`),
      `- \`${run.command} -- --markdown --rounds ${run.rounds}\``,
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
  end: (load) => lines(['', endLine(load)]),
};

export const reports: Readonly<Record<'text' | 'json' | 'markdown', Report>> = {
  text,
  json,
  markdown,
};

function heading({ machine, stored, notes }: Run): string[] {
  const warning = loadWarning(machine);
  return [
    ...machineLines(machine, stored),
    ...(warning === undefined ? [] : [`Warning: ${warning}`]),
    ...notes,
  ];
}

/** What was quiet at the start need not have stayed so. */
function endLine(load: number): string {
  return `load at the end: ${load.toFixed(2)}`;
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
