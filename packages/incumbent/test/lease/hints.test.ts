/** The reads that good hints save waiting candidates. */
import { expect, test, vi } from 'vitest';
import type { Reading } from '../../src/mechanisms/lease/store.ts';
import { SimulatedClock, settle } from '../../src/testing/index.ts';
import { candidate } from '../support/scripted-candidate.ts';
import { ScriptedStore } from '../support/scripted-store.ts';

test('where hints work, followers and observers read once per lease', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('a', 1n, 10_000);
  const election = candidate(store, clock, { watch: () => () => {}, hintsWork: true });
  const stop = new AbortController();
  const campaign = election.campaign({ signal: stop.signal }).catch((error: unknown) => error);
  const views: unknown[] = [];
  const observed = (async () => {
    for await (const view of election.observe({ signal: stop.signal })) views.push(view);
  })();
  for (let seconds = 0; seconds < 100; seconds += 2) {
    store.hold('a', 1n, 10_000);
    await clock.advance(2_000);
  }
  expect(store.swaps).toBe(0);
  // Two that look, for ten leases.
  expect(store.reads).toBeLessThanOrEqual(2 * 11);
  stop.abort(new Error('enough'));
  await campaign;
  await observed;
  await election.close();
});

test('a hint that brings the record is not read again, and the race goes on from it', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('a', 1n, 10_000);
  const listeners = new Set<(reading?: Reading) => void>();
  const watch = (onHint: (reading?: Reading) => void) => {
    listeners.add(onHint);
    return () => void listeners.delete(onHint);
  };
  const tell = () => {
    for (const listener of [...listeners]) {
      listener({ record: store.record, version: store.version });
    }
  };
  const election = candidate(store, clock, { watch, hintsWork: true });
  const campaign = election.campaign();
  await settle();
  expect(store.reads).toBe(1);
  for (let seconds = 0; seconds < 60; seconds += 2) {
    await clock.advance(2_000);
    store.hold('a', 1n, 10_000);
    tell();
    await settle();
  }
  expect(store.reads).toBe(1);
  expect(store.swaps).toBe(0);
  // Released: taken with the version that the hint has brought, in one round trip.
  store.record = { ...store.record!, holding: undefined };
  store.version += 1;
  tell();
  const term = await campaign;
  expect(store.reads).toBe(1);
  expect(term.token).toBe(2n);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('the news of a hint during a read is read again: it may be older', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('a', 1n, 10_000);
  const old: Reading = { record: store.record, version: store.version };
  let hint: (reading?: Reading) => void = () => {};
  store.onRead = async (apply) => {
    const reading = apply();
    if (store.reads === 1) hint(old);
    return reading;
  };
  const election = candidate(store, clock, {
    watch: (onHint) => {
      hint = onHint;
      return () => {};
    },
    hintsWork: true,
  });
  store.hold('a', 1n, 10_000);
  const campaign = election.campaign();
  await settle();
  await clock.advance(100);
  expect(store.reads).toBe(2);
  // Counted from the first sight of the newer one, not anew for the older.
  await clock.advance(10_000);
  const term = await campaign;
  expect(term.token).toBe(2n);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('what a hint has brought counts once: when the next hints are lost, the store is read', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('a', 1n, 10_000);
  let hint: (reading?: Reading) => void = () => {};
  const election = candidate(store, clock, {
    watch: (onHint) => {
      hint = onHint;
      return () => {};
    },
    hintsWork: true,
  });
  const stop = new AbortController();
  const campaign = election.campaign({ signal: stop.signal });
  campaign.catch(() => {});
  await clock.advance(1_000);
  store.hold('a', 1n, 10_000);
  hint({ record: store.record, version: store.version });
  for (let seconds = 1; seconds < 60; seconds += 2) {
    await clock.advance(2_000);
    store.hold('a', 1n, 10_000);
  }
  // The leader was there all the time, so no candidate has tried to take its seat.
  expect(store.swaps).toBe(0);
  expect(store.reads).toBeGreaterThanOrEqual(5);
  stop.abort(new Error('enough'));
  await expect(campaign).rejects.toThrow('enough');
  await election.close();
});

test('hints of a leader’s own writes that come late make it write no more', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const listeners = new Set<(reading?: Reading) => void>();
  const watch = (onHint: (reading?: Reading) => void) => {
    listeners.add(onHint);
    return () => void listeners.delete(onHint);
  };
  store.onSwap = async (apply) => {
    const result = apply();
    const reading = { record: store.record, version: store.version };
    clock.setTimer(() => {
      for (const listener of [...listeners]) listener(reading);
    }, 300);
    return result;
  };
  const election = candidate(store, clock, { watch, hintsWork: true });
  const term = await election.campaign();
  const { reads } = store;
  await term.proclaim({ metadata: { port: '1' } });
  await clock.advance(30);
  await term.proclaim({ metadata: { port: '2' } });
  const before = store.swaps;
  // Five renewals are due in 10 s of a lease of 10 s.
  await clock.advance(10_000);
  expect(store.swaps - before).toBeLessThanOrEqual(6);
  expect(store.reads).toBe(reads);
  // An operator's request is still heard.
  const operator = candidate(store, clock);
  await operator.vacate();
  await clock.advance(400);
  expect(term.signal.aborted).toBe(true);
  await term[Symbol.asyncDispose]();
  expect(await term.ended).toMatchObject({ reason: 'vacated' });
  await Promise.all([election.close(), operator.close()]);
});

