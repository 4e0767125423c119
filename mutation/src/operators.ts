/**
 * The ways to break the sources on purpose: each operator looks at one node and names the text that
 * replaces it. A mutant must be a mistake that a person could make and a test should notice. So
 * texts of messages, types and logging are left alone.
 */
import type {
  BinaryExpression,
  CallExpression,
  LogicalExpression,
  NewExpression,
  Node,
} from '@babel/types';
import type { Range, Visit } from './syntax.ts';
import { isFunction, rangeOf } from './syntax.ts';

/** The kinds of mutants, and what each of them does. */
export const operators = {
  condition:
    'a condition always holds, or never; of `a && b` and `a || b` one side says nothing, or the whole is decided',
  negation: '`!x` becomes `x`',
  equality: '`===` becomes `!==`, and the other way round',
  bound: '`<` becomes `<=`, `>=` becomes `>`, and so on; `Math.min` becomes `Math.max`',
  default: '`a ?? b` becomes `a`',
  arithmetic: '`+` becomes `-`, `*` becomes `/`, and the other way round',
  await: '`await x` becomes `x`',
  statement: 'a statement is left out',
  arguments: 'two neighbouring arguments change places',
  return: 'another value is returned',
  constant: 'a number is one more, or twice as large; `true` becomes `false`',
  property: 'a property that replaces that of a copied object is left out',
} as const;

export type Operator = keyof typeof operators;

/** Other text for a part of the source. An expression stays one, a statement is left out. */
export type Change =
  | { readonly kind: 'expression'; readonly range: Range; readonly text: string }
  | { readonly kind: 'omit-statement'; readonly range: Range }
  /** Of an object literal that something was spread into before. */
  | { readonly kind: 'omit-property'; readonly range: Range };

export interface Mutation {
  readonly operator: Operator;
  /** The place that a reader is shown. */
  readonly original: string;
  readonly replacement: string;
  readonly changes: readonly Change[];
}

const swaps: Readonly<Record<string, readonly [Operator, string]>> = {
  '===': ['equality', '!=='],
  '!==': ['equality', '==='],
  '<': ['bound', '<='],
  '<=': ['bound', '<'],
  '>': ['bound', '>='],
  '>=': ['bound', '>'],
  '+': ['arithmetic', '-'],
  '-': ['arithmetic', '+'],
  '*': ['arithmetic', '/'],
  '/': ['arithmetic', '*'],
  '%': ['arithmetic', '*'],
};

export function mutationsOf(visit: Visit, source: string): Mutation[] {
  if (isLeftAlone(visit)) return [];
  const { node } = visit;
  const forced = forcedValues(visit).map((value) => replaced('condition', node, value, source));
  const find = byType[node.type] as Find<Node['type']> | undefined;
  return [...forced, ...(find?.(node, visit, source) ?? [])];
}

type Find<Type extends Node['type']> = (
  node: Extract<Node, { type: Type }>,
  visit: Visit,
  source: string,
) => readonly Mutation[];

const byType: { readonly [Type in Node['type']]?: Find<Type> } = {
  UnaryExpression: (node, visit, source) =>
    node.operator === '!' && forcedValues(visit).length === 0
      ? [replaced('negation', node, textOf(node, source).slice(1), source)]
      : [],
  BinaryExpression: swappedOperator,
  LogicalExpression(node, _visit, source) {
    if (node.operator !== '??') return [];
    const left = source.slice(rangeOf(node).start, operatorAt(node, source)).trimEnd();
    return [replaced('default', node, left, source)];
  },
  CallExpression: swappedArguments,
  NewExpression: swappedArguments,
  AwaitExpression: (node, _visit, source) => [
    replaced('await', node, textOf(node, source).replace(/^await\s+/, ''), source),
  ],
  ExpressionStatement: (node, visit, source) =>
    copiesParameter(visit) ? [] : [omitted('statement', node, source)],
  ReturnStatement(node, _visit, source) {
    const other = node.argument ? otherResult(node.argument) : undefined;
    if (!node.argument || other === undefined) return [];
    return [replaced('return', node.argument, other, source)];
  },
  NumericLiteral(node, visit, source) {
    const text = textOf(node, source);
    return shifted(node, visit, node.value < 10 ? String(node.value + 1) : `2 * ${text}`, source);
  },
  BigIntLiteral: (node, visit, source) =>
    shifted(node, visit, `${BigInt(node.value) + 1n}n`, source),
  BooleanLiteral: (node, visit, source) =>
    visit.ancestors.at(-1)?.type === 'ReturnStatement'
      ? []
      : shifted(node, visit, node.value ? 'false' : 'true', source),
  ObjectProperty: (node, visit, source) =>
    replacesSpread(visit) ? [omitted('property', node, source)] : [],
};

function textOf(node: Node, source: string): string {
  return source.slice(rangeOf(node).start, rangeOf(node).end);
}

function replaced(operator: Operator, node: Node, text: string, source: string): Mutation {
  const change = { kind: 'expression', range: rangeOf(node), text } as const;
  return { operator, original: textOf(node, source), replacement: text, changes: [change] };
}

function omitted(operator: 'statement' | 'property', node: Node, source: string): Mutation {
  const change = { kind: `omit-${operator}`, range: rangeOf(node) } as const;
  return { operator, original: textOf(node, source), replacement: '', changes: [change] };
}

/** Messages of errors, assertions of what cannot be, and what only watches the code. */
function isLeftAlone({ node, ancestors }: Visit): boolean {
  return [...ancestors, node].some(
    (each) =>
      (each.type === 'NewExpression' && /Error$/.test(calleeName(each.callee))) ||
      (each.type === 'CallExpression' && /^assert/.test(calleeName(each.callee))) ||
      (each.type === 'ExpressionStatement' &&
        each.expression.type === 'CallExpression' &&
        /^(assert|super$)/.test(calleeName(each.expression.callee))) ||
      each.type === 'TemplateLiteral' ||
      each.type === 'ImportDeclaration',
  );
}

