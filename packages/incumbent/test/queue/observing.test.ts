// The views of an observer of an election, and when they come.
import { describe, expect, it } from 'vitest';
import type { Timer } from '../../src/base/clock.ts';
import { StoreUnsuitableError } from '../../src/base/errors.ts';
import type { QueueStore } from '../../src/mechanisms/queue/store.ts';
import type { QueueRecord } from '../../src/record/queue-record.ts';
import type { View } from '../../src/record/record.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import type { ContestantOptions } from './contestant.ts';
import { Contestant, never, timing } from './contestant.ts';
import { Stage } from './support.ts';

const noHints = 1e9;
const end = { reason: 'resigned', hasLed: true, fromUnixMs: 1, toUnixMs: 2, unfenced: [] } as const;

/** An observer. `told` has the changes. */
function watcher(stage: Stage, options: ContestantOptions = {}) {
  const { election, session } = new Contestant(stage, 'watcher', options);
  const told: string[] = [];
  const views: View[] = [];
  const stop = new AbortController();
  const watching = (async () => {
    for await (const view of election.observe(stop.signal)) {
      views.push(view);
      told.push(view.state === 'led' ? `led by ${view.leader?.id}` : view.state);
      // A bound, so that a hot loop ends.
      if (told.length > 1_000) break;
    }
  })();
  return { election, session, told, views, stop, watching, last: () => views.at(-1)! };
}

describe.each([false, true])('an observer (others are members: %s)', (isMixed) => {
  it('is shown every change at once, and looks no oftener', async () => {
    const stage = new Stage({ isMixed });
    const { session, told, stop, watching } = watcher(stage);
    await stage.clock.advance(0);
    expect(told).toEqual(['vacant']);
    const a = new Contestant(stage, 'a');
    const { clock } = stage;
    void a.campaign().then(async (seat) => {
      if (!isMixed) return;
      await clock.sleep(5_000);
      await seat?.confirm({ ...seat.state, announced: true }, never);
    });
    await stage.clock.advance(6_000);
    expect(told.at(-1)).toBe('led by a');
    const before = told.length;
    const watches = session.sent.get('watch')!;
    // The next look: thirty seconds after the last.
    await stage.clock.advance(23_000);
    expect(told).toHaveLength(before);
    expect(session.sent.get('watch')).toBe(watches);
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    await stage.clock.advance(0);
    expect(told.slice(before)).toEqual(['vacant']);
    stop.abort();
    await watching;
  });

  it('looks again after thirty seconds, should it not have been told', async () => {
    const stage = new Stage({ isMixed });
    const { session, told, stop, watching } = watcher(stage);
    session.hintMs = noHints;
    await stage.clock.advance(0);
    stage.store.put('jobs', { ...blank, ended: true });
    await stage.clock.advance(29_999);
    expect(told).toEqual(['vacant']);
    await stage.clock.advance(1);
    expect(told).toEqual(['vacant', 'ended']);
    stop.abort();
    await watching;
  });

  it('is shown that the store is away, and the present view when it is back', async () => {
    const stage = new Stage({ isMixed });
    const { session, told, stop, watching } = watcher(stage);
    await stage.clock.advance(0);
    session.suspend();
    await stage.clock.advance(0);
    expect(told).toEqual(['vacant', 'unknown']);
    session.restore();
    await stage.clock.advance(0);
    expect(told.at(-1)).toBe('vacant');
    session.outage = 'refuses';
    session.expire();
    await stage.clock.advance(0);
    expect(told.at(-1)).toBe('unknown');
    const before = told.length;
    session.outage = 'none';
    await stage.clock.advance(timing.pollEveryMs - 1);
    expect(told).toHaveLength(before);
    await stage.clock.advance(1);
    expect(told.slice(before)).toEqual(['vacant']);
    stop.abort();
    await watching;
  });
});

const blank: QueueRecord = {
  election: 'jobs',
  token: 0n,
  place: '',
  nonce: 'n',
  beliefMs: 0,
  ended: false,
  holding: undefined,
  reservation: undefined,
  unfenced: [],
  drains: [],
  history: [],
};

