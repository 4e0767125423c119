// The campaign of a candidate for the lock: what it is told, and for how long a winner waits.
import { describe, expect, it } from 'vitest';
import type { Seat } from '../../src/core/contest.ts';
import type { LockSettings } from '../../src/mechanisms/lock/settings.ts';
import type { QueueSession, SessionEvent } from '../../src/mechanisms/queue/store.ts';
import { Contestant, never } from '../queue/contestant.ts';
import { blank, closedMs, closedSince, notForIt } from '../queue/not-for-it.ts';
import { beliefMs, waitMs } from '../queue/support.ts';
import { LockStage } from './stage.ts';

const end = { reason: 'resigned', hasLed: true, fromUnixMs: 1, toUnixMs: 2, unfenced: [] } as const;

const announce = (seat: Seat<bigint>) => seat.confirm({ ...seat.state, announced: true }, never);

/** A holder of the lock, announced, and a candidate that waits for it. */
async function behindHolder(holder: { isAnnounced?: boolean; beliefMs?: number } = {}) {
  const stage = new LockStage();
  const a = new Contestant(stage, 'a');
  const seat = await a.win();
  const { isAnnounced = true, ...says } = holder;
  if (isAnnounced) {
    expect(await announce(seat)).toMatchObject({ outcome: 'confirmed' });
    stage.store.put('jobs', { ...stage.store.record('jobs')!, ...says });
  }
  const b = new Contestant(stage, 'b');
  const campaign = b.campaign();
  await stage.clock.advance(10);
  const deleteLock = async () => {
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    await stage.clock.advance(0);
  };
  return { stage, a, seat, b, campaign, deleteLock };
}

describe('for how long a winner waits', () => {
  it('behind one that is gone: its belief', async () => {
    const { seat, campaign, deleteLock } = await behindHolder();
    await deleteLock();
    const next = await campaign;
    expect(next?.waitBeforeAnnounceMs).toBeCloseTo(waitMs, 6);
    expect(next?.unfenced).toMatchObject([{ id: 'a', token: seat.token }]);
  });

  it('behind one that has given it back: not at all', async () => {
    const { stage, seat, campaign } = await behindHolder();
    await seat.release(end, never);
    await stage.clock.advance(0);
    expect(await campaign).toMatchObject({ waitBeforeAnnounceMs: 0, unfenced: [] });
  });

  it('behind one that was never announced: not at all', async () => {
    const { campaign, deleteLock } = await behindHolder({ isAnnounced: false });
    await deleteLock();
    expect(await campaign).toMatchObject({ waitBeforeAnnounceMs: 0, unfenced: [] });
  });

  it('where the record was deleted by hand: as if the one it has followed had led', async () => {
    const { stage, campaign, deleteLock } = await behindHolder();
    stage.wipe();
    await deleteLock();
    expect((await campaign)?.waitBeforeAnnounceMs).toBeCloseTo(waitMs, 6);
    // A candidate that has followed no leader has none to wait for.
    const fresh = new LockStage();
    fresh.wipe();
    expect((await new Contestant(fresh, 'c').win()).waitBeforeAnnounceMs).toBe(0);
  });

  it('and as long as that one believed, although an operator’s record says nothing of it', async () => {
    const { stage, campaign, deleteLock } = await behindHolder({ beliefMs: 2 * beliefMs });
    stage.wipe();
    stage.store.put('jobs', blank);
    // It looks again while the holder is there, and sees the operator's record.
    await stage.clock.advance(30_000);
    await deleteLock();
    expect((await campaign)?.waitBeforeAnnounceMs).toBeCloseTo(2 * waitMs, 6);
  });

  it('but not for one that ended clean before', async () => {
    const { stage, campaign, deleteLock } = await behindHolder({ beliefMs: 2 * beliefMs });
    // The next holder comes at once, without a notification in between.
    stage.store.put('jobs', { ...stage.store.record('jobs')!, holding: undefined });
    await stage.clock.advance(30_000);
    stage.wipe();
    await deleteLock();
    // A leader may have led whose record was deleted: it waits as long as we would believe.
    expect((await campaign)?.waitBeforeAnnounceMs).toBeCloseTo(waitMs, 6);
  });

  it('after its own term: not at all', async () => {
    const stage = new LockStage();
    const a = new Contestant(stage, 'a');
    const seat = await a.win();
    await announce(seat);
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    await expect(seat.release(end, never)).resolves.toBe(false);
    expect(await a.win()).toMatchObject({ waitBeforeAnnounceMs: 0, unfenced: [] });
  });

  it.each<readonly [string, Partial<LockSettings<bigint>>, number]>([
    ['each winner its delay', { delayAfterWinMs: 700 }, 700],
    ['the longer of both', { delayAfterWinMs: 7_000 }, 7_000],
    ['nothing, where it does not wait', { waitsForPredecessor: false }, 0],
  ])('%s', async (_what, settings, ms) => {
    const stage = new LockStage();
    stage.settings = settings;
    const seat = await new Contestant(stage, 'a').win();
    expect(seat.waitBeforeAnnounceMs).toBe(settings.delayAfterWinMs ?? 0);
    if (settings.delayAfterWinMs === 700) return;
    await announce(seat);
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    expect((await new Contestant(stage, 'b').win()).waitBeforeAnnounceMs).toBe(ms);
  });
});

