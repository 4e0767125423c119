import type { Election, Snapshot, View } from 'incumbent';
import { createElection } from 'incumbent';
import { memory } from 'incumbent/memory';
import { expect, test } from 'vitest';
import type { Change, Followed } from '../../src/follow/store-follower.ts';
import { asObserved, StoreFollower, Watch } from '../../src/follow/store-follower.ts';

const leader = { id: 'a', incarnation: 'i', addresses: [], metadata: {} };
const led: View = { state: 'led', leader, token: 3n, ready: true, sinceUnixMs: 1 };
const vacant: View = { state: 'vacant', token: 3n, sinceUnixMs: 2 };

test('a leader that an observer knows to be dead is not led again because of one look', () => {
  expect(asObserved(led, vacant)).toBe(vacant);
  expect(asObserved(led, undefined)).toBe(led);
  expect(asObserved(led, { ...vacant, token: 2n })).toBe(led);
  expect(asObserved(led, { ...vacant, state: 'unknown' })).toBe(led);
  expect(asObserved(vacant, led)).toBe(vacant);
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
