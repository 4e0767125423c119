import { readFileSync } from 'node:fs';
import * as testing from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as client from '../src/index.ts';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const examples = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code as string);
const modules: Readonly<Record<string, object>> = {
  '@incumbent/zookeeper': client,
  '@incumbent/zookeeper-testing': testing,
};

let fake: testing.FakeZooKeeper;
let shared: client.ZooKeeper;
beforeAll(async () => {
  fake = await testing.FakeZooKeeper.start();
});
afterAll(async () => {
  await shared?.close();
  await fake.close();
});

/** Runs an example unchanged. All but the first share a client, as they do on the page. */
async function run(code: string): Promise<string[]> {
  const printed: string[] = [];
  const body = code
    .replaceAll('zk://localhost:2181', fake.connectionString)
    .replace(/^import (\{[^}]*\}) from '([^']+)';$/gm, "const $1 = modules['$2'];");
  expect(body).not.toContain('import ');
  const execute = new Function(
    'modules',
    'console',
    'client',
    'connect',
    `return (async () => { { ${body} } })();`,
  );
  const log = (...parts: unknown[]) => printed.push(parts.map(String).join(' '));
  const given = body.includes('const client =') ? undefined : shared;
  await execute(modules, { log }, given, client.connect);
  return printed;
}

describe('every example of the README', () => {
  it('is found', () => expect(examples.length).toBeGreaterThanOrEqual(8));

  // In their order, because they build on each other.
  it.each(examples.map((code, i) => [i, code]))('example %i runs', async (i, code) => {
    if (i === 1) shared = await client.connect(`${fake.connectionString}/app`);
    const printed = await run(code as string);
    if (i === 0) expect(printed).toEqual(['v1', 'changed']);
    if ((code as string).includes('error.index')) expect(printed).toContain('1 true');
    if ((code as string).includes('addWatch')) expect(printed).toEqual(['changed /order/items']);
  });
});