describe('the lock is free, and not for it', () => {
  it.each(notForIt)('%s', async (_what, fields, why) => {
    const stage = new LockStage();
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
    const campaign = a.campaign();
    await stage.clock.advance(closedMs - 1);
    expect(stage.store.places('jobs')).toEqual([]);
    await stage.clock.advance(1);
    expect(await campaign).toBeDefined();
  });

  it('and an operator who lifts that is noticed within a poll', async () => {
    const stage = new LockStage();
    const untilUnixMs = stage.clock.wallMs() + 3_600_000;
    stage.store.put('jobs', { ...blank, drains: [{ id: 'a', untilUnixMs }] });
    const a = new Contestant(stage, 'a');
    const campaign = a.campaign();
    await stage.clock.advance(100);
    stage.store.put('jobs', blank);
    await stage.clock.advance(900);
    expect(await campaign).toBeDefined();
    // It has looked twice, and not more often.
    expect(a.told).toHaveLength(1);
  });
});

describe('a waiting candidate is told the holder of the lock', () => {
  it('by the record, if it names the holder', async () => {
    const { seat, b } = await behindHolder();
    expect(b.following).toMatchObject([
      [expect.any(String), { kind: 'led', id: 'a', token: seat.token }],
    ]);
    expect(b.session.sent.get('members')).toBe(1);
  });

  it('by the lock itself, if the record names another candidate', async () => {
    const { stage, campaign, deleteLock } = await behindHolder();
    await deleteLock();
    const seat = (await campaign)!;
    const c = new Contestant(stage, 'c');
    void c.campaign();
    await stage.clock.advance(0);
    expect(c.following).toMatchObject([
      [expect.any(String), { kind: 'led', id: 'b', token: seat.token }],
    ]);
  });

  it('and a holder that changes is followed', async () => {
    const { stage, seat, b } = await behindHolder();
    await seat.release({ ...end, reserveMs: 5_000, reservedFor: 'x' }, never);
    const x = new Contestant(stage, 'x');
    const next = await x.win();
    await stage.clock.advance(1_000);
    expect(b.following.at(-1)?.[1]).toMatchObject({ id: 'x', token: next.token });
  });
});

it('it looks again when half a minute is over, less a random tenth, and no sooner', async () => {
  const { stage, b } = await behindHolder();
  const total = () => [...b.session.sent.values()].reduce((sum, n) => sum + n, 0);
  const before = total();
  await stage.clock.advance(0.95 * 30_000 - 11);
  expect(total()).toBe(before);
  await stage.clock.advance(11);
  expect(total()).toBeGreaterThan(before);
});

it('a candidate that polls sets no watch, and looks so often, less a random tenth', async () => {
  const stage = new LockStage();
  stage.settings = { pollMs: 2_000 };
  const a = new Contestant(stage, 'a');
  const seat = await a.win();
  const b = new Contestant(stage, 'b');
  const campaign = b.campaign();
  await stage.clock.advance(10);
  await seat.release(end, never);
  await stage.clock.advance(1_889);
  expect(stage.store.places('jobs')).toEqual([]);
  await stage.clock.advance(1);
  expect(await campaign).toBeDefined();
  expect(b.session.sent.get('watch')).toBeUndefined();
});