function calleeName(callee: Node): string {
  if (callee.type === 'Identifier') return callee.name;
  if (callee.type === 'Super') return 'super';
  if (callee.type === 'MemberExpression') return calleeName(callee.object);
  return '';
}

/**
 * The values that a condition may be forced to. Negating it, or swapping `&&` for `||`, would add
 * nothing: a test that tells one of these apart from the code tells those apart too.
 */
function forcedValues({ node, ancestors, key }: Visit): readonly ('true' | 'false')[] {
  const parent = ancestors.at(-1);
  if (parent === undefined || node.type === 'BooleanLiteral') return [];
  if (parent.type === 'LogicalExpression' && parent.operator !== '??') {
    const neutral = parent.operator === '&&' ? 'true' : 'false';
    if (node.type !== 'LogicalExpression' || node.operator === '??') return [neutral];
    // `a` and `b` of `a && b && c` are seen one by one.
    return node.operator === parent.operator ? [] : [node.operator === '&&' ? 'false' : 'true'];
  }
  if (node.type === 'LogicalExpression' && node.operator !== '??') {
    return [node.operator === '&&' ? 'false' : 'true'];
  }
  if (key !== 'test') return [];
  // A loop that never ends is found by every test that reaches it.
  const isLoop = ['ForStatement', 'WhileStatement', 'DoWhileStatement'].includes(parent.type);
  return isLoop ? ['false'] : parent.type === 'SwitchCase' ? [] : ['true', 'false'];
}

function isText(node: Node): boolean {
  if (node.type === 'BinaryExpression') return isText(node.left) || isText(node.right);
  return node.type === 'StringLiteral' || node.type === 'TemplateLiteral';
}

/** @param text another constant; one that is compared is left to the comparison */
function shifted(node: Node, { ancestors }: Visit, text: string, source: string): Mutation[] {
  const parent = ancestors.at(-1);
  const isCompared =
    parent?.type === 'BinaryExpression' && /^([<>]=?|[!=]==)$/.test(parent.operator);
  return isCompared ? [] : [replaced('constant', node, text, source)];
}

/** Where the operator stands: parentheses beside it belong to neither side. */
function operatorAt(node: BinaryExpression | LogicalExpression, source: string): number {
  const { end } = rangeOf(node.left);
  return end + source.slice(end, rangeOf(node.right).start).indexOf(node.operator);
}

function swappedOperator(node: BinaryExpression, visit: Visit, source: string): Mutation[] {
  const [operator, other] = swaps[node.operator] ?? [];
  if (operator === undefined || isText(node)) return [];
  // A condition that is forced says more than one that is negated.
  if (operator === 'equality' && forcedValues(visit).length > 0) return [];
  const { start, end } = rangeOf(node);
  const at = operatorAt(node, source);
  const after = source.slice(at + node.operator.length, end);
  return [replaced(operator, node, `${source.slice(start, at)}${other}${after}`, source)];
}

/** @returns undefined where other operators change the result already */
function otherResult(node: Node): string | undefined {
  if (node.type === 'BooleanLiteral') return node.value ? 'false' : 'true';
  if (node.type === 'Identifier' && node.name === 'undefined') return undefined;
  return results.has(node.type) ? 'undefined' : undefined;
}

const results: ReadonlySet<string> = new Set([
  'Identifier',
  'CallExpression',
  'NewExpression',
  'MemberExpression',
  'AwaitExpression',
  'ObjectExpression',
  'ArrayExpression',
  'StringLiteral',
]);

/** The first two neighbours that another order could be meant for. */
function swappedArguments(
  { callee, arguments: given }: CallExpression | NewExpression,
  _visit: Visit,
  source: string,
): Mutation[] {
  const text = (node: Node) => textOf(node, source);
  const other = { 'Math.min': 'Math.max', 'Math.max': 'Math.min' }[text(callee)];
  if (other !== undefined) return [replaced('bound', callee, other, source)];
  for (const [index, first] of given.entries()) {
    const second = given[index + 1];
    if (second === undefined) return [];
    if (![first, second].every(isPlain) || text(first) === text(second)) continue;
    return [
      {
        operator: 'arguments',
        original: `${text(first)}, ${text(second)}`,
        replacement: `${text(second)}, ${text(first)}`,
        changes: [
          { kind: 'expression', range: rangeOf(first), text: text(second) },
          { kind: 'expression', range: rangeOf(second), text: text(first) },
        ],
      },
    ];
  }
  return [];
}

function isPlain(node: Node): boolean {
  return (
    !isFunction(node) && !isText(node) && !['SpreadElement', 'ObjectExpression'].includes(node.type)
  );
}

/** `this.#a = a` in a constructor: without it nothing works at all. */
function copiesParameter({ node, ancestors }: Visit): boolean {
  const method = ancestors.at(-2);
  return (
    method?.type === 'ClassMethod' &&
    method.kind === 'constructor' &&
    node.type === 'ExpressionStatement' &&
    node.expression.type === 'AssignmentExpression' &&
    ['Identifier', 'MemberExpression'].includes(node.expression.right.type)
  );
}

/** `b` in `{ ...a, b: 1 }`: without it the copied value stays. */
function replacesSpread({ node, ancestors }: Visit): boolean {
  const parent = ancestors.at(-1);
  if (parent?.type !== 'ObjectExpression') return false;
  const before = parent.properties.slice(0, parent.properties.indexOf(node as never));
  return before.some(({ type }) => type === 'SpreadElement');
}
