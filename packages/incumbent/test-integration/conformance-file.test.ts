import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { file } from '../src/backends/file/index.ts';
import { openFileLeaseStore } from '../src/backends/file/store.ts';
import type { Backend, LeaseStore } from '../src/testing/index.ts';
import { electionScenarios, leaseStoreScenarios, runConformance } from '../src/testing/index.ts';

const capabilities = { hints: true, deathProof: true, lists: true };
let directory = '';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'incumbent-conformance-'));
});

afterAll(() => rm(directory, { recursive: true, force: true }));

describe('the file store', () => {
  // It has no clock of its own: nothing to tell ages by.
  for (const scenario of leaseStoreScenarios.filter(({ needs }) => needs !== 'age')) {
    test(scenario.name, async () => {
      const [result] = await runConformance<LeaseStore>([scenario], {
        open: (election) => openFileLeaseStore(directory, election),
        capabilities,
      });
      expect(result?.reason).toBeUndefined();
    });
  }
});

describe('an election in a directory', () => {
  for (const scenario of electionScenarios) {
    test.concurrent(scenario.name, async ({ expect }) => {
      const [result] = await runConformance<Backend>([scenario], {
        open: () => file(directory),
        capabilities,
        // An operation may take a sixth of it, and every write waits for the disk.
        leaseMs: 5_000,
      });
      expect(result?.reason).toBeUndefined();
    });
  }
});
