import type { View } from 'incumbent';
import { createElection } from 'incumbent';
import { memory } from 'incumbent/memory';
import { expect, test } from 'vitest';
import { asObserved, StoreFollower } from '../../src/follow/store-follower.ts';

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
