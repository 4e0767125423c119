/** The results that are kept in `bench/results`, a file a subject: what the page of benchmarks shows. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** One of the lines that `--json` prints. */
export interface ResultLine {
  readonly kind: string;
}

export function keepResults(subject: string, lines: readonly ResultLine[]): string {
  const path = pathOf(subject);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `[\n${lines.map((line) => `  ${JSON.stringify(line)}`).join(',\n')}\n]\n`);
  return path;
}

/** @returns undefined when none are kept */
export function keptResults(subject: string): ResultLine[] | undefined {
  try {
    return JSON.parse(readFileSync(pathOf(subject), 'utf8')) as ResultLine[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The folder stands beside `src` and beside `dist`. */
function pathOf(subject: string): string {
  return fileURLToPath(new URL(`../results/${subject}.json`, import.meta.url));
}
