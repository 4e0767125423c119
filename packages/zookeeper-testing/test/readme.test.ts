import { readFileSync } from 'node:fs';
import * as client from '@incumbent/zookeeper';
import { expect, test } from 'vitest';
import * as testing from '../src/index.ts';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const examples = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code!);
const modules: Readonly<Record<string, object>> = {
  '@incumbent/zookeeper': client,
  '@incumbent/zookeeper-testing': testing,
};

test('the first example of the README, which needs no Java, runs', async () => {
  expect(examples.length).toBeGreaterThanOrEqual(2);
  const body = examples[0]!.replace(
    /^import (\{[^}]*\}) from '([^']+)';$/gm,
    "const $1 = modules['$2'];",
  );
  expect(body).toContain('FakeZooKeeper.start()');
  await new Function('modules', `return (async () => { ${body} })();`)(modules);
});

test('the README has the options of startZooKeeper() that it explains', () => {
  const options = readFileSync(new URL('../src/server/options.ts', import.meta.url), 'utf8');
  const own = readFileSync(new URL('../src/server/start-zookeeper.ts', import.meta.url), 'utf8');
  const rows = [...readme.matchAll(/^\| (`\w+`(?:, `\w+`)*) \|/gm)].map(([, names]) => names!);
  const names = rows.flatMap((row) => [...row.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
  expect(names.length).toBeGreaterThan(5);
  for (const name of names) expect(`${options}${own}`).toContain(`readonly ${name}?:`);
});
