// Code of the pages of docs/coming-from runs on a fake, and prints what its comments say.
import * as client from '@incumbent/zookeeper';
import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { expect, it, onTestFinished } from 'vitest';
import * as backend from '../src/backends/zookeeper/index.ts';
import * as incumbent from '../src/index.ts';
import { readPage } from './support/coming-from.ts';

const modules = { ...client, ...incumbent, ...backend };

/** The examples below a heading of the third level. The first one of a page has no end, or no peer. */
function examplesOf(system: string): readonly string[] {
  const { text } = readPage(system);
  const sections = text.slice(text.indexOf('\n### '));
  return [...sections.matchAll(/^```ts\n(.*?)^```$/gms)]
    .map(([, code]) => code as string)
    .filter((code) => !code.includes('startZooKeeper'))
    .map((code) => code.replaceAll(/^import .*;\n/gm, ''));
}

it.each([
  [
    'zookeeper-cpp',
    [
      ...['one false', 'NO_NODE', '/job-0000000001', '1 NO_NODE would-have-succeeded'],
      ...['0 children-changed', 'created /mine/part'],
    ],
  ],
  ['zkelection', ['10 1', 'true', 'true', '/app/limit 11', '/app/owner node-7', '2']],
])('the code of %s.md prints what it says', async (system, expected) => {
  const fake = await FakeZooKeeper.start({ realTime: true });
  onTestFinished(() => fake.close());
  const examples = examplesOf(system);
  expect(examples).not.toEqual([]);
  const code = examples.join('').replaceAll(/zk:\/\/zk1[^']*/g, fake.connectionString);
  const printed: string[] = [];
  const log = (...parts: unknown[]) => printed.push(parts.map(String).join(' '));
  const shared = await client.connect(fake.connectionString);
  onTestFinished(() => shared.close());
  const names = Object.keys(modules);
  const execute = new Function(
    ...['client', 'console', ...names],
    `return (async () => { ${code} })();`,
  );
  await execute(shared, { log }, ...names.map((name) => modules[name as keyof typeof modules]));
  // The children of a node come in no order.
  expect(printed.toSorted()).toEqual(expected.toSorted());
  const comments = [...code.matchAll(/console\.log\(.*\/\/ (.*)$/gm)].map(([, said]) => said);
  for (const said of comments) {
    expect(printed).toContain((said as string).split(':')[0]);
  }
});
