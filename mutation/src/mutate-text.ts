/** The text of one mutant, and the text in which all mutants stand behind a switch. */
import type { Change } from './operators.ts';
import type { Range } from './syntax.ts';

/** @param changes of one mutant: none overlaps another */
export function applied(source: string, changes: readonly Change[]): string {
  let text = source;
  for (const change of [...changes].sort((a, b) => b.range.start - a.range.start)) {
    const { start, end } = change.range;
    text = text.slice(0, start) + changedText(change) + text.slice(end);
  }
  return text;
}

function changedText(change: Change): string {
  if (change.kind === 'expression') return `(${change.text})`;
  return change.kind === 'omit-statement' ? '{}' : '...{}';
}

export interface Numbered {
  readonly number: number;
  readonly changes: readonly Change[];
}

/**
 * A source that behaves as `number` says once `isActive(number)` of the module `switchUrl` is true.
 * Lines stay where they are. Types are not kept: it is compiled without checks.
 */
export function switched(source: string, mutants: readonly Numbered[], switchUrl: string): string {
  const places = new Map<
    string,
    { range: Range; kind: Change['kind']; choices: [number, string][] }
  >();
  for (const { number, changes } of mutants) {
    for (const change of changes) {
      const { range, kind } = change;
      const key = `${range.start}-${range.end}-${kind}`;
      const place = places.get(key) ?? { range, kind, choices: [] };
      places.set(key, place);
      place.choices.push([number, kind === 'expression' ? change.text : '']);
    }
  }
  const insertions: { at: number; text: string; isEnd: boolean; size: number; rank: number }[] = [];
  for (const { range, kind, choices } of places.values()) {
    const [before, after] = wrapping(kind, choices);
    const size = range.end - range.start;
    // Of two that span the same text the statement or property is outside of the expression.
    const rank = kind === 'expression' ? 1 : 0;
    insertions.push({ at: range.start, text: before, isEnd: false, size, rank });
    insertions.push({ at: range.end, text: after, isEnd: true, size, rank });
  }
  insertions.sort(
    (a, b) =>
      a.at - b.at ||
      Number(b.isEnd) - Number(a.isEnd) ||
      (a.isEnd ? a.size - b.size || b.rank - a.rank : b.size - a.size || a.rank - b.rank),
  );
  let text = `import { isActive as $mutant } from ${JSON.stringify(switchUrl)}; `;
  let from = 0;
  for (const insertion of insertions) {
    text += source.slice(from, insertion.at) + insertion.text;
    from = insertion.at;
  }
  return text + source.slice(from);
}

function wrapping(kind: Change['kind'], choices: readonly [number, string][]): [string, string] {
  const isAny = choices.map(([number]) => `$mutant(${number})`).join(' || ');
  switch (kind) {
    case 'expression': {
      const choose = choices.map(([number, text]) => `$mutant(${number}) ? (${flat(text)}) : `);
      return [`(${choose.join('')}(`, '))'];
    }
    case 'omit-statement':
      return [`{ if (!(${isAny})) { `, ' } }'];
    case 'omit-property':
      return [`...(${isAny} ? {} : { `, ' })'];
  }
}

/** On one line, if no comment or template needs the lines. */
function flat(text: string): string {
  return /\/\/|`/.test(text) ? text : text.replaceAll('\n', ' ');
}
