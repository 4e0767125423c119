import { getEventListeners } from 'node:events';
import type { Election, ElectionSummary, Snapshot, View } from 'incumbent';
import { createElection } from 'incumbent';
import { memory } from 'incumbent/memory';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Change, Followed } from '../../src/follow/store-follower.ts';
import { asObserved, StoreFollower, Watch } from '../../src/follow/store-follower.ts';

const leader = { id: 'a', incarnation: 'i', addresses: [], metadata: {} };
const led: View = { state: 'led', leader, token: 3n, ready: true, sinceUnixMs: 1 };
const vacant: View = { state: 'vacant', token: 3n, sinceUnixMs: 2 };

test('a leader that an observer knows to be dead is not led again because of one look', () => {
  const dead = { view: vacant, led };
  expect(asObserved(led, dead)).toBe(vacant);
  expect(asObserved(led, undefined)).toBe(led);
  expect(asObserved(led, { ...dead, view: { ...vacant, token: 2n } })).toBe(led);
  expect(asObserved(led, { ...dead, view: { ...vacant, state: 'unknown' } })).toBe(led);
  expect(asObserved(vacant, { view: led, led })).toBe(vacant);
});

test('a term that an observer saw only before it was announced is led', () => {
  expect(asObserved(led, { view: vacant, led: undefined })).toBe(led);
  expect(asObserved(led, { view: vacant, led: { ...led, token: 2n } })).toBe(led);
  expect(
    asObserved(led, { view: vacant, led: { ...led, leader: { ...leader, incarnation: 'j' } } }),
  ).toBe(led);
});

test('a listener is told of elections, of changes, and of trouble with the store', async () => {
  const backend = memory();
  const stop = new AbortController();
  const told: string[] = [];
  let heard = () => {};
  const until = async (words: string) => {
    while (!told.includes(words)) {
      await new Promise<void>((resolve) => {
        heard = resolve;
      });
    }
  };
  const tell = (words: string) => {
    told.push(words);
    heard();
  };
  let isDown = false;
  const store = {
    ...backend,
    open: backend.open.bind(backend),
    survey: (options: Parameters<typeof backend.survey>[0]) => {
      if (isDown) throw new Error('it is down');
      return backend.survey(options);
    },
  };
  const election = createElection({ name: 'e', backend });
  const term = await election.campaign();
  const follower = new StoreFollower(
    {
      open: { url: 'test:', origin: '--store', backend: store },
      timeoutMs: 10_000,
      signal: stop.signal,
    },
    {
      onStore: ({ error }) => tell(`store ${error}`),
      onElection: (name, { view, history }) => tell(`${name} ${view.state} ${history.length}`),
      onGone: (name) => tell(`${name} gone`),
    },
  );
  const running = follower.run();
  await until('e led 0');
  isDown = true;
  await until('store it is down');
  await term[Symbol.asyncDispose]();
  // It is observed all the same.
  await until('e vacant 1');
  stop.abort();
  await running;
  await election.close();
});

/** An election whose observer and whose readings the test answers. */
function drivenElection() {
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const readings: ((view: View) => void)[] = [];
  let heard = () => {};
  let views: View[] = [];
  const show = (view: View) => {
    views.push(view);
    heard();
  };
  const election = {
    async *observe() {
      for (;;) {
        const taken = views;
        views = [];
        yield* taken;
        if (views.length > 0) continue;
        const next = new Promise<'next'>((resolve) => {
          heard = () => resolve('next');
        });
        if ((await Promise.race([next, ended])) !== 'next') return;
      }
    },
    inspect: () =>
      new Promise<Snapshot>((resolve) => {
        readings.push((view) => resolve(summaryOf(view)));
      }),
    candidates: async () => [],
    close: async () => end(),
  } as unknown as Election;
  return { election, show, readings };
}

function summaryOf(view: View): Followed {
  return { view, history: [], drains: [], unfenced: [] } as unknown as Followed;
}

