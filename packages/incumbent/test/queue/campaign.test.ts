// The campaign of a candidate in the queue: when it tries again, what it is told, and what
// ends its wait.
import { describe, expect, it } from 'vitest';
import { StoreUnavailableError, StoreUnsuitableError } from '../../src/base/errors.ts';
import type { QueueStore } from '../../src/mechanisms/queue/store.ts';
import type { QueueRecord } from '../../src/record/queue-record.ts';
import type { SimulatedQueueSession } from '../../src/testing/index.ts';
import { Contestant, Mark, never, timing } from './contestant.ts';
import { blank, closedMs, closedSince, notForIt } from './not-for-it.ts';
import { beliefMs, Stage, waitMs } from './support.ts';

const noHints = 1e9;
const end = { reason: 'resigned', hasLed: true, fromUnixMs: 1, toUnixMs: 2, unfenced: [] } as const;

/** A leader, and the next candidate. */
async function behindLeader(says?: (store: QueueStore) => Partial<QueueStore>) {
  const stage = new Stage();
  const a = new Contestant(stage, 'a');
  const seat = await a.win();
  const b = new Contestant(stage, 'b', says === undefined ? {} : { says });
  const stop = new AbortController();
  const campaign = b.campaign('wait', stop.signal);
  await stage.clock.advance(0);
  return { stage, a, seat, b, stop, campaign };
}

async function stopped(stage: Stage, stop: AbortController, campaign: Promise<unknown>) {
  stop.abort(new Error('enough'));
  await expect(stage.soon(campaign)).rejects.toThrow('enough');
}

function total(session: SimulatedQueueSession): number {
  return [...session.sent.values()].reduce((sum, n) => sum + n, 0);
}

