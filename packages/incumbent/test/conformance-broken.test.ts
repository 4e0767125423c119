import { expect, test } from 'vitest';
import type { MemoryCell } from '../src/backends/memory/store.ts';
import { emptyCell, MemoryStore } from '../src/backends/memory/store.ts';
import { leaseBackend } from '../src/mechanisms/lease/backend.ts';
import type { Backend, LeaseStore } from '../src/testing/index.ts';
import {
  electionScenarios,
  leaseStoreScenarios,
  runConformance,
  SimulatedClock,
} from '../src/testing/index.ts';

type Cell = MemoryCell & { previous?: MemoryCell };

const capabilities = { hints: true, lists: true, deathProof: true };

/** Runs every scenario on a store that is broken in one way. @returns the names of those that fail */
async function failing(breakIt: (store: LeaseStore, cell: Cell) => LeaseStore): Promise<string[]> {
  const cells = new Map<string, Cell>();
  const results = await runConformance<LeaseStore>(leaseStoreScenarios, {
    open(election) {
      const cell = cells.get(election) ?? emptyCell();
      cells.set(election, cell);
      const store = new MemoryStore(cell);
      const whole: LeaseStore = {
        read: (signal) => store.read(signal),
        swap: (expected, next, signal) => store.swap(expected, next, signal),
        watch: (onHint) => store.watch(onHint),
        enlist: (candidate) => store.enlist(candidate),
        list: () => store.list(),
        describe: async ({ pid }) => ({ pid }),
        provesGone: (actors) =>
          actors.length > 0 && actors.every(({ pid }) => hasEnded(Number(pid))),
      };
      return { ...whole, ...breakIt(whole, cell) };
    },
    capabilities,
    wait: (ms) => new Promise((resolve) => setTimeout(resolve, Math.min(ms, 5))),
    timeoutMs: 2_000,
  });
  return results.filter(({ outcome }) => outcome === 'failed').map(({ name }) => name);
}

