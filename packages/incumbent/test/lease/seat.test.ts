// How a seat on a lease is given back, and what of its writes is remembered.
import { expect, test } from 'vitest';
import { SimulatedClock } from '../../src/testing/index.ts';
import { candidate, leaseMs } from '../support/scripted-candidate.ts';
import { ScriptedStore } from '../support/scripted-store.ts';

test('a release is tried again soon, and then less and less soon', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const trouble: string[] = [];
  const onTrouble = ({ what }: { readonly what: string }) => void trouble.push(what);
  const election = candidate(store, clock, {}, { onTrouble });
  const term = await election.campaign();
  expect(election.timing).toMatchObject({ retryBackoffMs: 500, operationTimeoutMs: leaseMs / 6 });
  const triesMs: number[] = [];
  const startMs = clock.monotonicMs();
  store.onSwap = async () => {
    triesMs.push(clock.monotonicMs() - startMs);
    throw new Error('no route');
  };
  const disposed = term[Symbol.asyncDispose]();
  // It is given up after three operation timeouts.
  await clock.advance(leaseMs);
  await disposed;
  const pauses = triesMs.map((ms, i) => ms - (triesMs[i - 1] ?? 0));
  expect(pauses).toEqual([0, 50, 100, 200, 400, ...pauses.slice(5).map(() => 500)]);
  expect(triesMs.at(-1)).toBeLessThan(leaseMs / 2);
  expect(pauses.length).toBeGreaterThan(10);
  // Of each try, and of giving up.
  expect(trouble).toEqual(['', ...pauses].map(() => 'releasing'));
  expect(await term.ended).toMatchObject({ released: false });
  await election.close();
});

test('a store that is set back to a win that was answered makes its handle wait like all others', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const election = candidate(store, clock);
  const first = await election.campaign();
  const win = store.record;
  // Another candidate takes the seat. The leader finds that out before it has confirmed anything.
  store.hold('c', first.token + 1n, leaseMs);
  await clock.advance(2_000);
  expect(first.signal.aborted).toBe(true);
  await first[Symbol.asyncDispose]();
  const next = election.campaign();
  store.record = win;
  store.version += 1;
  const { swaps } = store;
  // Another candidate may have won since the win, and may still believe.
  await clock.advance(leaseMs - 2_500);
  expect(store.swaps).toBe(swaps);
  await clock.advance(2 * leaseMs);
  await (await next)[Symbol.asyncDispose]();
  await election.close();
});

test.each([
  ['not fenced by its own handle', false],
  ['fenced by every other one', true],
])('a term that could not be given back is %s', async (_, fences) => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const election = candidate(store, clock);
  const other = candidate(store, clock, {}, { candidate: { id: 'c' } });
  const first = await election.campaign();
  const { onSwap } = store;
  store.onSwap = async () => {
    throw new Error('no route');
  };
  const disposed = first[Symbol.asyncDispose]();
  await clock.advance(leaseMs);
  await disposed;
  expect(await first.ended).toMatchObject({ released: false });
  store.onSwap = onSwap;
  const fenced: string[] = [];
  const next = (fences ? other : election).campaign({
    onUnclean: ({ id }) => void fenced.push(id),
  });
  await clock.advance(2 * leaseMs);
  const term = await next;
  expect(fenced).toEqual(fences ? ['b'] : []);
  expect(term.predecessor).toMatchObject({ id: 'b', clean: !fences });
  const over = term[Symbol.asyncDispose]();
  await clock.advance(leaseMs);
  await over;
  await Promise.all([election.close(), other.close()]);
});

test('a leader that a term has fenced when it is announced need not be fenced again', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('dead', 1n, leaseMs);
  const election = candidate(store, clock);
  const seen: unknown[] = [];
  const note = () => void seen.push(store.record?.unfenced.map(({ id }) => id));
  const campaign = election.campaign({ onUnclean: note });
  await clock.advance(2 * leaseMs);
  const term = await campaign;
  note();
  await clock.advance(leaseMs);
  note();
  expect(seen).toEqual([['dead'], [], []]);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('a leader whose confirmation meets an operator’s write each time tries three times, and then pauses', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const election = candidate(store, clock);
  const term = await election.campaign();
  await clock.advance(0);
  const { swaps } = store;
  const { onSwap } = store;
  store.onSwap = async (apply) => {
    // An operator's write keeps the nonce.
    store.version += 1;
    return apply();
  };
  await clock.advance(election.timing.renewEveryMs);
  expect(store.swaps - swaps).toBe(3);
  store.onSwap = onSwap;
  await clock.advance(leaseMs);
  expect(term.isLeading()).toBe(true);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('a leader whose lease was changed in the record by hand writes its own again', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const election = candidate(store, clock);
  const term = await election.campaign();
  await clock.advance(0);
  // Others would take the seat while its leader still believes.
  store.record = { ...store.record!, leaseMs: 1_000 };
  store.version += 1;
  await clock.advance(election.timing.renewEveryMs);
  expect(store.record.leaseMs).toBe(leaseMs);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('a leader whose record is gone gives nothing back, and does not try again', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const trouble: string[] = [];
  const onTrouble = ({ what }: { readonly what: string }) => void trouble.push(what);
  const election = candidate(store, clock, {}, { onTrouble });
  const term = await election.campaign();
  await clock.advance(0);
  store.record = undefined;
  store.version += 1;
  const { swaps } = store;
  const disposed = term[Symbol.asyncDispose]();
  await clock.advance(0);
  await disposed;
  expect(await term.ended).toMatchObject({ reason: 'resigned', released: false });
  expect(store.swaps).toBe(swaps + 1);
  expect(trouble).toEqual([]);
  await election.close();
});
