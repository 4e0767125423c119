// `ready: 'manual'`: who is told that a leader is ready, and when. The rules that hold on every store
// are in the conformance scenarios.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import { MisuseError } from '../src/base/errors.ts';
import { createElection } from '../src/core/election.ts';
import type { Term } from '../src/core/term.ts';
import type { View } from '../src/record/record.ts';
import { SimulatedClock } from '../src/testing/index.ts';

const manual = { ready: 'manual' } as const;
const told: string[] = [];
const listeners = (['leading', 'ready', 'ended'] as const).map((name) => ({
  channel: `incumbent:${name}`,
  listener: () => void told.push(name),
}));

beforeEach(() => {
  told.length = 0;
  for (const { channel, listener } of listeners) subscribe(channel, listener);
});

afterEach(() => {
  for (const { channel, listener } of listeners) unsubscribe(channel, listener);
});

function setUp() {
  const clock = new SimulatedClock();
  const backend = memory();
  const candidate = (id: string) =>
    createElection({ name: 'jobs', backend, clock, candidate: { id } });
  const soon = async <T>(promise: Promise<T>): Promise<T> => {
    promise.catch(() => {});
    await clock.advance(2_000);
    return promise;
  };
  return { clock, a: candidate('a'), b: candidate('b'), soon };
}

test('a term without the option is ready when it begins, and has nothing to say', async () => {
  const { a, soon } = setUp();
  const term = await soon(a.campaign());
  expect(term.isReady).toBe(true);
  expect(told).toEqual(['leading', 'ready']);
  await expect(term.ready()).rejects.toThrow(MisuseError);
  await expect(term.ready()).rejects.toThrow("needs the option ready: 'manual'");
  await soon(term[Symbol.asyncDispose]());
});

test('one that says so is told once, however often it says so', async () => {
  const { a, b, soon } = setUp();
  const term = await soon(a.campaign(manual));
  expect([term.isReady, (await b.leader()).ready]).toEqual([false, false]);
  expect(JSON.parse(JSON.stringify(term))).toMatchObject({ isReady: false });
  expect(told).toEqual(['leading']);
  await soon(Promise.all([term.ready(), term.ready()]));
  await soon(term.ready());
  expect([term.isReady, (await b.leader()).ready]).toEqual([true, true]);
  expect(told).toEqual(['leading', 'ready']);
  await soon(term[Symbol.asyncDispose]());
});

test('a signal ends the waiting, and takes nothing back', async () => {
  const { a, b, soon } = setUp();
  const term = await soon(a.campaign(manual));
  const stop = new AbortController();
  const ready = term.ready({ signal: stop.signal });
  stop.abort(new Error('no time'));
  await expect(soon(ready)).rejects.toThrow('no time');
  expect((await b.leader()).ready).toBe(true);
  expect(told).toEqual(['leading', 'ready']);
  const gone = AbortSignal.abort(new Error('too late'));
  await expect(term.ready({ signal: gone })).rejects.toThrow('too late');
  await soon(term[Symbol.asyncDispose]());
});

test('a signal that has aborted before the call says nothing', async () => {
  const { a, soon } = setUp();
  const term = await soon(a.campaign(manual));
  await expect(term.ready({ signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow('no');
  expect(term.isReady).toBe(false);
  await soon(term[Symbol.asyncDispose]());
});

test('a term that is over is not ready any more: the call rejects with its end', async () => {
  const { a, soon } = setUp();
  const term = await soon(a.campaign(manual));
  term.resign();
  await expect(term.ready()).rejects.toMatchObject({ reason: 'resigned' });
  expect(told).toEqual(['leading']);
  await soon(term[Symbol.asyncDispose]());
});

test('a term that is not ready in time ends, and others go first', async () => {
  const { clock, a, b, soon } = setUp();
  const seen: string[] = [];
  const leading = a.lead(
    async (term) => {
      seen.push(`a ${term.isReady}`);
      await new Promise((resolve) => term.signal.addEventListener('abort', resolve));
      seen.push((term.signal.reason as { reason: string }).reason);
    },
    { ...manual, readyTimeout: 5_000, again: () => false },
  );
  const end = leading.catch((error: unknown) => error);
  await clock.advance(1_000);
  const follower = b.campaign();
  await clock.advance(3_900);
  expect(seen).toEqual(['a false']);
  await clock.advance(200);
  expect(seen).toEqual(['a false', 'not-ready']);
  expect(await soon(end)).toMatchObject({ reason: 'not-ready' });
  const term = await soon(follower);
  expect(term.predecessor).toMatchObject({ id: 'a', clean: true });
  expect((await b.history()).map(({ id, why }) => [id, why])).toEqual([['a', 'not-ready']]);
  await soon(term[Symbol.asyncDispose]());
});

test.each([
  ['says so in time', async (term: Term) => void term.ready()],
  ['is done before that', async () => {}],
])('no term ends for it that %s', async (_, begin) => {
  const { clock, a, soon } = setUp();
  const stop = new AbortController();
  let term: Term | undefined;
  const leading = a.lead(
    async (given) => {
      term = given;
      await begin(given);
    },
    { ...manual, readyTimeout: 1_000, holdAtLeast: 60_000, signal: stop.signal },
  );
  await clock.advance(30_000);
  expect(term?.state).toBe('leading');
  stop.abort();
  await soon(leading);
  expect((await a.history()).map(({ why }) => why)).toEqual(['work-finished']);
});

test('an observer is told of the change, and not of repetitions', async () => {
  const { clock, a, b, soon } = setUp();
  const views: View[] = [];
  void (async () => {
    for await (const view of b.observe()) views.push(view);
  })();
  const term = await soon(a.campaign(manual));
  await clock.advance(60_000 - 3_000);
  await soon(term.ready());
  await clock.advance(60_000);
  expect(views.map(({ state, ready }) => [state, ready])).toEqual([
    ['vacant', undefined],
    ['led', false],
    ['led', true],
  ]);
  expect(JSON.parse(JSON.stringify(views[1]))).toMatchObject({ state: 'led', ready: false });
  await soon(term[Symbol.asyncDispose]());
  await soon(b.close());
});