describe('after a failure', () => {
  /** @returns when it looked, of a store that fails so often */
  async function looks(failures: number, random = 0.5) {
    const stage = new Stage();
    const times: number[] = [];
    const says = (store: QueueStore): Partial<QueueStore> => ({
      look: async (signal) => {
        times.push(stage.clock.monotonicMs());
        if (times.length <= failures) throw new StoreUnavailableError('not now');
        return store.look(signal);
      },
    });
    const a = new Contestant(stage, 'a', { says, random: () => random });
    const seat = await stage.soon(a.campaign());
    expect(seat?.token).toBeDefined();
    return { times, a };
  }

  it('it pauses, longer each time, and is told why it waits', async () => {
    const { times, a } = await looks(3);
    // Three quarters of 250 ms, of 500 ms, of 1 s. The last two looks are those of the success.
    expect(times).toEqual([0, 187.5, 562.5, 1_312.5, 1_312.5]);
    expect(a.told.map(({ kind }) => kind)).toEqual(['unreachable', 'unreachable', 'unreachable']);
    expect(a.troubles).toEqual(['campaigning', 'campaigning', 'campaigning']);
  });

  it('a success in between makes the next pause short again', async () => {
    const stage = new Stage();
    const times: number[] = [];
    const failing = [0, 1, 4];
    const says = (store: QueueStore): Partial<QueueStore> => ({
      look: async (signal) => {
        times.push(stage.clock.monotonicMs());
        if (failing.includes(times.length - 1)) throw new StoreUnavailableError('not now');
        return store.look(signal);
      },
    });
    await new Contestant(stage, 'a').win();
    const b = new Contestant(stage, 'b', { says });
    const stop = new AbortController();
    const campaign = b.campaign('wait', stop.signal);
    await stage.clock.advance(1_000);
    expect(times).toEqual([0, 187.5, 562.5, 562.5]);
    b.session.expire();
    await stage.clock.advance(1_000);
    expect(times.slice(4, 6)).toEqual([1_000, 1_187.5]);
    await stopped(stage, stop, campaign);
  });

  it('the return of the store ends the pause, and a return that changes nothing is not heard', async () => {
    const { stage, b, stop, campaign } = await behindLeader();
    const before = total(b.session);
    b.session.suspend();
    b.session.restore();
    await stage.clock.advance(1_000);
    // Its watches live on.
    expect(total(b.session)).toBe(before);
    const held = b.session;
    held.outage = 'refuses';
    held.expire();
    await stage.clock.advance(0);
    const during = total(held);
    held.suspend();
    held.outage = 'none';
    held.restore();
    await stage.clock.advance(0);
    expect(total(held)).toBeGreaterThan(during);
    expect(stage.store.waiting('jobs')).toEqual(['a', 'b']);
    // And when the pause is over, the next return is not heard again.
    const after = total(held);
    held.suspend();
    held.restore();
    await stage.clock.advance(1_000);
    expect(total(held)).toBe(after);
    await stopped(stage, stop, campaign);
  });

  it('that waiting cannot cure it tells, and leaves', async () => {
    const stage = new Stage();
    const says = (): Partial<QueueStore> => ({
      commit: async () => {
        throw new StoreUnsuitableError('no right');
      },
    });
    const a = new Contestant(stage, 'a', { says });
    await expect(stage.soon(a.campaign())).rejects.toThrow('no right');
    expect(stage.store.places('jobs')).toEqual([]);
    expect(a.told).toEqual([]);
  });

  it('a candidate that does not wait is told that the store is away', async () => {
    const stage = new Stage();
    const a = new Contestant(stage, 'a');
    a.session.outage = 'refuses';
    expect(await stage.soon(a.campaign('none'))).toBeUndefined();
    expect(a.told).toMatchObject([{ kind: 'unreachable' }]);
    expect(a.troubles).toEqual([]);
  });

  it('while the store has no quorum, nothing is concluded and nothing asked', async () => {
    const stage = new Stage();
    const a = new Contestant(stage, 'a');
    a.session.suspend();
    expect(await a.campaign('none')).toBeUndefined();
    expect(a.told).toMatchObject([{ kind: 'unreachable' }]);
    expect(total(a.session)).toBe(0);
  });

  it('to announce, it looks again after one pause, and finds its own write', async () => {
    const stage = new Stage();
    const a = new Contestant(stage, 'a');
    a.session.next('commit', { fail: 'after' });
    const campaign = a.campaign();
    await stage.clock.advance(timing.retryBackoffMs - 1);
    expect(a.session.sent.get('read')).toBe(2);
    await stage.clock.advance(1);
    const seat = (await campaign)!;
    expect(a.session.sent.get('commit')).toBe(1);
    expect(a.troubles).toEqual(['announcing']);
    expect(a.told).toMatchObject([{ kind: 'unreachable' }]);
    // No candidate led before: the record that it finds is its own.
    expect(seat.predecessor).toBeUndefined();
    expect(seat.unfenced).toEqual([]);
    expect(seat.waitBeforeAnnounceMs).toBe(0);
    expect(seat.sentAt.monotonicMs).toBe(timing.retryBackoffMs);
    expect(await seat.confirm(seat.state, never)).toMatchObject({ outcome: 'confirmed' });
    expect(a.session.sent.get('commit')).toBe(1);
  });

  it('an announcement that another write came before is made again at once', async () => {
    const stage = new Stage();
    const a = new Contestant(stage, 'a');
    a.session.hold('commit');
    const campaign = a.campaign();
    await stage.clock.advance(0);
    stage.store.put('jobs', { ...blank, drains: [{ id: 'x', untilUnixMs: 1e15 }] });
    a.session.release('commit');
    await stage.clock.advance(0);
    const seat = (await campaign)!;
    expect(stage.store.record('jobs')).toMatchObject({
      token: seat.token,
      drains: [{ id: 'x' }],
    });
    expect(a.told).toEqual([]);
  });
});

describe('a candidate whose place is taken away again and again', () => {
  it('enters at once the first time, and then after growing pauses', async () => {
    const stage = new Stage();
    const times: number[] = [];
    const says = (store: QueueStore): Partial<QueueStore> => ({
      enter: async (entry, signal) => {
        const place = await store.enter(entry, signal);
        times.push(stage.clock.monotonicMs());
        if (times.length < 5) stage.store.deletePlace(place.name);
        return place;
      },
    });
    const a = new Contestant(stage, 'a', { says });
    expect(await stage.soon(a.campaign())).toBeDefined();
    expect(times).toEqual([0, 0, 187.5, 562.5, 1_312.5]);
    // It is not told that it waits: it does not.
    expect(a.told).toEqual([]);
  });

  it('is told so, if it does not wait', async () => {
    const stage = new Stage();
    const says = (store: QueueStore): Partial<QueueStore> => ({
      enter: async (entry, signal) => {
        const place = await store.enter(entry, signal);
        stage.store.deletePlace(place.name);
        return place;
      },
    });
    const a = new Contestant(stage, 'a', { says });
    expect(await a.campaign('none')).toBeUndefined();
    expect(a.told).toMatchObject([{ kind: 'unreachable', cause: { message: /place is gone/ } }]);
  });
});

