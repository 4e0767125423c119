// A place that could not be given up. No candidate behind it can lead, so that is tried until
// it is gone.
import { describe, expect, it } from 'vitest';
import type { Timer } from '../../src/base/clock.ts';
import type { QueueStore } from '../../src/mechanisms/queue/store.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { Contestant, never } from './contestant.ts';
import { Stage } from './support.ts';

class NotingClock extends SimulatedClock {
  /** Pauses that do not keep the process alive. */
  readonly pauses: number[] = [];

  override setTimer(callback: () => void, delayMs: number, background?: boolean): Timer {
    if (background === true) this.pauses.push(delayMs);
    return super.setTimer(callback, delayMs);
  }
}

/** A seat that is abandoned while the store refuses to give its place up. @returns when it was asked to */
async function leftBehind(says: (store: QueueStore) => Partial<QueueStore> = () => ({})) {
  const clock = new NotingClock();
  const stage = new Stage({}, clock);
  const times: number[] = [];
  let isRefused = true;
  const a = new Contestant(stage, 'a', {
    says: (store) => ({
      leave: async (entry, place, signal) => {
        times.push(clock.monotonicMs());
        if (isRefused) throw new Error('not now');
        await store.leave(entry, place, signal);
      },
      ...says(store),
    }),
  });
  const seat = await a.win();
  await expect(seat.abandon(never)).rejects.toMatchObject({ name: 'LeftBehindError' });
  const allow = () => {
    isRefused = false;
  };
  return { stage, clock, a, seat, times, allow, waiting: () => stage.store.waiting('jobs') };
}

describe('a place that could not be given up', () => {
  it('is tried in growing intervals, the longest ten seconds, in the background', async () => {
    const { clock, times, a, allow, waiting } = await leftBehind();
    await clock.advance(40_000);
    const pauses = [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000];
    expect(times).toEqual([0, 250, 750, 1_750, 3_750, 7_750, 15_750, 25_750, 35_750]);
    expect(clock.pauses.slice(0, pauses.length)).toEqual(pauses);
    expect(a.troubles).toEqual(times.map(() => 'giving up a place'));
    expect(waiting()).toEqual(['a']);
    allow();
    await clock.advance(10_000);
    expect(waiting()).toEqual([]);
    // And then no more.
    await clock.advance(60_000);
    expect(times).toHaveLength(10);
    expect(clock.pendingTimers).toBe(0);
  });

  it('is tried at every return of the store, and not when it is lost', async () => {
    const { clock, a, times, allow, waiting } = await leftBehind();
    await clock.advance(20_000);
    const before = times.length;
    a.session.suspend();
    await clock.advance(0);
    expect(times).toHaveLength(before);
    allow();
    a.session.restore();
    await clock.advance(0);
    expect(times).toHaveLength(before + 1);
    expect(waiting()).toEqual([]);
  });

  it('went with its session: nobody asks for it any more', async () => {
    const { clock, a, times, waiting } = await leftBehind();
    a.session.expire();
    expect(waiting()).toEqual([]);
    await clock.advance(60_000);
    expect(times).toEqual([0]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('of a client that was closed is not asked for again', async () => {
    const clock = new SimulatedClock();
    const stage = new Stage({}, clock);
    let tries = 0;
    const a = new Contestant(stage, 'a', {
      says: (store) => ({
        session: {
          ...store.session,
          get isEnded() {
            return tries > 0;
          },
        },
        leave: async () => {
          tries += 1;
          throw new Error('closed');
        },
      }),
    });
    const seat = await a.win();
    await seat.abandon(never);
    await clock.advance(60_000);
    expect(tries).toBe(1);
  });
});

it('an attempt without an answer is given up after an operation, and later ones after half a session', async () => {
  const stage = new Stage();
  const times: number[] = [];
  const a = new Contestant(stage, 'a', {
    says: () => ({
      leave: () => {
        times.push(stage.clock.monotonicMs());
        return new Promise(() => {});
      },
    }),
  });
  const seat = await a.win();
  const abandoned = seat.abandon(never);
  await expect(stage.soon(abandoned)).rejects.toMatchObject({ name: 'LeftBehindError' });
  expect(stage.clock.monotonicMs()).toBe(1_000);
  await stage.clock.advance(11_000);
  // 1 s, a pause of 250 ms, 5 s, one of 500 ms, 5 s.
  expect(times).toEqual([0, 1_250, 6_750]);
});

it('a candidate that gives up while it has no answer to its entering is tried for, until its session ends', async () => {
  const stage = new Stage();
  let tries = 0;
  const a = new Contestant(stage, 'a', {
    says: () => ({
      enter: () => new Promise(() => {}),
      leave: async () => {
        tries += 1;
        throw new Error('not now');
      },
    }),
  });
  const stop = new AbortController();
  const campaign = a.campaign('wait', stop.signal);
  await stage.clock.advance(10);
  stop.abort(new Error('enough'));
  await expect(campaign).rejects.toThrow('enough');
  await stage.clock.advance(2_000);
  expect(tries).toBe(4);
  // The session also took the places with it whose names we do not know.
  a.session.expire();
  await stage.clock.advance(60_000);
  expect(tries).toBe(4);
});

describe('an announcement that is to be taken back', () => {
  /** Announced without an answer, and then given up. */
  async function givenUp(says: (store: QueueStore, stage: Stage) => Partial<QueueStore>) {
    const stage = new Stage();
    const a = new Contestant(stage, 'a', { says: (store) => says(store, stage) });
    a.session.next('commit', { fail: 'after' });
    const stop = new AbortController();
    const campaign = a.campaign('wait', stop.signal);
    await stage.clock.advance(0);
    stop.abort(new Error('enough'));
    await expect(stage.soon(campaign)).rejects.toThrow('enough');
    return { stage, a };
  }

  it('is tried five times where others write faster, and then later', async () => {
    let releases = 0;
    const { stage, a } = await givenUp((store) => ({
      release: async (...args) => {
        releases += 1;
        return releases <= 5 ? { outcome: 'conflict' } : store.release(...args);
      },
    }));
    expect(releases).toBe(5);
    expect(a.troubles.filter((what) => what === 'giving up a place')).toHaveLength(1);
    expect(stage.store.record('jobs')?.holding).toBeDefined();
    await stage.clock.advance(250);
    expect(releases).toBe(6);
    expect(stage.store.record('jobs')?.holding).toBeUndefined();
    expect(stage.store.places('jobs')).toEqual([]);
  });

  it('goes with a new nonce, so that nobody takes it for the announcement', async () => {
    let nonce: string | undefined;
    const { stage } = await givenUp((store) => ({
      commit: async (place, record, ...rest) => {
        ({ nonce } = record);
        return store.commit(place, record, ...rest);
      },
    }));
    expect(nonce).toBeDefined();
    const record = stage.store.record('jobs');
    expect(record).toMatchObject({ holding: undefined, unfenced: [], reservation: undefined });
    expect(record?.nonce).not.toBe(nonce);
  });

  it('of a place that was deleted by hand is taken back all the same', async () => {
    const { stage, a } = await givenUp((store, made) => ({
      sync: async (signal) => {
        for (const name of made.store.places('jobs')) made.store.deletePlace(name);
        await store.sync(signal);
      },
    }));
    expect(stage.store.record('jobs')).toMatchObject({ holding: undefined, history: [] });
    expect(a.troubles).toEqual(['announcing']);
  });
});
