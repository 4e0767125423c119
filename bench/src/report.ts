/** How results are printed: for people, for programs, for the page of the benchmarks. */
import type { Figure } from './figure.ts';
import { digits, verdictOf, withUnit } from './figure.ts';
import type { Machine } from './machine.ts';
import { loadWarning, machineLines } from './machine.ts';

/** The line that stands before the figures. */
export interface RunLine extends Machine {
  readonly kind: 'machine';
  readonly rounds: number;
  /** `npm run bench -- stores`. */
  readonly command: string;
  /** The kind of data on the machine's file system. */
  readonly stored: string;
  readonly notes: readonly string[];
}

export interface FigureLine extends Figure {
  readonly kind: 'figure';
  /** Without a goal it is left out. */
  readonly met?: boolean;
}

/** A benchmark, or a part of one, that could not be measured or went wrong. */
export interface TroubleLine {
  readonly kind: 'skipped' | 'failed' | 'wrong';
  readonly benchmark: string;
  readonly message: string;
}

export interface EndLine {
  readonly kind: 'end';
  /** Of the last minute. */
  readonly load: number;
}

export type Line = RunLine | FigureLine | TroubleLine | EndLine;

export function lineOf(figure: Figure): FigureLine {
  const { goal, value } = figure;
  return { kind: 'figure', ...figure, ...(goal === undefined ? {} : { met: value <= goal }) };
}

/** For people, for programs, for a page. */
export const formats: Readonly<
  Record<'text' | 'json' | 'markdown', (result: readonly Line[]) => string>
> = {
  text: (result) => lines(result.flatMap(textOf)),
  json: (result) => lines(result.map((line) => JSON.stringify(line))),
  markdown: (result) => lines(result.flatMap(markdownOf)),
};

function textOf(line: Line): string[] {
  switch (line.kind) {
    case 'machine':
      return [...heading(line), `rounds: ${line.rounds}`];
    case 'figure': {
      const { benchmark, name, value, unit, goal } = line;
      const verdict = verdictOf(line);
      return [
        [
          benchmark.padEnd(10),
          `${name}: ${withUnit(value, unit)}${range(line)}`,
          ...(goal === undefined ? [] : [`goal ≤ ${withUnit(goal, unit)}: ${verdict}`]),
        ].join('  '),
      ];
    }
    case 'end':
      return [endLine(line.load)];
    case 'skipped':
    case 'failed':
    case 'wrong':
      return [`${line.benchmark.padEnd(10)}  ${line.kind}: ${line.message}`];
  }
}

function markdownOf(line: Line): string[] {
  switch (line.kind) {
    case 'machine':
      return [
        ...heading(line).map((each) => `- ${each}`),
        `- \`${line.command} --markdown --rounds ${line.rounds}\``,
        '',
        ...tableHead,
      ];
    case 'figure':
      return [rowOf(line)];
    case 'end':
      return ['', endLine(line.load)];
    case 'skipped':
    case 'failed':
    case 'wrong':
      return [
        `| ${line.benchmark}: ${line.kind}: ${line.message.replaceAll('|', '\\|')} | | | | | | |`,
      ];
  }
}

export const tableHead: readonly string[] = [
  '| | median | p95 | min to max | n | goal | |',
  '| --- | --: | --: | --- | --: | --: | --- |',
];

export function rowOf(figure: Figure): string {
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
}

export function heading(run: RunLine): string[] {
  const warning = loadWarning(run);
  return [
    ...machineLines(run, run.stored),
    ...(warning === undefined ? [] : [`Warning: ${warning}`]),
    ...run.notes,
  ];
}

/** A machine that was quiet at the start need not have stayed so. */
function endLine(load: number): string {
  return `load at the end: ${load.toFixed(2)}`;
}

function range({ spread: { count, min, p95, max } }: Figure): string {
  if (count === 1) return ' (n 1)';
  return ` (p95 ${digits(p95)}, ${digits(min)} to ${digits(max)}, n ${count})`;
}

function lines(all: readonly string[]): string {
  return all.map((line) => `${line}\n`).join('');
}
