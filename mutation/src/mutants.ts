/** The mutants of a source, and the names that they keep when lines move. */
import type { Change, Mutation, Operator } from './operators.ts';
import { mutationsOf } from './operators.ts';
import { parseSource, placeOf, rangeOf, walk } from './syntax.ts';

export interface Mutant {
  /** `file | function | operator | original → replacement`, and a number if there are several. */
  readonly id: string;
  readonly file: string;
  readonly line: number;
  readonly operator: Operator;
  readonly original: string;
  readonly replacement: string;
  readonly changes: readonly Change[];
}

/** Longer texts are cut in the middle of what is shown, and so in the id. */
const mostShown = 100;

export function mutantsOf(file: string, source: string): Mutant[] {
  const found: Mutant[] = [];
  const times = new Map<string, number>();
  for (const visit of walk(parseSource(source, file))) {
    for (const mutation of mutationsOf(visit, source)) {
      const place = placeOf(visit.ancestors);
      const name = `${file} | ${place} | ${mutation.operator} | ${describe(mutation)}`;
      const count = (times.get(name) ?? 0) + 1;
      times.set(name, count);
      found.push({
        id: count === 1 ? name : `${name} | ${count}`,
        file,
        line: source.slice(0, rangeOf(visit.node).start).split('\n').length,
        ...mutation,
      });
    }
  }
  return found;
}

export function describe({ original, replacement }: Mutation): string {
  return replacement === ''
    ? `${shown(original)} → nothing`
    : `${shown(original)} → ${shown(replacement)}`;
}

function shown(text: string): string {
  const line = text.replace(/\s+/g, ' ');
  if (line.length <= mostShown) return line;
  const half = mostShown / 2 - 2;
  return `${line.slice(0, half)} … ${line.slice(-half)}`;
}