describe('behind another', () => {
  it('the place before it and the leader are told', async () => {
    const { stage, seat, b, stop, campaign } = await behindLeader();
    const [first] = stage.store.places('jobs');
    expect(b.following).toEqual([[first, { kind: 'led', id: 'a', token: seat.token }]]);
    const c = new Contestant(stage, 'c');
    void c.campaign('wait', stop.signal).catch(() => {});
    await stage.clock.advance(0);
    const [, second] = stage.store.places('jobs');
    expect(c.following).toEqual([[second, { kind: 'led', id: 'a', token: seat.token }]]);
    await stopped(stage, stop, campaign);
  });

  it('the next leader is told, while the record names one that is gone', async () => {
    const { stage, b, stop, campaign } = await behindLeader();
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    await stage.clock.advance(0);
    await campaign;
    const c = new Contestant(stage, 'c');
    const third = c.campaign('wait', stop.signal);
    await stage.clock.advance(0);
    const [second] = stage.store.places('jobs');
    expect(c.following).toMatchObject([[second, { kind: 'led', id: 'b' }]]);
    expect(b.told).toEqual([]);
    // A candidate that does not wait is told the same, and enters nothing.
    const d = new Contestant(stage, 'd');
    expect(await d.campaign('none')).toBeUndefined();
    expect(d.told).toMatchObject([{ kind: 'led', id: 'b' }]);
    expect(d.session.sent.get('enter')).toBeUndefined();
    await stopped(stage, stop, third);
  });

  it('it looks again when half a minute is over, less a random tenth, and no sooner', async () => {
    const { stage, b, stop, campaign } = await behindLeader();
    const before = total(b.session);
    await stage.clock.advance(0.95 * 30_000 - 1);
    expect(total(b.session)).toBe(before);
    b.session.hintMs = noHints;
    await stage.clock.advance(1);
    expect(total(b.session)).toBeGreaterThan(before);
    await stopped(stage, stop, campaign);
  });

  it('it notices, when it looks, that its own place is gone, and enters again', async () => {
    const { stage, b, stop, campaign } = await behindLeader();
    b.session.hintMs = noHints;
    stage.store.deletePlace(stage.store.places('jobs')[1] as string);
    await stage.clock.advance(0.95 * 30_000 - 1);
    expect(stage.store.waiting('jobs')).toEqual(['a']);
    await stage.clock.advance(1);
    expect(stage.store.waiting('jobs')).toEqual(['a', 'b']);
    await stopped(stage, stop, campaign);
  });

  it('it keeps one watch on its own place, however often the one before it changes', async () => {
    const watched = new Map<string, number>();
    const stage = new Stage();
    const [a, x] = [new Contestant(stage, 'a'), new Contestant(stage, 'x')];
    await a.win();
    const stopX = new AbortController();
    const between = x.campaign('wait', stopX.signal);
    await stage.clock.advance(0);
    const says = (store: QueueStore): Partial<QueueStore> => ({
      watchPlace: async (name, signal) => {
        const watch = await store.watchPlace(name, signal);
        watched.set(name, (watched.get(name) ?? 0) + 1);
        return watch;
      },
    });
    const b = new Contestant(stage, 'b', { says });
    const stop = new AbortController();
    const campaign = b.campaign('wait', stop.signal);
    await stage.clock.advance(0);
    await stopped(stage, stopX, between);
    await stage.clock.advance(0);
    const [first, own] = stage.store.places('jobs') as [string, string];
    expect([watched.get(first), watched.get(own)]).toEqual([1, 1]);
    // Nothing was heard for long, so both are watched anew.
    await stage.clock.advance(30_000);
    expect([watched.get(first), watched.get(own)]).toEqual([2, 2]);
    await stopped(stage, stop, campaign);
  });

  it('a place of its own that is gone before it can be watched is noticed at once', async () => {
    let own: string | undefined;
    let stage: Stage | undefined;
    let cancelled = 0;
    const {
      stage: made,
      b,
      stop,
      campaign,
    } = await behindLeader((store) => ({
      enter: async (entry, signal) => {
        const place = await store.enter(entry, signal);
        own ??= place.name;
        return place;
      },
      watchPlace: async (name, signal) => {
        if (name !== own || stage === undefined) return store.watchPlace(name, signal);
        stage.store.deletePlace(name);
        const watched = await store.watchPlace(name, signal);
        const cancel = () => {
          cancelled += 1;
          watched.cancel();
        };
        return { ...watched, cancel };
      },
    }));
    stage = made;
    // The first time it is not deleted. Then its session ends, and all is new.
    own = undefined;
    b.session.expire();
    await stage.clock.advance(1_000);
    expect(stage.store.waiting('jobs')).toEqual(['a', 'b']);
    expect(stage.store.places('jobs')).not.toContain(own);
    // No watch goes on for a place that is gone.
    expect(cancelled).toBe(1);
    await stopped(stage, stop, campaign);
  });

  it('one before it that is gone before it can be watched is noticed at once', async () => {
    const stage = new Stage();
    const seat = await new Contestant(stage, 'a').win();
    const [first] = stage.store.places('jobs');
    const b = new Contestant(stage, 'b', {
      says: (store) => ({
        watchPlace: async (name, signal) => {
          if (name === first) await seat.release(end, never);
          return store.watchPlace(name, signal);
        },
      }),
    });
    const campaign = b.campaign();
    await stage.clock.advance(0);
    expect((await campaign)?.token).toBeGreaterThan(seat.token);
  });

  it('one before it that waits, and leaves, is noticed: the next one is watched', async () => {
    const { stage, a, seat, stop, campaign } = await behindLeader();
    const c = new Contestant(stage, 'c');
    const third = c.campaign();
    await stage.clock.advance(0);
    await stopped(stage, stop, campaign);
    await stage.clock.advance(0);
    const [first] = stage.store.places('jobs');
    expect(c.following.at(-1)?.[0]).toBe(first);
    expect(stage.store.waiting('jobs')).toEqual(['a', 'c']);
    await seat.release(end, never);
    await stage.clock.advance(0);
    expect((await third)?.token).toBeGreaterThan(seat.token);
    expect(a.troubles).toEqual([]);
  });

  it('a watch that cannot be set is tried again less and less soon', async () => {
    const stage = new Stage();
    await new Contestant(stage, 'a').win();
    const triedAtMs: number[] = [];
    const says = (): Partial<QueueStore> => ({
      watchPlace: async () => {
        triedAtMs.push(stage.clock.monotonicMs());
        throw new StoreUnavailableError('not now');
      },
    });
    const stop = new AbortController();
    const campaign = new Contestant(stage, 'b', { says }).campaign('wait', stop.signal);
    await stage.clock.advance(10_000);
    const tries = [...new Set(triedAtMs)].slice(0, 4);
    const pauses = tries.slice(1).map((atMs, index) => atMs - (tries[index] as number));
    expect(pauses[1]).toBeGreaterThan(1.2 * (pauses[0] as number));
    expect(pauses[2]).toBeGreaterThan(1.2 * (pauses[1] as number));
    await stopped(stage, stop, campaign);
  });

  it('a watch that cannot be set is tried again', async () => {
    const stage = new Stage();
    await new Contestant(stage, 'a').win();
    for (const failing of ['own', 'before']) {
      let failed = 0;
      let cancelled = 0;
      let own: string | undefined;
      const says = (store: QueueStore): Partial<QueueStore> => ({
        enter: async (entry, signal) => {
          const place = await store.enter(entry, signal);
          own = place.name;
          return place;
        },
        watchPlace: async (name, signal) => {
          if (failed === 0 && (name === own) === (failing === 'own')) {
            failed += 1;
            throw new StoreUnavailableError('not now');
          }
          const watched = await store.watchPlace(name, signal);
          const cancel = () => {
            cancelled += 1;
            watched.cancel();
          };
          return { ...watched, cancel };
        },
      });
      const stop = new AbortController();
      const b = new Contestant(stage, `b ${failing}`, { says });
      const campaign = b.campaign('wait', stop.signal);
      await stage.clock.advance(1_000);
      expect(b.troubles).toEqual(['campaigning']);
      expect(stage.store.waiting('jobs')).toEqual(['a', `b ${failing}`]);
      // The watch on the place before is of no use without the one on its own. Its own watch stays.
      expect(cancelled).toBe(failing === 'own' ? 1 : 0);
      await stopped(stage, stop, campaign);
      expect(cancelled).toBe(failing === 'own' ? 3 : 2);
    }
  });
});

