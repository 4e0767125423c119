/** Names and summaries from the pages of a store, whatever the store. */
import { describe, expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import { RecordDamagedError, StoreUnsuitableError } from '../src/base/errors.ts';
import type { Backend, ElectionSummary, SurveyOptions } from '../src/core/contest.ts';
import { createElection } from '../src/core/election.ts';
import { leaseBackend } from '../src/mechanisms/lease/backend.ts';
import type { LeaseLister, LeasePage } from '../src/mechanisms/lease/listing.ts';
import {
  listingScenarios,
  runConformance,
  SimulatedClock,
  SimulatedLeaseStore,
  SimulatedQueueStore,
} from '../src/testing/index.ts';
import { collectWarnings } from './support/warnings.ts';

const leaseMs = 15_000;

function backendOf(list?: LeaseLister | string): Backend {
  return leaseBackend({
    kind: 'paged',
    description: 'pages of a test',
    openStore: () => {
      throw new Error('no election is opened');
    },
    guard: () => undefined,
    ...(list === undefined ? {} : { list }),
  });
}

function named(name: string): LeasePage['elections'][number] {
  return { name, reading: () => ({ record: undefined, version: '' }) };
}

/** A store with these pages, which counts how many were read. */
function paged(...pages: readonly (readonly string[])[]) {
  const read: unknown[] = [];
  const backend = backendOf({
    async page(after) {
      read.push(after);
      const at = Number(after ?? 0);
      const isLast = at + 1 >= pages.length;
      return { elections: (pages[at] ?? []).map(named), next: isLast ? undefined : at + 1 };
    },
  });
  return { backend, read };
}

async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

test('an election that two pages name is told once, and an empty page is not the end', async () => {
  const { backend } = paged(['a', 'b'], [], ['b', 'c', 'a']);
  expect(await all(backend.elections())).toEqual(['a', 'b', 'c']);
  expect((await all(backend.survey())).map(({ name }) => name)).toEqual(['a', 'b', 'c']);
});

test('a name that no election can have is left out', async () => {
  const { backend } = paged(['a', 'b'.repeat(201), 'c\nd', '', 'e']);
  expect(await all(backend.elections())).toEqual(['a', 'e']);
  expect((await all(backend.survey())).map(({ name }) => name)).toEqual(['a', 'e']);
});

test('a caller that has enough reads no further page', async () => {
  const { backend, read } = paged(['a'], ['b'], ['c']);
  for await (const name of backend.elections()) if (name === 'b') break;
  expect(read).toEqual([undefined, 1]);
});

test('a page that does not come in time ends the listing with an error', async () => {
  const clock = new SimulatedClock();
  const backend = backendOf({ page: () => new Promise(() => {}) });
  const listing = all(backend.elections({ clock }));
  const failed = expect(listing).rejects.toMatchObject({ code: 'OPERATION_TIMEOUT' });
  await clock.advance(30_000);
  await failed;
});

test('a record that cannot be read makes one view unknown, and the rest goes on', async () => {
  const error = new RecordDamagedError('the row "b"', 'no JSON');
  const broken = {
    name: 'b',
    waiting: [],
    reading() {
      throw error;
    },
  };
  const backend = backendOf({
    page: async () => ({ elections: [named('a'), broken, named('c')], next: undefined }),
  });
  expect(await all(backend.elections())).toEqual(['a', 'b', 'c']);
  const [a, b, c] = await all(backend.survey());
  expect([a?.view.state, b?.view.state, c?.view.state]).toEqual(['vacant', 'unknown', 'vacant']);
  expect(b).toMatchObject({ view: { error }, waiting: [], history: [], holderGone: false });
});

test.each([
  [undefined, 'a store of the kind "paged" does not list its elections'],
  ['it cannot, because', 'it cannot, because'],
])('a store that cannot list refuses at once, and says why', (list, words) => {
  const backend = backendOf(list);
  for (const call of [() => backend.elections(), () => backend.survey()]) {
    expect(call).toThrow(StoreUnsuitableError);
    expect(call).toThrow(words);
  }
});

test.each<[unknown, string]>([
  [{ signal: 1 }, 'signal must be an AbortSignal, not 1'],
  [{ memory: {} }, 'memory must be a Map, not'],
  [{ from: 'a' }, 'survey() has no option "from"; it knows signal, clock, memory'],
  [new AbortController().signal, 'survey() takes options, not a signal alone'],
])('survey(%s) is refused at once', (options, words) => {
  expect(() => memory().survey(options as SurveyOptions)).toThrow(words);
});

test('elections() has no use for a memory', () => {
  expect(() => memory().elections({ memory: new Map() } as object)).toThrow(
    'elections() has no option "memory"',
  );
});

describe('a memory', () => {
  async function led() {
    const clock = new SimulatedClock();
    const store = new SimulatedLeaseStore({ clock });
    const [leader, watcher] = [store.connect(), store.connect()];
    const options = { name: 'jobs', backend: leader.backend, clock, lease: leaseMs };
    const election = createElection({ ...options, candidate: { id: 'a' } });
    const term = await election.campaign();
    const look = async (more: SurveyOptions = {}): Promise<ElectionSummary | undefined> =>
      (await all(watcher.backend.survey({ clock, ...more })))[0];
    return { clock, store, leader, term, look };
  }

  test('finds out that a leader does not renew any more, and one look cannot', async () => {
    const { clock, leader, look } = await led();
    const memory = new Map<string, unknown>();
    expect(await look({ memory })).toMatchObject({ view: { state: 'led' }, holderGone: false });
    leader.outage = 'silent';
    await clock.advance(leaseMs - 1);
    expect(await look({ memory })).toMatchObject({ view: { state: 'led' } });
    await clock.advance(leaseMs);
    expect(await look({ memory })).toMatchObject({ view: { state: 'vacant' }, holderGone: true });
    expect(await look()).toMatchObject({ view: { state: 'led' } });
  });

  test('takes no leader that renews for one that is gone', async () => {
    const { clock, look, term } = await led();
    const memory = new Map<string, unknown>();
    for (let i = 0; i < 8; i += 1) {
      expect(await look({ memory })).toMatchObject({ view: { state: 'led', token: term.token } });
      await clock.advance(leaseMs / 2);
    }
  });

  test('forgets an election that is not there any more', async () => {
    const { store, look } = await led();
    const memory = new Map<string, unknown>();
    await look({ memory });
    expect([...memory.keys()]).toEqual(['jobs']);
    store.put('jobs', undefined);
    await look({ memory });
    expect([...memory.keys()]).toEqual([]);
  });
});

describe.each([false, true])('a store with sessions (others are members: %s)', (isMixed) => {
  for (const scenario of listingScenarios) {
    test(scenario.name, async () => {
      const clock = new SimulatedClock();
      const store = new SimulatedQueueStore({ clock, isMixed });
      const [result] = await runConformance<Backend>([scenario], {
        open: () => store.connect().backend,
        clock,
        wait: (ms) => clock.advance(ms),
        leaseMs: 10_000,
      });
      expect(result?.reason).toBeUndefined();
    });
  }
});

test('of a queue that others lead without a record, the first one is seen to lead', async () => {
  const clock = new SimulatedClock();
  const store = new SimulatedQueueStore({ clock, isMixed: true });
  store.enterForeign('jobs', 'go-1');
  store.enterForeign('jobs', 'go-2');
  const [summary] = await all(store.connect().backend.survey({ clock }));
  expect(summary).toMatchObject({ name: 'jobs', view: { state: 'led', leader: { id: 'go-1' } } });
  expect(summary?.waiting?.map(({ id }) => id)).toEqual(['go-2']);
});

describe('a listing that is given up', () => {
  test('ends with the reason, also in the middle of a page: it must not look like a whole one', async () => {
    const stop = new AbortController();
    const { backend } = paged(['a', 'b', 'c'], ['d']);
    const names: string[] = [];
    const listing = (async () => {
      for await (const name of backend.elections({ signal: stop.signal })) {
        names.push(name);
        if (name === 'b') stop.abort(new Error('enough'));
      }
    })();
    await expect(listing).rejects.toThrow('enough');
    expect(names).toEqual(['a', 'b']);
  });

  test('gives its page up, which may be hundreds of requests', async () => {
    const stop = new AbortController();
    const warnings = collectWarnings();
    let operation: AbortSignal | undefined;
    const backend = backendOf({
      page(_after, _wanted, signal) {
        operation = signal;
        for (let i = 0; i < 12; i += 1) signal.addEventListener('abort', () => {});
        return new Promise(() => {});
      },
    });
    const listing = all(backend.survey({ signal: stop.signal }));
    const ended = expect(listing).rejects.toThrow('enough');
    await new Promise((resolve) => setImmediate(resolve));
    expect(warnings).toEqual([]);
    stop.abort(new Error('enough'));
    await ended;
    expect(operation?.aborted).toBe(true);
  });

  test('asks a store for names alone where only names are wanted', async () => {
    const wanted: string[] = [];
    const backend = backendOf({
      async page(_after, what) {
        wanted.push(what);
        return { elections: [], next: undefined };
      },
    });
    await all(backend.elections());
    await all(backend.survey());
    expect(wanted).toEqual(['names', 'summaries']);
  });
});
