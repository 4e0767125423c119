import { expect, test } from 'vitest';
import { describe, mutantsOf } from '../src/mutants.ts';

/** The mutations of a statement in a function, without the operator's name. */
function mutationsIn(statements: string, operator: string): string[] {
  return mutantsOf('a.ts', `function f(a, b, c) {\n${statements}\n}`)
    .filter((mutant) => mutant.operator === operator)
    .map(describe);
}

test.each([
  ['condition', 'if (a) b();', ['a → true', 'a → false']],
  ['condition', 'c(a ? 1 : 2);', ['a → true', 'a → false']],
  ['condition', 'while (a) b();', ['a → false']],
  ['condition', 'for (;;) b();', []],
  ['condition', 'return a && b;', ['a && b → false', 'a → true', 'b → true']],
  ['condition', 'return a || b;', ['a || b → true', 'a → false', 'b → false']],
  ['condition', 'return a && b && c;', ['a && b && c → false', 'a → true', 'b → true', 'c → true']],
  [
    'condition',
    'return a && (b || c);',
    ['a && (b || c) → false', 'a → true', 'b || c → true', 'b → false', 'c → false'],
  ],
  ['condition', 'switch (a) { case b: }', []],
  ['negation', 'return !a;', ['!a → a']],
  ['negation', 'if (!a) b();', []],
  ['equality', 'return a === b;', ['a === b → a !== b']],
  ['equality', 'if (a === b) c();', []],
  ['bound', 'return a < b;', ['a < b → a <= b']],
  ['bound', 'return (a ?? 0) >= b;', ['(a ?? 0) >= b → (a ?? 0) > b']],
  ['bound', 'return Math.min(a, b);', ['Math.min → Math.max']],
  ['default', 'return a ?? b;', ['a ?? b → a']],
  ['arithmetic', 'return a + b * c;', ['a + b * c → a - b * c', 'b * c → b / c']],
  ['arithmetic', "return 'a' + b + c;", []],
  ['arithmetic', 'return a * (b - c);', ['a * (b - c) → a / (b - c)', 'b - c → b + c']],
  ['await', 'return (async () => await (a ?? b))();', ['await (a ?? b) → (a ?? b)']],
  ['statement', 'a.b = c; b();', ['a.b = c; → nothing', 'b(); → nothing']],
  ['arguments', 'c(a, b);', ['a, b → b, a']],
  ['arguments', 'c(a, a); c(() => a, b);', []],
  ['return', 'return true;', ['true → false']],
  ['return', 'return a;', ['a → undefined']],
  ['return', 'return undefined;', []],
  ['constant', 'c(0, 1_500, 3n, true);', ['0 → 1', '1_500 → 2 * 1_500', '3n → 4n', 'true → false']],
  ['constant', 'return a > 0 || b === true;', []],
  ['property', 'c({ ...a, b, d: 1 });', ['b → nothing', 'd: 1 → nothing']],
  ['property', 'c({ b, ...a });', []],
])('%s: %s', (operator, statements, expected) => {
  expect(mutationsIn(statements, operator)).toEqual(expected);
});

test('leaves messages, assertions and types alone', () => {
  const source = [
    'import a from "b" with { type: "json" };',
    'type Few = 1 | 2;',
    'throw new RangeError(a ? "1" : String(1 + 2));',
    'assert(a > 1, "b");',
    'const text: `$' + '{1}` = `$' + '{1 + 1}`;',
    'class A { readonly b = 1 as 1 | 2; constructor(c: 3) { this.c = c; } }',
  ].join('\n');
  expect(mutantsOf('a.ts', source).map(describe)).toEqual(['1 → 2']);
});

test('keeps the ids of mutants when lines move, and numbers those that are alike', () => {
  const method = 'class A { async #b(c) { if (c) return; if (c) this.d(); } }';
  const ids = mutantsOf('a.ts', method).map(({ id }) => id);
  expect(mutantsOf('a.ts', `// A comment.\n\n${method}`).map(({ id }) => id)).toEqual(ids);
  expect(ids).toEqual([
    'a.ts | A.#b | condition | c → true',
    'a.ts | A.#b | condition | c → false',
    'a.ts | A.#b | condition | c → true | 2',
    'a.ts | A.#b | condition | c → false | 2',
    'a.ts | A.#b | statement | this.d(); → nothing',
  ]);
});

test('names functions by what they are assigned to', () => {
  const source = 'const f = () => 1; const o = { g: () => [2] }; const n = 3;';
  expect(mutantsOf('a.ts', source).map(({ id }) => id.split(' | ')[1])).toEqual([
    'f',
    'g',
    '(module)',
  ]);
});