test('a snapshot is not told after a view, or a reading of all, that came while it was read', async () => {
  const { election, show, readings } = drivenElection();
  const told: Change[] = [];
  let last: Followed | undefined = summaryOf(led);
  const watch = new Watch(election, {
    tell: (change) => {
      told.push(change);
      last = change.kind === 'whole' ? change.summary : summaryOf(change.view);
    },
    lastTold: () => last,
  });
  const kinds = () => told.map(({ kind }) => kind);
  show(led);
  show({ ...led, ready: false });
  await expect.poll(() => readings.length).toBe(1);
  show(vacant);
  await expect.poll(kinds).toEqual(['view', 'view']);
  readings[0]?.(led);
  // It is read again instead.
  await expect.poll(() => readings.length).toBe(2);
  expect(kinds()).toEqual(['view', 'view']);
  // A reading of all tells meanwhile.
  last = summaryOf(vacant);
  readings[1]?.(led);
  show({ ...led, token: 4n });
  await expect.poll(() => readings.length).toBe(3);
  expect(kinds()).toEqual(['view', 'view', 'view']);
  readings[2]?.({ ...led, token: 4n });
  await expect.poll(kinds).toEqual(['view', 'view', 'view', 'whole']);
  watch.close();
});

/** A store with one reading of all elections after the other, as the test gives them. */
function followed(
  survey: (signal: AbortSignal | undefined) => AsyncIterable<ElectionSummary>,
  timeoutMs = 10_000,
) {
  const backend = memory();
  const stop = new AbortController();
  const told: string[] = [];
  const shown = new Map<string, Followed>();
  const store = {
    ...backend,
    open: backend.open.bind(backend),
    survey: (options: Parameters<typeof backend.survey>[0]) => survey(options?.signal),
  };
  const open = { url: 'test:', origin: '--store', backend: store } as const;
  const follower = new StoreFollower(
    { open, timeoutMs, signal: stop.signal },
    {
      onStore: ({ error, seenUnixMs }) => told.push(error ?? `read ${seenUnixMs !== null}`),
      onElection: (name, summary) => {
        shown.set(name, summary);
        told.push(`${name} ${summary.view.state}`);
      },
      onGone: (name) => told.push(`${name} gone`),
    },
  );
  const running = follower.run();
  onTestFinished(async () => {
    stop.abort();
    await running;
  });
  return { told, shown, stop, backend };
}

test('elections whose names we do not take are shown', async () => {
  const odd = ['x'.repeat(201), 'a\u0007b'];
  const { told } = followed(async function* () {
    for (const name of odd) yield { name, ...summaryOf(led) };
  });
  await expect.poll(() => told).toContain('read true');
  expect(told).toEqual(['read false', `${odd[0]} led`, `${odd[1]} led`, 'read true']);
});

test('a reading of all may take its time while elections come, and ends when none comes', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  let isStuck = false;
  const { told, stop } = followed(async function* (signal) {
    for (const name of ['a\u0007', 'b\u0007', 'c\u0007']) {
      vi.advanceTimersByTime(6_000);
      signal?.throwIfAborted();
      yield { name, ...summaryOf(led) };
    }
    if (!isStuck) return;
    await new Promise((_resolve, reject) => {
      signal?.addEventListener('abort', () => reject(new Error('aborted')));
      vi.advanceTimersByTime(10_000);
    });
  });
  await expect.poll(() => told).toContain('read true');
  isStuck = true;
  await expect
    .poll(() => told, { timeout: 10_000 })
    .toContain('no election came from the store for 10s');
  // No more than the pause between two readings listens.
  expect(getEventListeners(stop.signal, 'abort').length).toBeLessThanOrEqual(1);
});

test('a state goes on since when it was first seen, until it is another one', async () => {
  const name = 'odd\u0007';
  const looks: View[] = [
    { state: 'ended', token: 3n, sinceUnixMs: 10 },
    { state: 'ended', token: 3n, sinceUnixMs: 20 },
    { ...led, sinceUnixMs: 30 },
    { ...led, ready: false, sinceUnixMs: 40 },
    { ...led, token: 4n, sinceUnixMs: 50 },
    { ...vacant, sinceUnixMs: 60 },
  ];
  const since: (number | undefined)[] = [];
  const { told, shown } = followed(async function* () {
    for (const view of looks) {
      yield { name, ...summaryOf(view) };
      since.push(shown.get(name)?.view.sinceUnixMs);
    }
  });
  await expect.poll(() => told).toContain('read true');
  expect(since).toEqual([10, 10, 30, 30, 50, 60]);
});
