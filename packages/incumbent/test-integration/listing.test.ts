/** The elections of every store: which are listed, to whom, and what a damaged record does. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inParallel } from '../src/base/in-parallel.ts';
import type { Backend, ElectionSummary } from '../src/core/contest.ts';
import { createElection } from '../src/core/election.ts';
import { listingScenarios, runConformance } from '../src/testing/index.ts';
import type { ListedStore, RunningListedStore } from './support/listed-stores.ts';
import { listedStores } from './support/listed-stores.ts';

/** `INCUMBENT_LIST=10000`: how many elections are listed at length. Object stores have a tenth. */
const atLength = Number(process.env['INCUMBENT_LIST'] ?? 0);
const madeAtOnce = 10;
/** A thousand elections take their time on a busy disk. */
const longestMs = 300_000;

async function namesIn(backend: Backend): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const name of backend.elections()) names.push(name);
  return names.sort();
}

async function summariesIn(backend: Backend): Promise<ReadonlyMap<string, ElectionSummary>> {
  const summaries = new Map<string, ElectionSummary>();
  for await (const summary of backend.survey()) summaries.set(summary.name, summary);
  return summaries;
}

/** An operator's change is the first record of an election. */
async function make(backend: Backend, name: string): Promise<void> {
  const isSession = backend.limits?.sessionTimeoutMs !== undefined;
  const election = createElection({ name, backend, ...(isSession ? {} : { lease: 300_000 }) });
  try {
    await election.drain('nobody', new Date(Date.now() + 3_600_000));
  } finally {
    await election.close();
  }
}

for (const kind of listedStores) {
  describe.skipIf(kind.missing !== undefined)(`the elections of ${kind.name}`, () => {
    let store: RunningListedStore;

    beforeAll(async () => {
      store = await kind.start();
    });

    afterAll(() => store?.close());

    test('things of others are left out, and an election with a damaged record is named', async () => {
      await make(store.backend, 'sound');
      await make(store.backend, 'damaged');
      await store.strew();
      await store.damage('damaged');
      expect(await namesIn(store.backend)).toEqual(['damaged', 'sound']);
      const summaries = await summariesIn(store.backend);
      expect([...summaries.keys()].sort()).toEqual(['damaged', 'sound']);
      expect(summaries.get('sound')).toMatchObject({ view: { state: 'vacant' } });
      expect(summaries.get('damaged')).toMatchObject({
        view: { state: 'unknown', error: { code: 'RECORD_DAMAGED' } },
        history: [],
      });
    });

    for (const scenario of listingScenarios) {
      // The pages of a store are the same in all layouts and by all clients.
      if (!isFirstOfItsKind(kind) && /more elections than/.test(scenario.name)) continue;
      test(
        scenario.name,
        async () => {
          const [result] = await runConformance<Backend>([scenario], {
            open: () => store.backend,
            leaseMs: kind.leaseMs,
            timeoutMs: longestMs,
          });
          expect(result?.reason).toBeUndefined();
        },
        longestMs,
      );
    }

    test.skipIf(atLength === 0)(
      'at length: seconds and requests',
      async () => {
        const many = kind.isByRequest === true ? Math.ceil(atLength / 10) : atLength;
        const names = Array.from({ length: many }, (_, i) => `at-length-${i}`);
        await inParallel(names, madeAtOnce, (name) => make(store.backend, name));
        const report: string[] = [];
        for (const [what, list] of [
          ['names', namesIn],
          ['survey', summariesIn],
        ] as const) {
          const before = (await store.requests?.()) ?? 0;
          const beganMs = performance.now();
          const found = [...(await list(store.backend))].length;
          const seconds = ((performance.now() - beganMs) / 1_000).toFixed(2);
          const requests = ((await store.requests?.()) ?? 0) - before;
          expect(found).toBeGreaterThanOrEqual(many);
          report.push(`${what} ${seconds} s${requests > 0 ? `, ${requests} requests` : ''}`);
        }
        process.stdout.write(`${kind.name}, ${many} elections: ${report.join('; ')}\n`);
      },
      600_000,
    );

    // The last one: on some stores it takes the rights of the others away.
    test('a user that may only read lists elections', async (context) => {
      const { openReader } = store;
      if (openReader === undefined) return context.skip('this store has no users, or no other one');
      await make(store.backend, 'for-readers');
      const reader = await openReader();
      expect(await namesIn(reader)).toContain('for-readers');
      const summaries = await summariesIn(reader);
      expect(summaries.get('for-readers')).toMatchObject({ view: { state: 'vacant' } });
    });
  });
}

function isFirstOfItsKind({ name }: ListedStore): boolean {
  return !/ioredis|layout (?!incumbent)/.test(name);
}