describe('the mark of the end', () => {
  it('is watched before the place is made, and ends the wait', async () => {
    const mark = new Mark();
    const { stage, campaign } = await behindLeader(() => ({ endMark: mark }));
    expect(mark.watches).toBe(1);
    mark.tell(true);
    await stage.clock.advance(0);
    await expect(campaign).rejects.toMatchObject({ code: 'ELECTION_ENDED' });
    expect(stage.store.waiting('jobs')).toEqual(['a']);
  });

  it('is not watched by the candidate any more when it has won', async () => {
    const stage = new Stage();
    const mark = new Mark();
    let cancelled = 0;
    const watch = async () => {
      const cancel = () => {
        cancelled += 1;
      };
      return { ...(await mark.watch()), cancel };
    };
    const { isSet, set, clear } = mark;
    const says = () => ({ endMark: { isSet, watch, set, clear } });
    await new Contestant(stage, 'a', { says }).win();
    expect(mark.watches).toBe(1);
    expect(cancelled).toBe(1);
  });

  it('that can no longer be told of, or was taken back, is watched anew', async () => {
    const mark = new Mark();
    const { stage, stop, campaign } = await behindLeader(() => ({ endMark: mark }));
    mark.tell(false);
    await stage.clock.advance(0);
    expect(mark.watches).toBe(2);
    expect(stage.store.waiting('jobs')).toEqual(['a', 'b']);
    await stopped(stage, stop, campaign);
  });

  it.each(['by the watch', 'by a look'])('that was set before is seen %s', async (how) => {
    const stage = new Stage();
    const mark = new Mark();
    mark.isThere = true;
    const watched = { watch: mark.watch.bind(mark), set: mark.set, clear: mark.clear };
    const isSet = async () => how !== 'by the watch';
    const a = new Contestant(stage, 'a', { says: () => ({ endMark: { ...watched, isSet } }) });
    await expect(stage.soon(a.campaign())).rejects.toMatchObject({ code: 'ELECTION_ENDED' });
    expect(stage.store.waiting('jobs')).toEqual([]);
  });

  it('that comes while the win is on its way ends it', async () => {
    const stage = new Stage();
    const mark = new Mark();
    const a = new Contestant(stage, 'a', { says: () => ({ endMark: mark }) });
    a.session.hold('commit');
    const campaign = a.campaign();
    await stage.clock.advance(0);
    mark.tell(true);
    await stage.clock.advance(0);
    a.session.release('commit');
    await expect(stage.soon(campaign)).rejects.toMatchObject({ code: 'ELECTION_ENDED' });
    expect(stage.store.waiting('jobs')).toEqual([]);
    expect(stage.store.record('jobs')?.holding).toBeUndefined();
  });

  it('and an election that was never made is no end, but one that is gone with it is', async () => {
    const stage = new Stage();
    const mark = new Mark();
    let version: number | undefined;
    const says = (store: QueueStore): Partial<QueueStore> => ({
      endMark: mark,
      look: async (signal) => {
        const { names, reading } = await store.look(signal);
        return { names, reading: { ...reading, version } };
      },
    });
    await new Contestant(stage, 'a').win();
    const b = new Contestant(stage, 'b', { says });
    const campaign = b.campaign();
    await stage.clock.advance(0);
    // It has entered, although nothing was there.
    expect(stage.store.waiting('jobs')).toEqual(['a', 'b']);
    version = 1;
    stage.store.deletePlace(stage.store.places('jobs')[1] as string);
    await stage.clock.advance(0);
    expect(stage.store.waiting('jobs')).toEqual(['a', 'b']);
    version = undefined;
    stage.store.deletePlace(stage.store.places('jobs')[1] as string);
    await expect(stage.soon(campaign)).rejects.toMatchObject({ code: 'ELECTION_ENDED' });
  });
});

