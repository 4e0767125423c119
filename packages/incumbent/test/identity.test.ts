/** The ids of a process whose copy has the same state of the random generator. */
import { startupSnapshot } from 'node:v8';
import { afterEach, expect, test, vi } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import { uniqueId } from '../src/base/identity.ts';
import { createElection, MisuseError } from '../src/index.ts';

vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof import('node:crypto')>();
  return {
    ...crypto,
    // As two copies draw them.
    randomBytes: (size: number) => Buffer.alloc(size, 7),
    randomUUID: (options?: { readonly disableEntropyCache?: boolean }) =>
      options?.disableEntropyCache === true ? crypto.randomUUID(options) : 'from the cache',
  };
});

afterEach(() => {
  vi.restoreAllMocks();
});

test('two copies that draw the same random bytes send different nonces', () => {
  const nonces = new Set(Array.from({ length: 1_000 }, () => uniqueId()));
  expect(nonces.size).toBe(1_000);
  for (const nonce of nonces) expect(nonce).toMatch(/^[A-Za-z0-9_-]{16}$/);
});

test('an incarnation does not come from a cache that a copy has too', async () => {
  await using election = createElection({ name: 'jobs', backend: memory() });
  await using _term = await election.campaign();
  const { leader } = await election.leader();
  expect(leader?.incarnation).toMatch(/^[0-9a-f-]{36}$/);
});

test('createElection refuses while a startup snapshot is built, and says what to do', () => {
  const backend = memory();
  // Node 20 says 1.
  for (const yes of [true, 1 as unknown as boolean]) {
    vi.spyOn(startupSnapshot, 'isBuildingSnapshot').mockReturnValue(yes);
    const make = () => createElection({ name: 'jobs', backend });
    expect(make).toThrow(MisuseError);
    expect(make).toThrow(/setDeserializeMainFunction/);
  }
  // And not in a process that has started from one.
  vi.spyOn(startupSnapshot, 'isBuildingSnapshot').mockReturnValue(0 as unknown as boolean);
  expect(createElection({ name: 'jobs', backend }).name).toBe('jobs');
});
