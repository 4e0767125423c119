/** `docs/evidence/benchmarks.md`, made of the results that are kept: charts first, then the figures. */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { ResultLine } from './kept-results.ts';
import { keptResults } from './kept-results.ts';
import { sectionOf } from './page-section.ts';
import { commandOf, subjects } from './subject.ts';
import { zooKeeperSectionOf } from './zookeeper/page-section.ts';

const page = new URL('../../docs/evidence/benchmarks.md', import.meta.url);
const begin = '<!-- results: begin -->';
const end = '<!-- results: end -->';

/** @returns the path of the page. Its text before and after the results stays. */
export async function writePage(): Promise<string> {
  const text = await readFile(page, 'utf8');
  await writeFile(page, withResults(text, keptResults));
  return fileURLToPath(page);
}

/** @throws Error when the page does not say where the results stand */
export function withResults(
  text: string,
  resultsOf: (subject: string) => readonly ResultLine[] | undefined,
): string {
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from === -1 || to < from) throw new Error(`the page has no "${begin}" before an "${end}"`);
  const sections = Object.entries(subjects).map(([subject, { about }]) => {
    const title = `## ${about.charAt(0).toUpperCase()}${about.slice(1)} {#${subject}}`;
    const result = resultsOf(subject);
    return [title, '', ...(result === undefined ? notMeasured(subject) : shown(subject, result))];
  });
  const between = sections.map((lines) => lines.join('\n').trimEnd()).join('\n\n');
  return `${text.slice(0, from)}${begin}\n\n${between}\n\n${text.slice(to)}`;
}

function shown(subject: string, result: readonly ResultLine[]): string[] {
  return subject === 'zookeeper' ? zooKeeperSectionOf(result) : sectionOf(result);
}

function notMeasured(subject: string): string[] {
  return [`No results are kept. \`${commandOf(subject)} --save\` measures and keeps them.`];
}