describe('the seat is free, and not for it', () => {
  it.each(notForIt)('%s', async (_what, fields, why) => {
    const stage = new Stage();
    const nowMs = stage.clock.wallMs();
    stage.store.put('jobs', closedSince(nowMs, fields));
    const a = new Contestant(stage, 'a');
    if (why === undefined) {
      await a.win();
      expect(a.told).toEqual([]);
      return;
    }
    expect(await a.campaign('none')).toBeUndefined();
    expect(a.told).toEqual([{ ...why, untilUnixMs: nowMs + closedMs }]);
    expect(stage.store.waiting('jobs')).toEqual([]);
    const campaign = a.campaign();
    await stage.clock.advance(closedMs - 1);
    expect(stage.store.record('jobs')?.token).toBe(0n);
    await stage.clock.advance(1);
    expect((await campaign)?.token).toBe(stage.store.record('jobs')?.token);
  });

  it('and a clock that is set back does not keep it closed for longer', async () => {
    const stage = new Stage();
    stage.store.put('jobs', {
      ...blank,
      reservation: { for: 'x', reserveMs: 5_000, untilUnixMs: stage.clock.wallMs() + 5_000 },
    });
    const a = new Contestant(stage, 'a');
    const campaign = a.campaign();
    await stage.clock.advance(1_000);
    stage.clock.stepWall(-3_600_000);
    await stage.clock.advance(3_999);
    expect(stage.store.record('jobs')?.token).toBe(0n);
    await stage.clock.advance(1);
    expect((await campaign)?.token).toBe(stage.store.record('jobs')?.token);
  });

  it.each<readonly [string, (untilUnixMs: number) => Partial<QueueRecord>]>([
    ['a drain', (untilUnixMs) => ({ drains: [{ id: 'a', untilUnixMs }] })],
    [
      'a reservation',
      (untilUnixMs) => ({ reservation: { for: 'x', reserveMs: 1e6, untilUnixMs } }),
    ],
  ])('and an operator who lifts %s is noticed within a poll', async (_what, fields) => {
    const stage = new Stage();
    stage.store.put('jobs', { ...blank, ...fields(stage.clock.wallMs() + 1e6) });
    const a = new Contestant(stage, 'a');
    const campaign = a.campaign();
    await stage.clock.advance(100);
    stage.store.put('jobs', blank);
    await stage.clock.advance(timing.pollEveryMs - 100);
    expect(await campaign).toBeDefined();
    expect(a.told).toHaveLength(1);
  });

  it('but for a candidate that stands behind it: it goes behind that one', async () => {
    const { stage, seat, b, campaign } = await behindLeader();
    const c = new Contestant(stage, 'c');
    const third = c.campaign();
    await stage.clock.advance(0);
    await seat.release({ ...end, reserveMs: 5_000, reservedFor: 'c' }, never);
    await stage.clock.advance(0);
    expect((await third)?.token).toBe(stage.store.record('jobs')?.token);
    await stage.clock.advance(0);
    expect(stage.store.waiting('jobs')).toEqual(['c', 'b']);
    expect(b.told).toMatchObject([{ kind: 'reserved', for: 'c' }]);
    void campaign;
  });

  it('another candidate behind it is no reason to go', async () => {
    const { stage, seat, b } = await behindLeader();
    void new Contestant(stage, 'c').campaign();
    await stage.clock.advance(0);
    await seat.release({ ...end, reserveMs: 5_000, reservedFor: 'x' }, never);
    await stage.clock.advance(3_000);
    expect(stage.store.waiting('jobs')).toEqual(['b', 'c']);
    expect(b.session.sent.get('enter')).toBe(1);
  });

  it('a candidate that is alone does not ask who stands behind it', async () => {
    const { stage, seat, b } = await behindLeader();
    const before = b.session.sent.get('members');
    await seat.release({ ...end, reserveMs: 5_000, reservedFor: 'x' }, never);
    await stage.clock.advance(3_000);
    // It has looked at once, and after each second.
    expect(b.told.map(({ kind }) => kind)).toEqual(Array(4).fill('reserved'));
    expect(b.session.sent.get('members')).toBe(before);
  });

  it('held by one that is gone, whose work is done', async () => {
    const { stage, seat, b, campaign } = await behindLeader();
    const held = { ms: 20_000, untilUnixMs: stage.clock.wallMs() + 20_000 };
    expect(await seat.confirm({ ...seat.state, held }, never)).toMatchObject({ state: { held } });
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    await stage.clock.advance(19_999);
    expect(b.told[0]).toEqual({ kind: 'held', by: 'a', untilUnixMs: held.untilUnixMs });
    await stage.clock.advance(1);
    // By then the belief of the one before is over as well.
    expect(await campaign).toMatchObject({ waitBeforeAnnounceMs: 0 });
  });
});