function hasEnded(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

test('a store that is not broken fails none', async () => {
  expect(await failing((store) => store)).toEqual([]);
});

test.each<[string, string, (store: LeaseStore, cell: Cell) => Partial<LeaseStore>]>([
  [
    'a swap that is not atomic',
    'of many swaps on one version, made at the same time, exactly one is applied',
    (store, cell) => ({
      async swap(expected, next, signal) {
        signal.throwIfAborted();
        if (cell.version !== expected) return { outcome: 'conflict' };
        await new Promise(setImmediate);
        return store.swap(cell.version, next, signal);
      },
    }),
  ],
  [
    'a first swap that two may win',
    'of many first swaps, made at the same time, exactly one makes the record',
    (store, cell) => ({
      async swap(expected, next, signal) {
        if (expected !== 0) return store.swap(expected, next, signal);
        await new Promise(setImmediate);
        return store.swap(cell.version, next, signal);
      },
    }),
  ],
  [
    'a swap that ignores the version',
    'a swap on a version that is past conflicts and changes nothing',
    (store, cell) => ({
      swap: (_expected, next, signal) => store.swap(cell.version, next, signal),
    }),
  ],
  [
    'a conflict that writes all the same',
    'a swap on a version that is past conflicts and changes nothing',
    (store, cell) => ({
      async swap(expected, next, signal) {
        const result = await store.swap(expected, next, signal);
        if (result.outcome === 'conflict') cell.record = next;
        return result;
      },
    }),
  ],
  [
    'a version that does not change with a write',
    'every swap makes a version that was never there before, even of an equal record',
    (store, cell) => ({
      async swap(expected, next, signal) {
        const result = await store.swap(expected, next, signal);
        cell.version = Math.min(cell.version, 3);
        return result.outcome === 'ok' ? { outcome: 'ok', version: cell.version } : result;
      },
    }),
  ],
  [
    'a version made of the content',
    'every swap makes a version that was never there before, even of an equal record',
    (store, cell) => ({
      async read(signal) {
        const { record } = await store.read(signal);
        return { record, version: record === undefined ? 'none' : contentOf(record) };
      },
      async swap(expected, next, signal) {
        const { record } = await store.read(signal);
        if (expected !== (record === undefined ? 'none' : contentOf(record))) {
          return { outcome: 'conflict' };
        }
        await store.swap(cell.version, next, signal);
        return { outcome: 'ok', version: contentOf(next) };
      },
    }),
  ],
  [
    'a handle that remembers what it has read',
    'a swap on what was read is applied, and every handle reads it back',
    (store) => {
      let seen: ReturnType<LeaseStore['read']> | undefined;
      return {
        read(signal) {
          seen ??= store.read(signal);
          return seen;
        },
      };
    },
  ],
  [
    'a field that is lost',
    'a record comes back as it was written, with every field',
    (store) => ({
      async read(signal) {
        const reading = await store.read(signal);
        const { record } = reading;
        return record === undefined
          ? reading
          : { ...reading, record: { ...record, reservation: undefined } };
      },
    }),
  ],
  [
    'a record that is cut off',
    'the largest record that can be comes back as it was written',
    (store) => ({
      swap: (expected, next, signal) =>
        store.swap(expected, { ...next, history: next.history.slice(0, 10) }, signal),
    }),
  ],
  [
    'one record for all elections',
    'elections of one store do not touch each other',
    () => {
      const store = new MemoryStore(shared);
      return {
        read: (signal) => store.read(signal),
        swap: (expected, next, signal) => store.swap(expected, next, signal),
      };
    },
  ],
  [
    'a write after the signal was aborted',
    'a call whose signal was aborted before rejects and changes nothing',
    (store) => ({
      async swap(expected, next, signal) {
        const result = await store.swap(expected, next, new AbortController().signal);
        signal.throwIfAborted();
        return result;
      },
    }),
  ],
  [
    'hints that never come',
    'a watcher is told of a change by another handle, and not after it has ended',
    () => ({ watch: () => () => {} }),
  ],
  [
    'a watch that does not end',
    'a watcher is told of a change by another handle, and not after it has ended',
    (store) => ({
      watch(onHint) {
        store.watch?.(onHint);
        return () => {};
      },
    }),
  ],
  [
    'proof from an empty list',
    'neither an empty list nor a living process is ever proved gone',
    () => ({ provesGone: (actors) => actors.every(({ pid }) => hasEnded(Number(pid))) }),
  ],
  [
    'proof as soon as one has ended',
    'a process that has ended is proved gone, alone and not beside one that lives',
    () => ({ provesGone: (actors) => actors.some(({ pid }) => hasEnded(Number(pid))) }),
  ],
  [
    'candidates that stay on the list',
    'who is enlisted is listed until taken off the list',
    (store) => ({
      async enlist(candidate, left) {
        await store.enlist?.(candidate, left);
        return async () => {};
      },
    }),
  ],
])('%s fails "%s"', async (_what, scenario, breakIt) => {
  shared = emptyCell();
  expect(await failing((store, cell) => ({ ...store, ...breakIt(store, cell) }))).toContain(
    scenario,
  );
});

test.each<[string, string, (store: LeaseStore, cell: Cell) => Partial<LeaseStore>]>([
  [
    'a swap that ignores the version',
    'one leads at a time, and every term has a larger token',
    (store, cell) => ({
      swap: (_expected, next, signal) => store.swap(cell.version, next, signal),
    }),
  ],
  [
    'a store that keeps no history',
    'the history names past terms and why they ended',
    (store) => ({
      swap: (expected, next, signal) => store.swap(expected, { ...next, history: [] }, signal),
    }),
  ],
  [
    'a store whose token begins anew when the seat is vacant',
    'tokens go on rising after everybody has closed and opened again',
    (store) => ({
      swap: (expected, next, signal) =>
        store.swap(expected, next.holding === undefined ? { ...next, token: 0n } : next, signal),
    }),
  ],
  [
    'a store that forgets who was asked to go',
    'a leader that is asked to vacate goes, and somebody else leads',
    (store) => ({
      swap: (expected, next, signal) =>
        store.swap(
          expected,
          next.holding === undefined
            ? next
            : { ...next, holding: { ...next.holding, request: undefined, revoked: false } },
          signal,
        ),
    }),
  ],
])('an election on %s fails "%s"', async (_what, scenario, breakIt) => {
  const clock = new SimulatedClock();
  const cell = emptyCell();
  const store = new MemoryStore(cell);
  const whole: LeaseStore = {
    read: (signal) => store.read(signal),
    swap: (expected, next, signal) => store.swap(expected, next, signal),
    watch: (onHint) => store.watch(onHint),
  };
  const backend = leaseBackend<bigint>({
    kind: 'broken',
    description: 'broken on purpose',
    openStore: () => ({ ...whole, ...breakIt(whole, cell) }),
    guard: (_scope, _store, token) => token,
  });
  const [result] = await runConformance<Backend>(
    electionScenarios.filter(({ name }) => name === scenario),
    { open: () => backend, clock, wait: (ms) => clock.advance(ms), timeoutMs: 10_000 },
  );
  expect(result?.outcome).toBe('failed');
});

let shared = emptyCell();

function contentOf(record: object): string {
  return JSON.stringify(record, (_key, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
}