it('a candidate that does not wait is told that another had it since it asked', async () => {
  const stage = new LockStage();
  const a = new Contestant(stage, 'a');
  // It finds the lock taken when it is about to take it, and then looks again.
  a.session.hold('list');
  const campaign = a.campaign('none');
  await stage.clock.advance(0);
  const b = new Contestant(stage, 'b');
  const seat = await b.win();
  await announce(seat);
  a.session.hold('read');
  a.session.release('list');
  await stage.clock.advance(0);
  await seat.release(end, never);
  a.session.release('read');
  await stage.clock.advance(0);
  expect(await campaign).toBeUndefined();
  expect(a.told).toMatchObject([{ kind: 'led', id: 'b', over: true }]);
  expect(stage.store.places('jobs')).toEqual([]);
});

it('a term has the name that the candidate was presented by last', async () => {
  const stage = new LockStage();
  const a = new Contestant(stage, 'a');
  a.contest.present({ id: 'a', incarnation: 'twice', addresses: [], metadata: {} });
  await announce(await a.win());
  expect(stage.store.record('jobs')?.holding?.candidate.incarnation).toBe('twice');
});

it('while the store has no quorum, nothing is concluded and nothing asked', async () => {
  const stage = new LockStage();
  const a = new Contestant(stage, 'a');
  a.session.suspend();
  expect(await a.campaign('none')).toBeUndefined();
  expect(a.told).toMatchObject([{ kind: 'unreachable' }]);
  expect(a.session.sent.size).toBe(0);
});

it('nor from an answer that comes when the quorum is gone', async () => {
  const stage = new LockStage();
  const a: Contestant = new Contestant(stage, 'a', {
    says: (store) => ({
      members: async (...args) => {
        const found = await store.members(...args);
        a.session.suspend();
        return found;
      },
    }),
  });
  const campaign = a.campaign('none');
  await stage.clock.advance(0);
  expect(a.session.sent.get('enter')).toBeUndefined();
  expect(await campaign).toBeUndefined();
  expect(a.told).toMatchObject([{ kind: 'unreachable' }]);
});

it('a connection that comes back while a candidate looks is no reason to look once more', async () => {
  const stage = new LockStage();
  await new Contestant(stage, 'a').win();
  const session = stage.store.connect();
  const listeners: ((event: SessionEvent) => void)[] = [];
  const events: { onEvent: QueueSession['onEvent'] } = session.session;
  const { onEvent } = events;
  events.onEvent = (listener) => {
    listeners.push(listener);
    return onEvent(listener);
  };
  const b = new Contestant(stage, 'b', { session });
  session.hold('members');
  void b.campaign();
  await stage.clock.advance(10);
  expect(session.held).toHaveLength(1);
  for (const listener of listeners) listener('restored');
  session.release('members');
  await stage.clock.advance(0);
  expect(b.following).toHaveLength(1);
  const looks = session.sent.get('members');
  await stage.clock.advance(1_000);
  expect(session.sent.get('members')).toBe(looks);
});

it('a candidate keeps one watch on the holder, and none when it gives up', async () => {
  const stage = new LockStage();
  await new Contestant(stage, 'a').win();
  let watches = 0;
  const b = new Contestant(stage, 'b', {
    says: (store) => ({
      watchList: async (signal) => {
        const watched = await store.watchList(signal);
        watches += 1;
        return {
          ...watched,
          cancel: () => {
            watches -= 1;
            watched.cancel();
          },
        };
      },
    }),
  });
  const stop = new AbortController();
  const campaign = b.campaign('wait', stop.signal);
  // It looks again every half a minute, whether its watch has told of something or not.
  for (let looks = 1; looks <= 4; looks += 1) {
    await stage.clock.advance(10);
    expect(b.following.length).toBeGreaterThanOrEqual(looks);
    expect(watches).toBe(1);
    await stage.clock.advance(30_000);
  }
  stop.abort(new Error('enough'));
  await expect(campaign).rejects.toThrow('enough');
  expect(watches).toBe(0);
});

it('a candidate that is drained while it has no answer leaves the lock to others on its client', async () => {
  const stage = new LockStage();
  const a = new Contestant(stage, 'a');
  const b = new Contestant(stage, 'b', { session: a.session });
  a.session.next('enter', { fail: 'before' });
  void a.campaign();
  await stage.clock.advance(0);
  const campaign = b.campaign();
  await stage.clock.advance(0);
  // For all that is known, the first attempt may have made it.
  expect(b.told).toMatchObject([{ kind: 'unreachable' }]);
  const untilUnixMs = stage.clock.wallMs() + 3_600_000;
  stage.store.put('jobs', { ...blank, drains: [{ id: 'a', untilUnixMs }] });
  await stage.clock.advance(1_000);
  expect(a.told.at(-1)).toEqual({ kind: 'drained', untilUnixMs });
  expect(await campaign).toBeDefined();
});

