/** The code in this package's README does as the README says. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import * as backend from '../src/backend.ts';
import { memory } from '../src/backends/memory/index.ts';
import { createElection } from '../src/index.ts';
import type {
  ConformanceOptions,
  LeaseStore,
  Scenario,
  ScenarioResult,
} from '../src/testing/index.ts';
import { leaseStoreScenarios, runConformance, SimulatedClock } from '../src/testing/index.ts';

const text = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const blocks = [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code as string);

/** Runs a block with its imports handed in, and returns what `result` names. */
async function run(code: string, names: Readonly<Record<string, unknown>>, result = 'undefined') {
  const body = code.replaceAll(/^import .*$/gm, '').replaceAll(/^export /gm, '');
  const make = Object.getPrototypeOf(async () => {}).constructor;
  return make(...Object.keys(names), `${body}\nreturn ${result};`)(...Object.values(names));
}

const tests = blocks.filter((code) => code.includes("from 'node:test'"));

test.each(tests.map((code) => [/test\('(.*?)'/.exec(code)?.[1], code] as const))(
  'a test of the README holds: %s',
  async (_name, code) => {
    const bodies: (() => Promise<void>)[] = [];
    await run(code, {
      assert,
      test: (_title: string, body: () => Promise<void>) => bodies.push(body),
      ...{ createElection, memory, SimulatedClock },
    });
    expect(bodies).toHaveLength(1);
    await bodies[0]?.();
  },
);

test('the README shows a test with two candidates', () => {
  expect(tests.length).toBe(2);
});

/** `npm run test:packed` runs and type-checks the first example of the README, and so that of each page. */
test.each(['README.md', 'docs/start/index.md', 'docs/start/work.md'])(
  '%s begins with the example of the README, which is tried on the packed library',
  (path) => {
    const page = readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
    const first = (markdown: string) => /^```ts runnable\n.*?^```$/ms.exec(markdown)?.[0];
    expect(first(page)).toBeDefined();
    expect(first(page)).toBe(first(text));
  },
);

test('the README stands alone in the package: it links to no file of the repository', () => {
  const targets = [...text.matchAll(/\]\(([^)]+)\)|(?:src|href)="([^"]+)"/g)];
  for (const [, markdown, html] of targets) expect(markdown ?? html).toMatch(/^(https:|#)/);
});

test('the store of the README passes every scenario, on a database that knows no signals', async () => {
  const rows = new Map<string, { readonly revision: number; readonly text: string }>();
  const db = {
    async get(key: string) {
      return rows.get(key);
    },
    async compareAndSet(key: string, expected: number, next: string) {
      if ((rows.get(key)?.revision ?? 0) !== expected) return false;
      rows.set(key, { revision: expected + 1, text: next });
      return true;
    },
  };
  const clock = new SimulatedClock();
  const simulated = (
    scenarios: readonly Scenario<LeaseStore>[],
    options: ConformanceOptions<LeaseStore>,
  ) => runConformance(scenarios, { ...options, clock, wait: (ms) => clock.advance(ms) });
  const code = blocks.find((block) => block.includes('leaseBackend({')) as string;
  const results: readonly ScenarioResult[] = await run(
    code,
    { ...backend, leaseStoreScenarios, runConformance: simulated, db, console: { table() {} } },
    'results',
  );
  expect(results.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
  expect(results.filter(({ outcome }) => outcome === 'passed').length).toBeGreaterThan(3);
});