describe('a candidate that does not wait', () => {
  it('is told that another was elected since it asked, and leaves', async () => {
    const stage = new Stage();
    const a = new Contestant(stage, 'a');
    a.session.hold('enter');
    const campaign = a.campaign('none');
    await stage.clock.advance(0);
    const b = new Contestant(stage, 'b');
    const seat = await b.win();
    await seat.release(end, never);
    a.session.release('enter');
    await stage.clock.advance(0);
    expect(await campaign).toBeUndefined();
    expect(a.told).toMatchObject([{ kind: 'led', id: 'b', over: true }]);
    expect(stage.store.places('jobs')).toEqual([]);
  });

  it('has nobody to wait for after a term that had ended before it asked', async () => {
    const stage = new Stage();
    const seat = await new Contestant(stage, 'b').win();
    await seat.release(end, never);
    const a = new Contestant(stage, 'a');
    expect((await a.campaign('none'))?.token).toBeGreaterThan(seat.token);
    expect(a.told).toEqual([]);
  });

  it('finds its own announcement that was not answered', async () => {
    const stage = new Stage();
    const a = new Contestant(stage, 'a');
    a.session.next('commit', { fail: 'after' });
    const campaign = a.campaign('none');
    await stage.clock.advance(timing.retryBackoffMs);
    expect((await campaign)?.token).toBe(stage.store.record('jobs')?.token);
  });

  it('and that others come before at the same time goes', async () => {
    const stage = new Stage();
    const a = new Contestant(stage, 'a');
    a.session.hold('enter');
    const campaign = a.campaign('none');
    await stage.clock.advance(0);
    const b = new Contestant(stage, 'b');
    const seat = await b.win();
    a.session.release('enter');
    await stage.clock.advance(0);
    expect(await campaign).toBeUndefined();
    expect(a.following).toMatchObject([[expect.any(String), { id: 'b', token: seat.token }]]);
    expect(stage.store.waiting('jobs')).toEqual(['b']);
  });
});