it('a drained candidate gives the lock up before it says that it is drained, and tries again if that failed', async () => {
  const stage = new LockStage();
  const a = new Contestant(stage, 'a');
  a.session.next('enter', { fail: 'before' });
  a.session.next('leave', { fail: 'before' });
  void a.campaign();
  await stage.clock.advance(0);
  const untilUnixMs = stage.clock.wallMs() + 3_600_000;
  stage.store.put('jobs', { ...blank, drains: [{ id: 'a', untilUnixMs }] });
  await stage.clock.advance(3_000);
  const kinds = a.told.map(({ kind }) => kind);
  expect(kinds.slice(0, 3)).toEqual(['unreachable', 'unreachable', 'drained']);
  expect(a.session.sent.get('leave')).toBe(2);
  expect(a.troubles).toEqual(['campaigning', 'campaigning']);
});

it('a candidate that another was faster than gives its attempt up before it waits, and tries again if that failed', async () => {
  const stage = new LockStage();
  const a = new Contestant(stage, 'a');
  a.session.next('enter', { fail: 'before' });
  a.session.next('leave', { fail: 'before' });
  const stop = new AbortController();
  const campaign = a.campaign('wait', stop.signal);
  await stage.clock.advance(0);
  const b = new Contestant(stage, 'b');
  const seat = await b.win();
  await announce(seat);
  await stage.clock.advance(3_000);
  expect(a.session.sent.get('leave')).toBe(2);
  expect(a.troubles).toEqual(['campaigning', 'campaigning']);
  expect(a.told.map(({ kind }) => kind)).toEqual(['unreachable', 'unreachable']);
  expect(a.following.length).toBeGreaterThan(0);
  stop.abort(new Error('enough'));
  await expect(stage.soon(campaign)).rejects.toThrow('enough');
});

describe('a candidate that does not wait looks again at once, and takes the lock', () => {
  it('when the holder gives it back before it can be watched', async () => {
    const stage = new LockStage();
    const seat = await new Contestant(stage, 'a').win();
    const b = new Contestant(stage, 'b', {
      says: (store) => ({
        watchList: async (signal) => {
          await seat.release(end, never);
          return store.watchList(signal);
        },
      }),
    });
    expect((await b.campaign('none'))?.token).toBeGreaterThan(seat.token);
    expect(b.told).toEqual([]);
  });

  it('when one of theirs with a higher number has come before its first attempt', async () => {
    const stage = new LockStage();
    stage.isTheirs = true;
    // The first lock that is made will have the number 2.
    const record = { ...blank, token: 3n, place: 'theirs' };
    stage.store.put('jobs', record);
    const a = new Contestant(stage, 'a');
    expect((await a.campaign('none'))?.token).toBeGreaterThan(record.token);
    expect(a.session.sent.get('enter')).toBe(2);
    expect(a.told).toEqual([]);
  });
});

it('a candidate that does not wait looks again when its lock is deleted while it finds out that it has it', async () => {
  const stage = new LockStage();
  let isHidden = false;
  let looks = 0;
  const a = new Contestant(stage, 'a', {
    says: (store) => ({
      // The attempt makes the lock, and is told of another holder.
      list: async (signal) => {
        const names = await store.list(signal);
        if (isHidden || names.length === 0) return names;
        isHidden = true;
        return ['another'];
      },
      leave: async () => {},
      members: async (...args) => {
        looks += 1;
        if (looks === 3) stage.store.deletePlace(stage.store.places('jobs')[0] as string);
        return store.members(...args);
      },
    }),
  });
  const campaign = a.campaign('none');
  await stage.clock.advance(1_000);
  expect(await campaign).toBeDefined();
  expect(looks).toBe(4);
  expect(a.told).toEqual([]);
});

it('a request to list the candidates is refused: the store cannot list them', async () => {
  const { election } = new LockStage().candidate('a');
  await expect(election.candidates()).rejects.toThrow('the simulated store cannot list candidates');
});
