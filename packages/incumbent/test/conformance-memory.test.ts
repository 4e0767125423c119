import { describe, expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import { emptyCell, MemoryStore } from '../src/backends/memory/store.ts';
import type { Backend, LeaseStore, ScenarioResult } from '../src/testing/index.ts';
import {
  electionScenarios,
  leaseStoreScenarios,
  listingScenarios,
  runConformance,
  SimulatedClock,
  SimulatedLeaseStore,
} from '../src/testing/index.ts';

function failures(results: readonly ScenarioResult[]): string[] {
  return results
    .filter(({ outcome }) => outcome === 'failed')
    .map(({ name, reason }) => `${name}: ${reason}`);
}

describe('the memory backend', () => {
  for (const scenario of leaseStoreScenarios) {
    if (scenario.needs === 'deathProof' || scenario.needs === 'age') continue;
    test(scenario.name, async () => {
      const clock = new SimulatedClock();
      const cells = new Map<string, ReturnType<typeof emptyCell>>();
      const results = await runConformance<LeaseStore>([scenario], {
        open(election) {
          const cell = cells.get(election) ?? emptyCell();
          cells.set(election, cell);
          return new MemoryStore(cell);
        },
        capabilities: { hints: true, lists: true },
        clock,
        wait: (ms) => clock.advance(ms),
      });
      expect(failures(results)).toEqual([]);
    });
  }

  for (const scenario of [...electionScenarios, ...listingScenarios]) {
    test(scenario.name, async () => {
      const clock = new SimulatedClock();
      const backend = memory();
      const results = await runConformance<Backend>([scenario], {
        open: () => backend,
        capabilities: { hints: true, lists: true },
        clock,
        wait: (ms) => clock.advance(ms),
      });
      expect(failures(results)).toEqual([]);
    });
  }
});

describe('the simulated store', () => {
  test('passes every scenario it can be asked', async () => {
    const clock = new SimulatedClock();
    const store = new SimulatedLeaseStore({ clock });
    const common = {
      capabilities: { hints: true, lists: true },
      clock,
      wait: (ms: number) => clock.advance(ms),
    };
    const stores = await runConformance<LeaseStore>(leaseStoreScenarios, {
      ...common,
      open: (election) => store.connect().open(election),
    });
    const elections = await runConformance<Backend>([...electionScenarios, ...listingScenarios], {
      ...common,
      open: () => store.connect().backend,
    });
    expect(failures([...stores, ...elections])).toEqual([]);
    expect(
      stores.filter(({ outcome }) => outcome === 'skipped').map(({ reason }) => reason),
    ).toEqual([
      'the backend does not offer "deathProof"',
      'the backend does not offer "deathProof"',
      'the backend does not offer "age"',
    ]);
  });
});