describe('for how long a winner waits', () => {
  it('behind one that is gone: its belief, from when it was seen to be gone', async () => {
    const { stage, seat, campaign } = await behindLeader();
    await stage.clock.advance(10_000);
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    await stage.clock.advance(0);
    const next = (await campaign)!;
    expect(next.waitBeforeAnnounceMs).toBeCloseTo(waitMs, 6);
    expect(next.state.announced).toBe(false);
    expect(next.unfenced).toMatchObject([{ token: seat.token }]);
  });

  it('and less by the time that it has waited for its own place', async () => {
    const { stage, campaign } = await behindLeader();
    const c = new Contestant(stage, 'c');
    const third = c.campaign();
    await stage.clock.advance(0);
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    await stage.clock.advance(0);
    const second = (await campaign)!;
    await stage.clock.advance(1_000);
    // It has not looked since, so it does not know for how long the first is gone.
    await second.abandon(never);
    await stage.clock.advance(0);
    expect((await third)?.waitBeforeAnnounceMs).toBeCloseTo(waitMs, 6);
  });

  it('each winner its delay, whatever leader was before, from when it is the first', async () => {
    const stage = new Stage({ settings: { delayAfterWinMs: 700 } });
    const a = new Contestant(stage, 'a');
    const seat = await a.win();
    expect(seat.waitBeforeAnnounceMs).toBe(700);
    expect(seat.state.announced).toBe(false);
    await stage.clock.advance(700);
    await seat.confirm({ ...seat.state, announced: true }, never);
    await seat.release(end, never);
    const b = new Contestant(stage, 'b');
    b.session.next('confirm', { replyMs: 100 });
    const second = b.campaign();
    await stage.clock.advance(100);
    expect((await second)?.waitBeforeAnnounceMs).toBe(600);
  });

  it('nothing, where it does not wait for the one before', async () => {
    const stage = new Stage({ settings: { waitsForPredecessor: false } });
    await new Contestant(stage, 'a').win();
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    const seat = await new Contestant(stage, 'b').win();
    expect(seat.waitBeforeAnnounceMs).toBe(0);
    expect(seat.unfenced).toMatchObject([{ id: 'a' }]);
  });

  it('nothing, after its own term', async () => {
    const stage = new Stage();
    const a = new Contestant(stage, 'a');
    const seat = await a.win();
    await seat.abandon(never);
    const again = await a.win();
    expect(again.waitBeforeAnnounceMs).toBe(0);
    expect(again.unfenced).toEqual([]);
    expect(again.predecessor).toMatchObject({ id: 'a', clean: true });
  });

  it.each([
    ['directly behind one that ended clean: nothing', 0, 0],
    ['with one between that writes no record: a belief', 1, waitMs],
  ])('beside others, %s', async (_what, others, expected) => {
    const stage = new Stage({ isMixed: true });
    const first = await new Contestant(stage, 'a').win();
    // A leader may have led before there was a record.
    expect(first.waitBeforeAnnounceMs).toBeCloseTo(waitMs, 6);
    await stage.clock.advance(5_000);
    await first.confirm({ ...first.state, announced: true }, never);
    for (let i = 0; i < others; i += 1) {
      stage.store.deletePlace(stage.store.enterForeign('jobs', `theirs ${i}`));
    }
    await first.release(end, never);
    const next = await new Contestant(stage, 'b').win();
    expect(next.waitBeforeAnnounceMs).toBeCloseTo(expected, 6);
  });

  it('the record is deleted by hand: a belief, for a candidate that has met a leader', async () => {
    const { stage, b, stop, campaign } = await behindLeader();
    stage.store.put('jobs', undefined);
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    await stage.clock.advance(0);
    expect((await campaign)?.waitBeforeAnnounceMs).toBeCloseTo(waitMs, 6);
    expect(b.told).toEqual([]);
    stop.abort();
    // A candidate that has met no leader has none to wait for.
    const fresh = new Stage();
    fresh.store.put('jobs', blank);
    const c = await new Contestant(fresh, 'c').win();
    expect(c.waitBeforeAnnounceMs).toBe(0);
    expect(c.state.announced).toBe(true);
    expect(beliefMs).toBe(timing.beliefMs);
  });

  it('the record is deleted by hand before the candidate has read it: a belief, since the one before may have led', async () => {
    const stage = new Stage();
    const a = new Contestant(stage, 'a');
    a.session.hold('commit');
    const first = a.campaign();
    await stage.clock.advance(0);
    const b = new Contestant(stage, 'b');
    const campaign = b.campaign();
    await stage.clock.advance(0);
    expect(stage.store.record('jobs')).toBeUndefined();
    // The candidate watches the place before it, so it does not read the announcement.
    a.session.release('commit');
    await stage.clock.advance(0);
    expect((await first)?.state.announced).toBe(true);
    stage.store.put('jobs', undefined);
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    await stage.clock.advance(0);
    const next = await campaign;
    expect(next?.waitBeforeAnnounceMs).toBeCloseTo(waitMs, 6);
    expect(next?.state.announced).toBe(false);
  });
});