it('what waiting cannot cure is looked at as seldom as all else', async () => {
  const stage = new Stage();
  let looks = 0;
  const says = (): Partial<QueueStore> => ({
    watchRecord: async () => {
      looks += 1;
      throw new StoreUnsuitableError('not a store of ours');
    },
  });
  const { views, stop, watching } = watcher(stage, { says });
  await stage.clock.advance(29_999);
  expect(looks).toBe(1);
  expect(views).toMatchObject([{ state: 'unknown', error: { code: 'STORE_UNSUITABLE' } }]);
  await stage.clock.advance(1);
  expect(looks).toBe(2);
  stop.abort();
  await watching;
});

it('a seat is vacant since it was seen to be so, each time anew', async () => {
  const stage = new Stage();
  const { last, told, stop, watching } = watcher(stage);
  const startMs = stage.clock.wallMs();
  // No record is written without a leader: the queue is looked at, and the start of the view
  // stays the same.
  await stage.clock.advance(31_000);
  expect(last()).toMatchObject({ state: 'vacant', sinceUnixMs: startMs });
  expect(told).toHaveLength(2);
  const seats: Contestant[] = [];
  for (const [id, goneMs] of [
    ['a', 1_000],
    ['b', 20_000],
  ] as const) {
    const one = new Contestant(stage, id);
    seats.push(one);
    const won = one.campaign();
    await stage.clock.advance(5_000);
    const seat = (await won)!;
    await seat.confirm({ ...seat.state, announced: true }, never);
    await stage.clock.advance(goneMs);
    expect(last()).toMatchObject({ state: 'led' });
    const goneUnixMs = stage.clock.wallMs();
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    await stage.clock.advance(40_000);
    expect(last()).toMatchObject({ state: 'vacant', sinceUnixMs: goneUnixMs });
  }
  stop.abort();
  await watching;
});

it('a seat that was given back is vacant since then, by the record', async () => {
  const stage = new Stage();
  const { last, stop, watching } = watcher(stage);
  for (const toUnixMs of [1, 2]) {
    const seat = await new Contestant(stage, 'a').win();
    await seat.release({ ...end, toUnixMs }, never);
    await stage.clock.advance(10);
  }
  expect(last()).toMatchObject({ state: 'vacant', sinceUnixMs: 2 });
  stage.store.put('jobs', { ...stage.store.record('jobs')!, ended: true });
  await stage.clock.advance(10);
  expect(last()).toMatchObject({ state: 'ended', sinceUnixMs: 2 });
  stop.abort();
  await watching;
});

it('while the last leader ends its work, an election that is over is still led', async () => {
  const stage = new Stage();
  const { told, stop, watching } = watcher(stage);
  const seat = await new Contestant(stage, 'a').win();
  await stage.clock.advance(10);
  stage.store.put('jobs', { ...stage.store.record('jobs')!, ended: true });
  await stage.clock.advance(10);
  expect(told.at(-1)).toBe('led by a');
  stage.store.deletePlace(stage.store.places('jobs')[0] as string);
  await stage.clock.advance(10);
  expect(told.at(-1)).toBe('ended');
  expect(seat.token).toBe(stage.store.record('jobs')?.token);
  stop.abort();
  await watching;
});

it('a watch that fires late, of an earlier look, wakes nobody up', async () => {
  const stage = new Stage();
  const tell: (() => void)[] = [];
  let cancelled = 0;
  const says = (store: QueueStore): Partial<QueueStore> => ({
    watchRecord: async (signal) => {
      const { value, cancel } = await store.watchRecord(signal);
      const changed = new Promise<void>((resolve) => tell.push(resolve));
      return {
        value,
        changed,
        cancel: () => {
          cancelled += 1;
          cancel();
        },
      };
    },
  });
  const { told, stop, watching } = watcher(stage, { says });
  await stage.clock.advance(30_000);
  expect(told).toHaveLength(2);
  expect(cancelled).toBe(1);
  tell[0]!();
  await stage.clock.advance(1_000);
  expect(told).toHaveLength(2);
  tell[1]!();
  await stage.clock.advance(0);
  expect(told).toHaveLength(3);
  expect(cancelled).toBe(2);
  stop.abort();
  await watching;
  expect(cancelled).toBe(3);
});

