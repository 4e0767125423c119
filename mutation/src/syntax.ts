/** The syntax tree of a TypeScript source, as far as mutation looks at it. */
import { parse } from '@babel/parser';
import type { Node } from '@babel/types';

export interface Visit {
  readonly node: Node;
  /** From the file down to the node's parent. */
  readonly ancestors: readonly Node[];
  /** The property of the parent that holds the node. */
  readonly key: string;
}

export function parseSource(text: string, file: string): Node {
  return parse(text, { sourceType: 'module', sourceFilename: file, plugins: ['typescript'] });
}

/** Every node, parents before children, in the order of the text. Types are left out. */
export function* walk(
  node: Node,
  ancestors: readonly Node[] = [],
  key: string = '',
): Generator<Visit> {
  yield { node, ancestors, key };
  const below = [...ancestors, node];
  for (const { child, childKey } of childrenOf(node)) yield* walk(child, below, childKey);
}

function childrenOf(node: Node): { readonly child: Node; readonly childKey: string }[] {
  const found: { child: Node; childKey: string }[] = [];
  for (const [childKey, value] of Object.entries(node)) {
    if (childKey.endsWith('Comments') || childKey === 'loc' || childKey === 'extra') continue;
    if (childKey === 'key' && !('computed' in node && node.computed)) continue;
    for (const child of Array.isArray(value) ? value : [value]) {
      if (isNode(child) && !isType(child)) found.push({ child, childKey });
    }
  }
  return found.sort((a, b) => rangeOf(a.child).start - rangeOf(b.child).start);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
}

/**
 * True for nodes that the compiler erases. The nodes of `as`, `satisfies` and `!` do not count as
 * types, because they hold an expression.
 */
function isType({ type }: Node): boolean {
  if (!type.startsWith('TS')) return false;
  return !['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression'].includes(type);
}

export interface Range {
  readonly start: number;
  readonly end: number;
}

export function rangeOf({ start, end }: Node): Range {
  if (typeof start !== 'number' || typeof end !== 'number') throw new Error('a node has no place');
  return { start, end };
}

/** The names of what a node stands in: `LeaseRace.#attempt`, or `(module)`. */
export function placeOf(ancestors: readonly Node[]): string {
  const names: string[] = [];
  for (const node of ancestors) {
    if (node.type === 'ClassDeclaration' || node.type === 'FunctionDeclaration') {
      if (node.id) names.push(node.id.name);
    } else if (
      node.type === 'ClassMethod' ||
      node.type === 'ClassPrivateMethod' ||
      node.type === 'ClassProperty' ||
      node.type === 'ClassPrivateProperty' ||
      node.type === 'ObjectMethod'
    ) {
      names.push(keyName(node.key));
    } else if (node.type === 'VariableDeclarator' && node.id.type === 'Identifier') {
      if (isFunction(node.init)) names.push(node.id.name);
    } else if (node.type === 'ObjectProperty' && isFunction(node.value)) {
      names.push(keyName(node.key));
    }
  }
  return names.length === 0 ? '(module)' : names.join('.');
}

function keyName(key: Node): string {
  if (key.type === 'Identifier') return key.name;
  if (key.type === 'PrivateName') return `#${key.id.name}`;
  if (key.type === 'StringLiteral') return key.value;
  return '[computed]';
}

export function isFunction(node: Node | null | undefined): boolean {
  return node?.type === 'ArrowFunctionExpression' || node?.type === 'FunctionExpression';
}
