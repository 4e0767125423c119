import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { filesOf, groupNames } from '../src/groups.ts';
import { mutantsOf } from '../src/mutants.ts';
import { applied, switched } from '../src/mutate-text.ts';
import { parseSource } from '../src/syntax.ts';

const root = resolve(import.meta.dirname, '../..');

/** Each kind of change at least once, nested and side by side, with braces left out. */
const source = `
  const log = [];
  const note = (a, b) => { log.push(a, b); return a; };
  const low = Math.min(a, b) - 1;
  if (a < b && (c || a !== 2)) note(a, b);
  else if (!c) note(b, low);
  for (let i = 0; i < 2; i += 1) if (i > a) note(i, c);
  const copy = { ...{ low: 0, a: 0 }, low, a: note(c ?? 7, a) };
  return [log, copy, c ? a : b, !c, -a + b * 2 ** 2];
`;

function run(body: string, inputs: readonly unknown[]): string {
  try {
    return JSON.stringify(new Function('a', 'b', 'c', '$mutant', body)(...inputs));
  } catch (error) {
    return String(error);
  }
}

test('the text with all switches does what each mutant does, and what the code does', () => {
  const file = `function f(a, b, c) {${source}}`;
  const mutants = mutantsOf('a.ts', file);
  const body = (text: string) => `${text.replace(/^import .*?; /, '')}\nreturn f(a, b, c);`;
  const all = switched(
    file,
    mutants.map(({ changes }, number) => ({ number, changes })),
    './switch.js',
  );
  let different = 0;
  for (const inputs of [
    [1, 2, true],
    [2, 1, false],
    [0, 0, undefined],
    [3, 3, 0],
  ]) {
    expect(run(body(all), [...inputs, () => false])).toBe(run(body(file), inputs));
    for (const [number, { changes }] of mutants.entries()) {
      const isActive = (asked: number) => asked === number;
      const mutated = run(body(applied(file, changes)), inputs);
      expect(run(body(all), [...inputs, isActive])).toBe(mutated);
      if (mutated !== run(body(file), inputs)) different += 1;
    }
  }
  expect(mutants.length).toBeGreaterThan(40);
  expect(different).toBeGreaterThan(80);
});

test.each(groupNames)('%s: every mutant has an id of its own, and can be switched on', (group) => {
  const ids = new Set<string>();
  let count = 0;
  for (const file of filesOf(group, root)) {
    const text = readFileSync(join(root, file), 'utf8');
    const mutants = mutantsOf(file, text);
    for (const { id } of mutants) ids.add(id);
    count += mutants.length;
    const numbered = mutants.map(({ changes }, number) => ({ number, changes }));
    const all = switched(text, numbered, './switch.js');
    expect(() => parseSource(all, file)).not.toThrow();
    expect(all.split('\n').length).toBeGreaterThanOrEqual(text.split('\n').length);
  }
  expect(ids.size).toBe(count);
  expect(count).toBeGreaterThan(100);
});
