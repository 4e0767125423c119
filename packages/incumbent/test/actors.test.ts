/**
 * The processes that act for a term, as its record names them. Another candidate takes the
 * seat at once when all of them are dead. So a list that lacks one would prove the death of a
 * leader that lives.
 */
import { expect, test } from 'vitest';
import type { ActorProcess } from '../src/core/contest.ts';
import type { Actor } from '../src/record/record.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import { candidate } from './support/scripted-candidate.ts';
import { lost, ScriptedStore } from './support/scripted-store.ts';

type Describe = (process: ActorProcess) => Promise<Actor>;

/** A term whose actors are declared. */
async function declaring(describe: Describe) {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const election = candidate(store, clock, { describe });
  const term = await election.campaign({ actors: 'declared' });
  const actors = () => store.record?.holding?.actors;
  const close = async () => {
    store.onSwap = async (apply) => apply();
    await term[Symbol.asyncDispose]();
    await election.close();
  };
  const settles = async (promise: Promise<unknown>) => {
    let settled = false;
    promise.then(
      () => {
        settled = true;
      },
      () => {},
    );
    await clock.advance(100);
    return settled;
  };
  return { clock, store, term, actors, settles, close };
}

const known: Describe = async ({ pid, group }) => ({ pid, ...(group ? { group } : {}) });

test('a term whose actors are to be declared proves nothing before they are', async () => {
  const { actors, close } = await declaring(known);
  expect(actors()).toBe(null);
  await close();
});

test('this process acts for the term, whether it is declared or not', async () => {
  const self = { pid: process.pid };
  for (const [declared, expected] of [
    [[], [self]],
    [[{ pid: 71 }], [self, { pid: 71 }]],
    [
      [{ pid: 71 }, self],
      [{ pid: 71 }, self],
    ],
    // Of our group others may be left when we are not, and the other way round.
    [[{ ...self, group: 7 }], [self, { ...self, group: 7 }]],
  ] as const) {
    const { term, actors, settles, close } = await declaring(known);
    expect(await settles(term.declareActors(declared))).toBe(true);
    expect(actors()).toEqual(expected);
    await close();
  }
});

test('a list of which one cannot be described proves nothing', async () => {
  for (const unknown of [process.pid, 71, 72]) {
    let isKnown = true;
    const { term, actors, settles, close } = await declaring(async (each) => {
      if (each.pid === unknown && !isKnown) throw new Error('no /proc');
      return known(each);
    });
    expect(await settles(term.declareActors([{ pid: 71 }]))).toBe(true);
    expect(actors()).toHaveLength(2);
    isKnown = false;
    // The earlier declaration does not stand either.
    expect(await settles(term.declareActors([{ pid: 71 }, { pid: 72 }]))).toBe(true);
    expect(actors(), `without ${unknown}`).toBe(null);
    await close();
  }
});

test('a description that does not come in time proves nothing', async () => {
  const { clock, term, actors, close } = await declaring(async (each) =>
    each.pid === 71 ? lost() : known(each),
  );
  const declared = term.declareActors([{ pid: 71 }]);
  await clock.advance(5_000);
  await declared;
  expect(actors()).toBe(null);
  await close();
});

test('the last declaration counts, however long the one before it takes', async () => {
  let answer = () => {};
  const { term, actors, settles, close } = await declaring((each) =>
    each.pid === 71
      ? new Promise((resolve) => {
          answer = () => resolve({ pid: 71 });
        })
      : known(each),
  );
  const slow = term.declareActors([{ pid: 71 }]);
  const last = term.declareActors(null);
  await settles(last);
  answer();
  expect(await settles(Promise.all([slow, last]))).toBe(true);
  expect(actors()).toBe(null);
  await close();
});

test('nobody is told that the list is gone before the record says so', async () => {
  const { clock, store, term, actors, settles, close } = await declaring(known);
  await settles(term.declareActors([{ pid: 71 }]));
  store.onSwap = () => Promise.reject(new Error('not now'));
  const impatient = new AbortController();
  const first = term.declareActors(null, { signal: impatient.signal });
  await clock.advance(100);
  impatient.abort(new Error('I did not wait'));
  await expect(first).rejects.toThrow('I did not wait');
  // A leader that declares again is about to start processes that no list has yet.
  const second = term.declareActors(null);
  expect(await settles(second)).toBe(false);
  expect(actors()).toHaveLength(2);
  store.onSwap = async (apply) => apply();
  await clock.advance(3_000);
  await second;
  expect(actors()).toBe(null);
  await close();
});

test('nothing is written where the record lists no process, and none is to be listed', async () => {
  const { store, term, actors, settles, close } = await declaring(known);
  const { swaps } = store;
  const declared = term.declareActors(null);
  expect(await settles(declared)).toBe(true);
  expect(store.swaps).toBe(swaps);
  // A term that has ended says so all the same.
  term.resign();
  await expect(term.declareActors(null)).rejects.toMatchObject({ reason: 'resigned' });
  expect(actors()).toBe(null);
  await close();
});