test('a leader that a hint calls writes on the version that its look has shown', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  let hint: (reading?: Reading) => void = () => {};
  const election = candidate(store, clock, {
    watch: (onHint) => {
      hint = onHint;
      return () => {};
    },
  });
  const term = await election.campaign();
  const { reads, swaps } = store;
  const drains = [{ id: 'other', untilUnixMs: 10_000 }];
  store.record = { ...store.record!, drains };
  store.version += 1;
  hint();
  await clock.advance(10);
  // No conflict, and no second look.
  expect([store.reads - reads, store.swaps - swaps]).toEqual([1, 1]);
  expect(store.record).toMatchObject({ drains });
  // A look that was sent before a write is older than the version that is known.
  const before = { record: store.record, version: store.version };
  let answer = () => {};
  store.onRead = () =>
    new Promise((resolve) => {
      answer = () => resolve(before);
    });
  hint();
  await term.proclaim({ metadata: { port: '1' } });
  store.onRead = async (apply) => apply();
  answer();
  await clock.advance(10);
  expect([store.reads - reads, store.swaps - swaps]).toEqual([2, 3]);
  // A request that stands there is heard all the same.
  const operator = candidate(store, clock);
  await operator.vacate();
  hint();
  await clock.advance(10);
  await term[Symbol.asyncDispose]();
  expect(await term.ended).toMatchObject({ reason: 'vacated' });
  await Promise.all([election.close(), operator.close()]);
});

test('many hints at once make a leader look once', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const listeners = new Set<(reading?: Reading) => void>();
  const election = candidate(store, clock, {
    watch: (onHint) => {
      listeners.add(onHint);
      return () => void listeners.delete(onHint);
    },
  });
  const term = await election.campaign();
  const { reads } = store;
  const tell = () => {
    for (const listener of [...listeners]) listener();
  };
  store.onRead = async (apply) => {
    await clock.sleep(50);
    return apply();
  };
  for (let i = 0; i < 10; i += 1) tell();
  await clock.advance(10);
  tell();
  await clock.advance(10);
  expect(store.reads).toBe(reads + 1);
  await clock.advance(100);
  // The next one is looked for again.
  tell();
  await clock.advance(10);
  expect(store.reads).toBe(reads + 2);
  await clock.advance(100);
  const disposed = term[Symbol.asyncDispose]();
  await clock.advance(1_000);
  await disposed;
  await election.close();
});

test('a hint that comes while a candidate writes is answered by the one look that follows', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  let hint: (reading?: Reading) => void = () => {};
  const election = candidate(store, clock, {
    watch: (onHint) => {
      hint = onHint;
      return () => {};
    },
  });
  store.onSwap = async (apply) => {
    // Another candidate was faster.
    store.hold('a', 1n, 10_000);
    hint();
    return apply();
  };
  const stop = new AbortController();
  const campaign = election.campaign({ signal: stop.signal });
  campaign.catch(() => {});
  await clock.advance(0);
  expect(store.swaps).toBe(1);
  // The look before the write, the reading back, and the look after it.
  expect(store.reads).toBe(3);
  stop.abort(new Error('enough'));
  await expect(campaign).rejects.toThrow('enough');
  await election.close();
});

test('a follower on a store that proves no death does not wake up between two looks', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('a', 1n, 10_000);
  const { holding } = store.record!;
  store.record = { ...store.record!, holding: { ...holding!, actors: [{ pid: 1 }] } };
  const election = candidate(store, clock);
  const stop = new AbortController();
  const campaign = election.campaign({ signal: stop.signal });
  campaign.catch(() => {});
  await clock.advance(1_000);
  const timers = vi.spyOn(clock, 'setTimer');
  await clock.advance(election.timing.pollEveryMs - 1_001);
  expect(timers).not.toHaveBeenCalled();
  stop.abort(new Error('enough'));
  await expect(campaign).rejects.toThrow('enough');
  await election.close();
});

test('a store that cannot be watched is polled, and its trouble is told', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('a', 1n, 5_000);
  const told: string[] = [];
  const watch = () => {
    throw new Error('no right to listen');
  };
  const onTrouble = ({ what }: { readonly what: string }) => void told.push(what);
  const election = candidate(store, clock, { watch }, { onTrouble });
  const campaign = election.campaign();
  await clock.advance(8_000);
  const term = await campaign;
  // The candidate, and then the leader.
  expect(told).toEqual(['watching the store', 'watching the store']);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('the store is watched by a candidate, then by the leader, and by nobody when that is over', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('a', 1n, 10_000);
  let watches = 0;
  const election = candidate(store, clock, {
    watch: () => {
      watches += 1;
      return () => {
        watches -= 1;
      };
    },
  });
  const stop = new AbortController();
  const withdrawn = election.campaign({ signal: stop.signal });
  withdrawn.catch(() => {});
  await clock.advance(1_000);
  expect(watches).toBe(1);
  stop.abort(new Error('enough'));
  await expect(withdrawn).rejects.toThrow('enough');
  expect(watches).toBe(0);
  const campaign = election.campaign();
  await clock.advance(20_000);
  const term = await campaign;
  expect(watches).toBe(1);
  await term[Symbol.asyncDispose]();
  expect(watches).toBe(0);
  await election.close();
});