it('nobody who only watches keeps the process alive, or is told after the end', async () => {
  const asked: (boolean | undefined)[] = [];
  class NotingClock extends SimulatedClock {
    override setTimer(callback: () => void, delayMs: number, background?: boolean): Timer {
      if (delayMs === 30_000) asked.push(background);
      return super.setTimer(callback, delayMs);
    }
  }
  const stage = new Stage({}, new NotingClock());
  const { session, told, stop, watching } = watcher(stage);
  await stage.clock.advance(0);
  expect(asked).toEqual([true]);
  stop.abort();
  await watching;
  session.suspend();
  session.restore();
  await stage.clock.advance(60_000);
  expect(told).toEqual(['vacant']);
});

describe('one look', () => {
  it('tells all that stands in the record', async () => {
    const stage = new Stage();
    const a = new Contestant(stage, 'a');
    const seat = await a.win();
    const wallMs = stage.clock.wallMs();
    const { election } = new Contestant(stage, 'watcher');
    const drains = [
      { id: 'x', untilUnixMs: wallMs + 1 },
      { id: 'y', untilUnixMs: wallMs },
    ];
    stage.store.put('jobs', { ...stage.store.record('jobs')!, drains });
    expect(await election.inspect(never)).toMatchObject({
      view: { state: 'led', leader: { id: 'a' }, token: seat.token },
      leaseMs: 10_000,
      holderGone: false,
      drains: [drains[0]],
    });
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    expect(await election.inspect(never)).toMatchObject({
      view: { state: 'vacant', token: seat.token, sinceUnixMs: wallMs },
      leaseMs: undefined,
      holderGone: true,
    });
  });

  it('of an election that nobody has led tells of nobody', async () => {
    const stage = new Stage();
    const { election } = new Contestant(stage, 'watcher');
    const snapshot = await election.inspect(never);
    expect(snapshot).toEqual({
      view: { state: 'vacant', sinceUnixMs: stage.clock.wallMs() },
      history: [],
      drains: [],
      request: undefined,
      unfenced: [],
      leaseMs: undefined,
      holderGone: false,
    });
    stage.store.put('jobs', blank);
    // A record that only an operator has written: no term, so no token.
    expect((await election.inspect(never)).view).toEqual(snapshot.view);
  });

  it.each([1, 0])('tells of a reservation that is over in %s ms', async (ms) => {
    const stage = new Stage();
    const untilUnixMs = stage.clock.wallMs() + ms;
    stage.store.put('jobs', { ...blank, reservation: { for: 'b', reserveMs: 5, untilUnixMs } });
    const { reservation } = await new Contestant(stage, 'w').election.inspect(never);
    expect(reservation).toEqual(ms === 0 ? undefined : { for: 'b', untilUnixMs });
  });

  it('sees earlier writes of others, whatever its server knows', async () => {
    const stage = new Stage();
    const { election, session } = new Contestant(stage, 'watcher');
    session.lag();
    await new Contestant(stage, 'a').win();
    expect((await election.inspect(never)).view).toMatchObject({ state: 'led' });
    session.lag();
    await new Contestant(stage, 'b').campaign('none');
    expect((await election.candidates(never)).map(({ id }) => id)).toEqual(['a']);
  });

  it('shows one of theirs as leading as soon as it is the first', async () => {
    const stage = new Stage({ isMixed: true });
    const { election } = new Contestant(stage, 'watcher');
    const { told, stop, watching } = watcher(stage);
    stage.store.enterForeign('jobs', 'theirs');
    stage.store.enterForeign('jobs', 'behind');
    await stage.clock.advance(0);
    const view = { state: 'led', leader: { id: 'theirs' }, sinceUnixMs: stage.clock.wallMs() };
    expect((await election.inspect(never)).view).toMatchObject(view);
    expect(told.at(-1)).toBe('led by theirs');
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    // One of ours leads only when the record says so.
    void new Contestant(stage, 'ours').campaign();
    await stage.clock.advance(0);
    expect((await election.inspect(never)).view).toMatchObject({ state: 'vacant' });
    expect(told.at(-1)).toBe('vacant');
    stop.abort();
    await watching;
  });
});

it('the candidates are listed in order, the leader as it has proclaimed itself', async () => {
  const stage = new Stage();
  const seat = await new Contestant(stage, 'a').win();
  await seat.confirm({ ...seat.state, addresses: ['here:1'] }, never);
  void new Contestant(stage, 'b').campaign();
  await stage.clock.advance(0);
  const { election } = new Contestant(stage, 'watcher');
  expect(await election.candidates(never)).toMatchObject([
    { id: 'a', addresses: ['here:1'] },
    { id: 'b', addresses: [] },
  ]);
});
