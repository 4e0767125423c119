// The allowed imports: they go down from floor to floor, and never round in a circle. Types count.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from '@babel/parser';
import type { Node } from '@babel/types';
import { describe, expect, it } from 'vitest';

/** Which files each file imports, by paths below `src/`. */
type Imports = ReadonlyMap<string, readonly string[]>;

/** From the ground. Rooms of one floor do not know each other. */
const floors: readonly (readonly string[])[] = [
  ['base'],
  ['record'],
  ['core'],
  ['mechanisms', 'following', 'metrics'],
  ['backends', 'testing'],
  // The entries that packages import: `index.ts`, `backend.ts` and `internal.ts`.
  ['.'],
];

const roomOf = (file: string) => (file.includes('/') ? (file.split('/')[0] ?? '') : '.');
const floorOf = (room: string) => floors.findIndex((rooms) => rooms.includes(room));

function wrongArrows(imports: Imports): string[] {
  return [...imports].flatMap(([from, targets]) =>
    targets.flatMap((to) => {
      const [above, below] = [roomOf(from), roomOf(to)];
      if (floorOf(above) < 0) return [`${from} is in a room that no floor has`];
      const isDown = above === below || floorOf(above) > floorOf(below);
      return isDown ? [] : [`${from} knows ${to}, which is not below it`];
    }),
  );
}

/** Each as the files of the way round, the first one again at the end. */
function circles(imports: Imports): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): void => {
    const start = way.indexOf(file);
    if (start >= 0) found.push([...way.slice(start), file].join(' → '));
    if (start >= 0 || done.has(file)) return;
    for (const to of imports.get(file) ?? []) visit(to, [...way, file]);
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  return found;
}

/** The modules that a source imports, exports from, loads later, or names in a type. */
function specifiersOf(source: string): string[] {
  const found: string[] = [];
  const visit = (node: Node): void => {
    const { source: from, argument } = node as { source?: unknown; argument?: unknown };
    const isTyped = node.type === 'TSImportType';
    const text = (isTyped ? argument : from) as
      | { type?: string; value?: string }
      | undefined
      | null;
    if (text?.type === 'StringLiteral' && text.value !== undefined) found.push(text.value);
    if (node.type === 'CallExpression' && node.callee.type === 'Import') {
      const [first] = node.arguments;
      if (first?.type === 'StringLiteral') found.push(first.value);
    }
    for (const value of Object.values(node)) {
      for (const each of Array.isArray(value) ? value : [value]) {
        if (typeof each?.type === 'string' && 'start' in each) visit(each as Node);
      }
    }
  };
  visit(parse(source, { sourceType: 'module', plugins: ['typescript'] }).program);
  return found;
}

function importsBelow(root: string): Imports {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  return new Map(
    files.map((file) => {
      const own = specifiersOf(readFileSync(join(root, file), 'utf8'));
      const relatives = own.filter((specifier) => specifier.startsWith('.'));
      const target = (specifier: string) =>
        relative(root, join(root, dirname(file), specifier)).replaceAll('\\', '/');
      return [file.replaceAll('\\', '/'), relatives.map(target)];
    }),
  );
}

describe('the library', () => {
  const imports = importsBelow(fileURLToPath(new URL('../src', import.meta.url)));

  it('has a floor for every room, and a file for every import', () => {
    const missing = [...imports.values()].flat().filter((file) => !imports.has(file));
    expect(missing).toEqual([]);
    expect(imports.size).toBeGreaterThan(100);
  });

  it('knows downwards alone', () => {
    expect(wrongArrows(imports)).toEqual([]);
  });

  it('has no circle', () => {
    expect(circles(imports)).toEqual([]);
  });
});

describe('the rule', () => {
  it('names both files of an arrow that runs up, or to the neighbours', () => {
    const imports = new Map([
      ['base/a.ts', ['core/b.ts']],
      ['mechanisms/lease/c.ts', ['following/d.ts', 'base/a.ts']],
    ]);
    expect(wrongArrows(imports)).toEqual([
      'base/a.ts knows core/b.ts, which is not below it',
      'mechanisms/lease/c.ts knows following/d.ts, which is not below it',
    ]);
  });

  it('names the files of a circle', () => {
    const imports = new Map([
      ['core/a.ts', ['core/b.ts']],
      ['core/b.ts', ['core/c.ts']],
      ['core/c.ts', ['core/b.ts']],
    ]);
    expect(circles(imports)).toEqual(['core/b.ts → core/c.ts → core/b.ts']);
  });

  it('sees every way to import', () => {
    const source = `
      import a from './a.ts';
      import type { B } from './b.ts';
      export { c } from './c.ts';
      export type * from './d.ts';
      const e = () => import('./e.ts');
      let f: import('./f.ts').F;
      import './g.ts';`;
    expect(specifiersOf(source)).toEqual('abcdefg'.split('').map((name) => `./${name}.ts`));
  });
});