describe('a store that was set up anew', () => {
  it.each([0n, 1n])('is refused: its numbers are below those of the record (by %s)', async (by) => {
    const stage = new Stage();
    // The place will have the number 2.
    stage.store.put('jobs', { ...blank, token: 2n + by, place: 'somebody' });
    const a = new Contestant(stage, 'a');
    await expect(stage.soon(a.campaign())).rejects.toMatchObject({ code: 'STORE_UNSUITABLE' });
    expect(stage.store.places('jobs')).toEqual([]);
  });
});

it('names that come again: a place of its name that is another’s is not its own', async () => {
  let lost: string | undefined;
  const { stage, seat, campaign } = await behindLeader(() => ({
    isSame: async ({ name }) => name !== lost,
  }));
  [, lost] = stage.store.places('jobs');
  await seat.release(end, never);
  await stage.clock.advance(0);
  // It was the first, by its name. It enters again behind the candidate that has that place.
  expect(stage.store.places('jobs')).not.toContain(lost);
  expect(stage.store.record('jobs')?.place).toBe(stage.store.places('jobs')[0]);
  expect((await campaign)?.token).toBe(stage.store.record('jobs')?.token);
});

it('a term has the name that the candidate was presented by last', async () => {
  const stage = new Stage();
  const a = new Contestant(stage, 'a');
  a.contest.present({ id: 'a', incarnation: 'twice', addresses: [], metadata: {} });
  await a.win();
  expect(stage.store.record('jobs')?.holding?.candidate.incarnation).toBe('twice');
  expect(a.contest.standAsideMs).toBe(1_000);
});
