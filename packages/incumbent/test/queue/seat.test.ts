// The duties of a seat to its term: what it confirms, when it is lost, and what it leaves behind.
import { describe, expect, it } from 'vitest';
import { StoreUnavailableError, StoreUnsuitableError } from '../../src/base/errors.ts';
import type { Seat, SeatEnd, SeatEvents } from '../../src/core/contest.ts';
import type { QueueStore } from '../../src/mechanisms/queue/store.ts';
import type { QueueRecord } from '../../src/record/queue-record.ts';
import { emptyQueueRecord } from '../../src/record/queue-record.ts';
import type { SimulatedQueueOptions } from '../../src/testing/index.ts';
import type { ContestantOptions } from './contestant.ts';
import { Contestant, Mark, never } from './contestant.ts';
import { Stage, waitMs } from './support.ts';

/** No hint arrives. */
const noHints = 1e9;
const hourMs = 3_600_000;

const clean: SeatEnd = {
  reason: 'resigned',
  hasLed: true,
  fromUnixMs: 1,
  toUnixMs: 2,
  unfenced: [],
};

async function seated(
  options: ContestantOptions = {},
  store: Omit<SimulatedQueueOptions, 'clock'> = {},
) {
  const stage = new Stage(store);
  const a = new Contestant(stage, 'a', options);
  const seat = await a.win();
  const commits = () => a.session.sent.get('commit') ?? 0;
  const place = stage.store.places('jobs')[0] as string;
  const record = () => stage.store.record('jobs')!;
  return { stage, a, seat, commits, place, record };
}

/** Won behind a leader that is gone without a word: not announced yet. */
async function waitingSeat(options: ContestantOptions = {}) {
  const stage = new Stage();
  await new Contestant(stage, 'before').win();
  stage.store.deletePlace(stage.store.places('jobs')[0] as string);
  const a = new Contestant(stage, 'a', options);
  const seat = await a.win();
  const record = () => stage.store.record('jobs')!;
  return { stage, a, seat, record, announced: { ...seat.state, announced: true } };
}

/** Notes the events that the term gets. */
function attached(seat: Seat<bigint>): string[] {
  const told: string[] = [];
  const events: SeatEvents = {
    onRequest: ({ kind }) => void told.push(kind),
    onDrained: () => void told.push('drained'),
    onElectionEnded: () => void told.push('ended'),
    onHint: () => void told.push('hint'),
    onUncertain: () => void told.push('uncertain'),
    onDisconnected: () => void told.push('disconnected'),
    onLost: (reason) => void told.push(reason),
  };
  seat.attach(events);
  return told;
}

describe('a write without an answer', () => {
  it('is looked for before the next one: if it has landed, nothing is written again', async () => {
    const { a, seat, commits } = await seated();
    const next = { ...seat.state, metadata: { port: '1' } };
    a.session.next('commit', { fail: 'after' });
    await expect(seat.confirm(next, never)).rejects.toThrow();
    const before = commits();
    expect(await seat.confirm(next, never)).toMatchObject({ outcome: 'confirmed', state: next });
    expect(commits()).toBe(before);
  });

  it('that has not landed is written again, once', async () => {
    const { a, seat, commits, record } = await seated();
    const next = { ...seat.state, metadata: { port: '1' } };
    a.session.next('commit', { fail: 'before' });
    await expect(seat.confirm(next, never)).rejects.toThrow();
    const before = commits();
    expect(await seat.confirm(next, never)).toMatchObject({ outcome: 'confirmed', state: next });
    expect(commits()).toBe(before + 1);
    expect(record().holding?.candidate.metadata).toEqual({ port: '1' });
    // The shown state is known again: from now on only its place is confirmed, and nothing is read.
    const reads = a.session.sent.get('read');
    expect(await seat.confirm(next, never)).toMatchObject({ outcome: 'confirmed' });
    expect(commits()).toBe(before + 1);
    expect(a.session.sent.get('read')).toBe(reads);
  });

  it('announces a term that has waited, if it has landed', async () => {
    const { stage, a, seat, record, announced } = await waitingSeat();
    await stage.clock.advance(5_000);
    a.session.next('commit', { fail: 'after' });
    await expect(seat.confirm(announced, never)).rejects.toThrow();
    const before = a.session.sent.get('commit');
    expect(await seat.confirm(announced, never)).toMatchObject({ state: announced });
    expect(a.session.sent.get('commit')).toBe(before);
    // It is a term of ours now, and ends as one.
    expect(await seat.release(clean, never)).toBe(true);
    expect(record()).toMatchObject({ token: seat.token, holding: undefined });
    expect(record().history.map(({ id, why }) => `${id} ${why}`)).toEqual([
      'before unclean',
      'a resigned',
    ]);
  });

  it('that has landed, and that was emptied by hand since, is not written again', async () => {
    const stage = new Stage();
    const unfenced = [{ id: 'x', incarnation: '', addresses: [], metadata: {}, token: 1n }];
    const before = await new Contestant(stage, 'before').win();
    await before.release({ ...clean, unfenced }, never);
    const a = new Contestant(stage, 'a');
    const seat = await a.win();
    expect(seat.state.announced).toBe(false);
    a.session.next('commit', { fail: 'after' });
    await expect(seat.confirm({ ...seat.state, announced: true }, never)).rejects.toThrow();
    stage.store.put('jobs', { ...stage.store.record('jobs')!, holding: undefined });
    const commits = a.session.sent.get('commit');
    expect(await seat.confirm({ ...seat.state, announced: true }, never)).toMatchObject({
      outcome: 'lost',
      reason: 'record-gone',
    });
    expect(a.session.sent.get('commit')).toBe(commits);
  });

  it('of a term that was not announced is taken back when it ends', async () => {
    const { stage, a, seat, record, announced } = await waitingSeat();
    await stage.clock.advance(5_000);
    a.session.next('commit', { fail: 'after' });
    await expect(seat.confirm(announced, never)).rejects.toThrow();
    expect(record().holding?.candidate.id).toBe('a');
    expect(await seat.release({ ...clean, hasLed: false }, never)).toBe(true);
    expect(record().holding).toBeUndefined();
    expect(record().unfenced.map(({ id }) => id)).toEqual(['before']);
    expect(stage.store.places('jobs')).toEqual([]);
  });
});

describe('the cost and the effect of a confirmation', () => {
  it('a write that others are faster than is tried three times', async () => {
    let tries = 0;
    let isBusy = false;
    const says = (store: QueueStore): Partial<QueueStore> => ({
      commit: async (...args) => {
        if (!isBusy) return store.commit(...args);
        tries += 1;
        return { outcome: 'conflict' };
      },
    });
    const { seat } = await seated({ says });
    isBusy = true;
    const next = { ...seat.state, metadata: { port: '1' } };
    expect(await seat.confirm(next, never)).toEqual({ outcome: 'unresolved' });
    expect(tries).toBe(3);
    isBusy = false;
    expect(await seat.confirm(next, never)).toMatchObject({ outcome: 'confirmed', state: next });
  });

  it('a state that the record shows is not written again', async () => {
    const { stage, seat, commits } = await seated();
    await stage.clock.advance(10);
    expect(await seat.confirm(seat.state, never)).toMatchObject({
      outcome: 'confirmed',
      sentAt: { monotonicMs: 10 },
    });
    expect(commits()).toBe(1);
  });

  it('one proof serves one confirmation', async () => {
    const { stage, a, seat } = await seated();
    for (const atMs of [10, 20, 30]) {
      await stage.clock.advance(10);
      const { sentAt } = (await seat.confirm(seat.state, never)) as never;
      expect(sentAt).toMatchObject({ monotonicMs: atMs });
    }
    expect(a.session.sent.get('confirm')).toBe(3);
  });

  it('and that of another term on the session, if it came after all that shook the seat', async () => {
    const { stage, a, seat } = await seated();
    const b = new Contestant(stage, 'b', { name: 'other', session: a.session });
    const other = await b.win();
    attached(seat);
    const sent = () => a.session.sent.get('confirm') ?? 0;
    await stage.clock.advance(10);
    await other.confirm(other.state, never);
    expect(await seat.confirm(seat.state, never)).toMatchObject({ sentAt: { monotonicMs: 10 } });
    expect(sent()).toBe(1);
    await stage.clock.advance(10);
    await other.confirm(other.state, never);
    await stage.clock.advance(10);
    a.session.suspend();
    a.session.restore();
    // That of 20 ms came before.
    expect(await seat.confirm(seat.state, never)).toMatchObject({ sentAt: { monotonicMs: 30 } });
    expect(sent()).toBe(3);
    await stage.clock.advance(10);
    a.session.suspend();
    a.session.restore();
    // The proof of 30 ms was for both. The second time it asks anew, at the very time
    // of the return.
    await other.confirm(other.state, never);
    await other.confirm(other.state, never);
    await stage.clock.advance(10);
    expect(await seat.confirm(seat.state, never)).toMatchObject({ sentAt: { monotonicMs: 40 } });
    expect(sent()).toBe(4);
  });

  it('the announcement is a proof as well, and one that was sent before it is none any more', async () => {
    const { stage, a, seat } = await seated();
    const b = new Contestant(stage, 'b', { name: 'other', session: a.session });
    const other = await b.win();
    await stage.clock.advance(5);
    // For both terms.
    await other.confirm(other.state, never);
    await stage.clock.advance(5);
    const next = { ...seat.state, metadata: { port: '1' } };
    expect(await seat.confirm(next, never)).toMatchObject({ sentAt: { monotonicMs: 10 } });
    await stage.clock.advance(10);
    expect(await seat.confirm(next, never)).toMatchObject({ sentAt: { monotonicMs: 20 } });
    expect(a.session.sent.get('confirm')).toBe(2);
  });

  it('a record that must not be written leaves the place to be confirmed', async () => {
    let isDenied = false;
    const says = (store: QueueStore): Partial<QueueStore> => ({
      commit: async (...args) => {
        if (isDenied) throw new StoreUnsuitableError('no right');
        return store.commit(...args);
      },
    });
    const { a, seat } = await seated({ says });
    isDenied = true;
    const next = { ...seat.state, metadata: { port: '1' } };
    const { state } = seat;
    expect(await seat.confirm(next, never)).toMatchObject({ outcome: 'confirmed', state });
    expect(a.troubles).toEqual(['writing the record']);
  });

  it('but not a term that was never announced', async () => {
    let isDenied = false;
    const says = (store: QueueStore): Partial<QueueStore> => ({
      commit: async (...args) => {
        if (isDenied) throw new StoreUnsuitableError('no right');
        return store.commit(...args);
      },
    });
    const { seat, announced } = await waitingSeat({ says });
    isDenied = true;
    await expect(seat.confirm(announced, never)).rejects.toThrow('no right');
  });

  it('and a failure that waiting may cure is not told as confirmed', async () => {
    const { a, seat } = await seated();
    a.session.next('commit', { fail: 'before' });
    const next = { ...seat.state, metadata: { port: '1' } };
    await expect(seat.confirm(next, never)).rejects.toThrow(StoreUnavailableError);
    expect(a.troubles).toEqual([]);
  });
});

type Change = (record: QueueRecord, wallMs: number) => QueueRecord | undefined;

const drained =
  (id: string, ms: number): Change =>
  (record, wallMs) => ({ ...record, drains: [{ id, untilUnixMs: wallMs + ms }] });
const vacant: Change = (record) => ({ ...record, holding: undefined });
const confirmed = { outcome: 'confirmed' };
const unresolved = { outcome: 'unresolved' };
const lostTo = (reason: string) => ({ outcome: 'lost', reason, endsBelief: false });

describe('the record is changed by others', () => {
  it.each<readonly [string, Change, object, readonly string[]]>([
    ['deletes it', () => undefined, lostTo('record-gone'), []],
    ['empties the seat', vacant, lostTo('record-gone'), []],
    [
      'names a later term',
      (record) => ({ ...record, token: record.token + 1n }),
      lostTo('superseded'),
      [],
    ],
    [
      'is a copy of this process',
      (record) => ({ ...record, nonce: 'its' }),
      lostTo('superseded'),
      [],
    ],
    [
      'takes the seat away',
      (record) => ({ ...record, holding: { ...record.holding!, revoked: true } }),
      lostTo('vacated'),
      [],
    ],
    [
      'asks the leader to go',
      (record) => ({
        ...record,
        holding: { ...record.holding!, request: { kind: 'vacate', nonce: 'n' } },
      }),
      confirmed,
      ['vacate'],
    ],
    ['ends the election', (record) => ({ ...record, ended: true }), confirmed, ['ended']],
    ['drains it', drained('a', hourMs), confirmed, ['drained']],
    ['drains another', drained('b', hourMs), confirmed, []],
    ['has drained it until now', drained('a', 0), confirmed, []],
  ])('%s', async (_what, change, outcome, events) => {
    const { stage, seat, record } = await seated();
    const told = attached(seat);
    await stage.clock.advance(10);
    expect(told).toEqual([]);
    stage.store.put('jobs', change(record(), stage.clock.wallMs()));
    await stage.clock.advance(0);
    expect(told).toEqual(['hint']);
    expect(await seat.confirm(seat.state, never)).toMatchObject(outcome);
    expect(told).toEqual(['hint', ...events]);
  });

  it.each<readonly [string, Change, object, readonly string[]]>([
    ['empties the seat', vacant, lostTo('record-gone'), []],
    ['deletes it', () => undefined, lostTo('record-gone'), []],
    [
      'names another leader',
      (record) => ({ ...record, holding: { ...record.holding!, place: 'x' } }),
      lostTo('superseded'),
      [],
    ],
    [
      'names a term after ours',
      (record) => ({ ...record, token: 1_000n }),
      lostTo('superseded'),
      [],
    ],
    ['drains it', drained('a', hourMs), unresolved, ['drained']],
    ['drains it until now', drained('a', 0), confirmed, []],
    ['drains another', drained('b', hourMs), confirmed, []],
    ['ends the election', (record) => ({ ...record, ended: true }), unresolved, ['ended']],
    [
      'asks the one before to go',
      (record) => ({
        ...record,
        holding: { ...record.holding!, request: { kind: 'vacate', nonce: 'n' } },
      }),
      confirmed,
      [],
    ],
  ])('while the seat waits for the one before: %s', async (_what, change, outcome, events) => {
    const { stage, seat, record, announced } = await waitingSeat();
    const told = attached(seat);
    await stage.clock.advance(5_000);
    expect(told).toEqual([]);
    stage.store.put('jobs', change(record(), stage.clock.wallMs()));
    await stage.clock.advance(0);
    expect(told).toEqual(['hint']);
    expect(await seat.confirm(announced, never)).toMatchObject(outcome);
    expect(told).toEqual(['hint', ...events]);
    const names = stage.store.record('jobs')?.holding?.candidate.id === 'a';
    expect(names).toBe(outcome === confirmed);
  });

  it('and beside members that do not wait, belief ends with the seat', async () => {
    const { stage, seat, record } = await seated({}, { isMixed: true });
    attached(seat);
    await stage.clock.advance(5_000);
    const announced = { ...seat.state, announced: true };
    expect(await seat.confirm(announced, never)).toMatchObject(confirmed);
    stage.store.put('jobs', { ...record(), nonce: 'its' });
    await stage.clock.advance(0);
    expect(await seat.confirm(announced, never)).toMatchObject({
      ...lostTo('superseded'),
      endsBelief: true,
    });
  });

  it('an operator’s request from before the win is told at once', async () => {
    const { stage, seat, record } = await seated();
    const { holding } = record();
    stage.store.put('jobs', {
      ...record(),
      holding: { ...holding!, request: { kind: 'vacate', nonce: 'n' } },
    });
    const told = attached(seat);
    await stage.clock.advance(0);
    // By the watch that is set then.
    expect(told).toEqual(['hint']);
    await seat.confirm(seat.state, never);
    expect(told).toEqual(['hint', 'vacate']);
  });
});

describe('the place is gone', () => {
  it.each<readonly [string, Change, string]>([
    ['by hand', (record) => record, 'record-gone'],
    ['with the election', (record) => ({ ...record, ended: true }), 'election-ended'],
    [
      'by force',
      (record) => ({ ...record, holding: { ...record.holding!, revoked: true } }),
      'vacated',
    ],
    ['for a later term', (record) => ({ ...record, token: record.token + 1n }), 'superseded'],
    ['with the record', () => undefined, 'record-gone'],
  ])('%s', async (_what, change, reason) => {
    const { stage, a, seat, record, place } = await seated();
    a.session.hintMs = noHints;
    stage.store.put('jobs', change(record(), 0));
    stage.store.deletePlace(place);
    expect(await seat.confirm(seat.state, never)).toEqual({ outcome: 'lost', reason });
    const next = { ...seat.state, metadata: { port: '1' } };
    expect(await seat.confirm(next, never)).toMatchObject({ outcome: 'lost', reason });
    expect(a.troubles).toEqual([]);
  });

  it('and nobody can say why', async () => {
    const { stage, a, seat, place } = await seated();
    stage.store.deletePlace(place);
    a.session.next('read', { fail: 'before' });
    expect(await seat.confirm(seat.state, never)).toEqual({
      outcome: 'lost',
      reason: 'record-gone',
    });
    expect(a.troubles).toEqual(['looking why a place is gone']);
  });

  it('where others do not wait there is no time to look why', async () => {
    const { stage, a, seat, place } = await seated({}, { isMixed: true });
    stage.store.deletePlace(place);
    const reads = a.session.sent.get('read');
    expect(await seat.confirm(seat.state, never)).toEqual({
      outcome: 'lost',
      reason: 'record-gone',
    });
    expect(a.session.sent.get('read')).toBe(reads);
  });

  it('with its session', async () => {
    const { a, seat } = await seated();
    const sent = () => [...a.session.sent.values()].reduce((sum, n) => sum + n, 0);
    a.session.expire();
    const before = sent();
    expect(await seat.confirm(seat.state, never)).toEqual({
      outcome: 'lost',
      reason: 'session-expired',
    });
    expect(sent()).toBe(before);
  });

  it('with its session, which this side hears of only now', async () => {
    const { a, seat } = await seated();
    a.session.expire({ unheard: true });
    expect(await seat.confirm(seat.state, never)).toEqual({
      outcome: 'lost',
      reason: 'session-expired',
    });
  });

  it('with its session, which this side hears of while it looks why', async () => {
    const { stage, a, seat, place } = await seated();
    stage.store.deletePlace(place);
    a.session.hold('read');
    const confirming = seat.confirm(seat.state, never);
    await stage.clock.advance(10);
    a.session.expire();
    a.session.release('read');
    expect(await confirming).toEqual({ outcome: 'lost', reason: 'session-expired' });
  });
});

describe('events for the term', () => {
  it.each([
    [false, 'uncertain'],
    [true, 'disconnected'],
  ])('when the store is away (steps down then: %s)', async (stepsDownWhenDisconnected, word) => {
    const { stage, a, seat } = await seated({}, { settings: { stepsDownWhenDisconnected } });
    const told = attached(seat);
    await stage.clock.advance(0);
    a.session.suspend();
    expect(told).toEqual([word]);
    a.session.restore();
    expect(told).toEqual([word, 'hint']);
  });

  it('when the store is away already', async () => {
    const { a, seat } = await seated();
    a.session.suspend();
    expect(attached(seat)).toEqual(['uncertain']);
  });

  it('when its session ends, and when it has ended already', async () => {
    const { stage, a, seat } = await seated();
    const told = attached(seat);
    await stage.clock.advance(0);
    a.session.expire();
    expect(told).toEqual(['session-expired']);
    await stage.clock.advance(0);
    const again = await a.win();
    a.session.expire();
    expect(attached(again)).toEqual(['session-expired']);
  });

  it('when its place is gone, once', async () => {
    const { stage, seat, place } = await seated();
    const told = attached(seat);
    await stage.clock.advance(0);
    stage.store.deletePlace(place);
    await stage.clock.advance(10_000);
    expect(told).toEqual(['hint']);
  });

  it('not of its own writes, and of nothing when it has ended', async () => {
    const { stage, a, seat, record } = await seated();
    const told = attached(seat);
    await stage.clock.advance(0);
    await seat.confirm({ ...seat.state, metadata: { port: '1' } }, never);
    await stage.clock.advance(10);
    const before = told.length;
    expect(await seat.release(clean, never)).toBe(true);
    await stage.clock.advance(10);
    const watches = a.session.sent.get('watch');
    stage.store.put('jobs', { ...record(), ended: true });
    a.session.suspend();
    a.session.restore();
    await stage.clock.advance(10);
    expect(told).toHaveLength(before);
    expect(a.session.sent.get('watch')).toBe(watches);
  });
});

describe('the mark of the end', () => {
  async function marked() {
    const mark = new Mark();
    const stand = await seated({ says: () => ({ endMark: mark }) });
    const told = attached(stand.seat);
    await stand.stage.clock.advance(0);
    return { ...stand, mark, told };
  }

  it('that says the same as the record ends the term in order', async () => {
    const { stage, a, mark, told, record } = await marked();
    a.session.hintMs = noHints;
    stage.store.put('jobs', { ...record(), ended: true });
    mark.isThere = true;
    mark.tell(true);
    await stage.clock.advance(0);
    expect(told.filter((word) => word !== 'hint')).toContain('ended');
    expect(told).not.toContain('election-ended');
    expect(stage.store.waiting('jobs')).toEqual(['a']);
  });

  it.each(['alone', 'and no answer why'])('%s takes the place away at once', async (how) => {
    const { stage, a, seat, mark, told } = await marked();
    if (how !== 'alone') a.session.next('read', { fail: 'before' });
    mark.isThere = true;
    mark.tell(true);
    await stage.clock.advance(0);
    expect(told[0]).toBe('election-ended');
    expect(stage.store.waiting('jobs')).toEqual([]);
    expect(a.troubles).toEqual(how === 'alone' ? [] : ['looking why the election is over']);
    // A later release hears that the place was not its own any more.
    expect(await seat.release(clean, never)).toBe(false);
    await seat.abandon(never);
  });

  it('and a place that cannot be taken away is said to be left behind', async () => {
    const { stage, a, seat, mark, told } = await marked();
    a.session.next('leave', { fail: 'before' });
    mark.isThere = true;
    mark.tell(true);
    await stage.clock.advance(0);
    expect(told[0]).toBe('election-ended');
    await expect(seat.release(clean, never)).rejects.toMatchObject({ name: 'LeftBehindError' });
    await expect(seat.abandon(never)).rejects.toMatchObject({ name: 'LeftBehindError' });
    await stage.clock.advance(1_000);
    expect(stage.store.waiting('jobs')).toEqual([]);
  });

  it('that was set before the term began is heard of', async () => {
    const mark = new Mark();
    const { stage, seat } = await seated({ says: () => ({ endMark: mark }) });
    mark.isThere = true;
    const told = attached(seat);
    await stage.clock.advance(0);
    expect(told[0]).toBe('election-ended');
    expect(stage.store.waiting('jobs')).toEqual([]);
  });

  it('that was taken back, or can no longer be told of, is watched again', async () => {
    const { stage, mark, told } = await marked();
    const { watches } = mark;
    mark.tell(false);
    await stage.clock.advance(0);
    expect(told).toEqual([]);
    expect(mark.watches).toBe(watches + 1);
    mark.tell(true);
    await stage.clock.advance(0);
    expect(told[0]).toBe('election-ended');
  });

  it('is gone with all of the election: that is an end as well', async () => {
    const mark = new Mark();
    let isGone = false;
    const says = (store: QueueStore): Partial<QueueStore> => ({
      endMark: mark,
      read: async (signal) =>
        isGone ? { record: undefined, version: undefined } : store.read(signal),
    });
    const { stage, seat, record } = await seated({ says });
    attached(seat);
    await stage.clock.advance(0);
    isGone = true;
    stage.store.put('jobs', { ...record() });
    await stage.clock.advance(0);
    expect(await seat.confirm(seat.state, never)).toMatchObject({
      outcome: 'lost',
      reason: 'election-ended',
    });
  });
});

describe('a seat is given back', () => {
  it('with its leader, and the leaders that are still to be fenced', async () => {
    const { stage, seat, record } = await seated();
    const unfenced = [{ id: 'x', incarnation: '', addresses: [], metadata: {}, token: 1n }];
    const end = { ...clean, unfenced, reserveMs: 500, reservedFor: 'b' };
    const { nonce } = record();
    expect(await seat.release(end, never)).toBe(true);
    expect(stage.store.places('jobs')).toEqual([]);
    expect(record()).toMatchObject({
      holding: undefined,
      unfenced,
      reservation: { for: 'b', reserveMs: 500, untilUnixMs: stage.clock.wallMs() + 500 },
      history: [{ token: seat.token, id: 'a', fromUnixMs: 1, toUnixMs: 2, why: 'resigned' }],
    });
    expect(record().nonce).not.toBe(nonce);
  });

  it('and by one that has not led, without a word of it', async () => {
    const { seat, record } = await seated();
    expect(await seat.release({ ...clean, hasLed: false }, never)).toBe(true);
    expect(record()).toMatchObject({ holding: undefined, history: [], reservation: undefined });
  });

  it('that was never announced: the record stays that of the one before', async () => {
    const { stage, seat, record } = await waitingSeat();
    const before = record();
    expect(await seat.release({ ...clean, hasLed: false }, never)).toBe(true);
    expect(stage.store.places('jobs')).toEqual([]);
    expect(record()).toBe(before);
  });

  it('that was never announced: an operator who changes the record meanwhile does not hinder that', async () => {
    const { stage, a, seat, record } = await waitingSeat();
    expect(attached(seat)).toEqual([]);
    await stage.clock.advance(0);
    stage.store.put('jobs', { ...record(), drains: [{ id: 'x', untilUnixMs: 1e15 }] });
    const changed = record();
    await stage.clock.advance(0);
    const reads = a.session.sent.get('read');
    expect(await seat.release({ ...clean, hasLed: false }, never)).toBe(true);
    expect(stage.store.places('jobs')).toEqual([]);
    expect(record()).toBe(changed);
    expect(a.session.sent.get('read')).toBe(reads);
  });

  it('that is not there any more: it was not ours', async () => {
    const { stage, seat, record, place } = await seated();
    const before = record();
    stage.store.deletePlace(place);
    expect(await seat.release(clean, never)).toBe(false);
    expect(record()).toBe(before);
  });

  it('after the end of its session: nothing is asked', async () => {
    const { a, seat, record } = await seated();
    const before = record();
    a.session.expire();
    expect(await seat.release(clean, never)).toBe(false);
    expect(record()).toBe(before);
    expect(a.session.sent.get('release')).toBeUndefined();
  });

  it('that the record does not name any more after a write without an answer', async () => {
    const { stage, a, seat } = await seated();
    a.session.next('commit', { fail: 'before' });
    await expect(seat.confirm({ ...seat.state, addresses: ['x'] }, never)).rejects.toThrow();
    stage.store.put('jobs', undefined);
    expect(await seat.release(clean, never)).toBe(false);
    expect(stage.store.record('jobs')).toBeUndefined();
    // No candidate could lead behind its place.
    await stage.clock.advance(1_000);
    expect(stage.store.places('jobs')).toEqual([]);
  });

  it('that the record does not name any more: the place alone is given up', async () => {
    const { stage, seat } = await seated();
    stage.store.put('jobs', undefined);
    expect(await seat.release(clean, never)).toBe(true);
    expect(stage.store.record('jobs')).toBeUndefined();
    expect(stage.store.places('jobs')).toEqual([]);
  });

  it('by an answer that was lost', async () => {
    const { stage, a, seat, record } = await seated();
    a.session.next('release', { lose: 'reply' });
    expect(await stage.soon(seat.release(clean, never))).toBe(true);
    expect(record().history).toHaveLength(1);
  });

  /** Attempts to give it back, all in vain, each of so many ms. */
  function inVain(lasts: readonly number[] = []) {
    const times: number[] = [];
    let clock: Stage['clock'] | undefined;
    const says = (): Partial<QueueStore> => ({
      release: async () => {
        const ms = lasts[times.length] ?? 0;
        times.push(clock?.monotonicMs() ?? 0);
        if (ms > 0) await clock?.sleep(ms);
        throw new StoreUnavailableError('not now');
      },
    });
    const use = (stage: Stage) => {
      clock = stage.clock;
    };
    return { times, says, use };
  }

  it('soon again, then less and less soon, and no longer than an operation and a half', async () => {
    const { times, says, use } = inVain();
    const { stage, a, seat } = await seated({ says });
    use(stage);
    const releasing = seat.release(clean, never);
    await expect(stage.soon(releasing)).rejects.toMatchObject({ name: 'LeftBehindError' });
    expect(times).toEqual([0, 50, 150, 350, 600, 850, 1_100, 1_350, 1_600]);
    expect(a.troubles).toEqual(times.map(() => 'releasing'));
    // It is not forgotten.
    await stage.clock.advance(1_000);
    expect(stage.store.places('jobs')).toEqual([]);
  });

  it('once more if exactly that time has passed', async () => {
    const { times, says, use } = inVain([700, 750]);
    const { stage, seat } = await seated({ says });
    use(stage);
    await expect(stage.soon(seat.release(clean, never))).rejects.toThrow();
    expect(times).toEqual([0, 750, 1_600]);
  });

  it('until the caller gives up', async () => {
    const { times, says, use } = inVain();
    const { stage, seat } = await seated({ says });
    use(stage);
    const enough = new AbortController();
    const releasing = seat.release(clean, enough.signal);
    releasing.catch(() => {});
    await stage.clock.advance(60);
    enough.abort(new Error('enough'));
    await expect(stage.soon(releasing)).rejects.toMatchObject({ name: 'LeftBehindError' });
    expect(times).toEqual([0, 50]);
    expect(stage.clock.monotonicMs()).toBeLessThan(150);
    await stage.clock.advance(1_000);
    expect(stage.store.places('jobs')).toEqual([]);
  });
});

describe('a seat is abandoned', () => {
  it('its place goes, and the record still names the leader that may believe', async () => {
    const { stage, seat, record } = await seated();
    await seat.abandon(never);
    expect(stage.store.places('jobs')).toEqual([]);
    expect(record().holding?.candidate.id).toBe('a');
  });

  it('a place that cannot be given up now is given up later', async () => {
    const { stage, a, seat } = await seated();
    a.session.next('leave', { fail: 'before' });
    await expect(seat.abandon(never)).rejects.toMatchObject({ name: 'LeftBehindError' });
    expect(stage.store.waiting('jobs')).toEqual(['a']);
    await stage.clock.advance(1_000);
    expect(stage.store.waiting('jobs')).toEqual([]);
  });
});

describe('what the record says of a term', () => {
  it('and the parts that stay when the term proclaims anew', async () => {
    const { stage, a, seat, record } = await seated();
    const { electedAtUnixMs } = record().holding!;
    a.session.hintMs = noHints;
    const request = { kind: 'vacate', nonce: 'n' } as const;
    const drains = [{ id: 'x', untilUnixMs: stage.clock.wallMs() + hourMs }];
    stage.store.put('jobs', {
      ...record(),
      drains,
      holding: { ...record().holding!, request },
    });
    await stage.clock.advance(1_000);
    const held = { ms: 5, untilUnixMs: 7 };
    const next = { ...seat.state, addresses: ['here:1'], metadata: { port: '1' }, held };
    expect(await seat.confirm(next, never)).toMatchObject({ state: next });
    expect(record()).toMatchObject({
      token: seat.token,
      beliefMs: 4_000,
      drains,
      history: [],
      holding: {
        candidate: { id: 'a', addresses: ['here:1'], metadata: { port: '1' } },
        electedAtUnixMs,
        leaseMs: 10_000,
        revoked: false,
        request,
        held,
      },
    });
  });

  it('a term that follows one which ended unclean says so, and takes nothing over from it', async () => {
    const { stage, seat, record, announced } = await waitingSeat();
    const before = record();
    const atWin = stage.clock.wallMs();
    expect(seat.waitBeforeAnnounceMs).toBeCloseTo(waitMs, 6);
    expect(seat.predecessor).toMatchObject({ id: 'before', clean: false, token: before.token });
    expect(seat.unfenced).toMatchObject([{ id: 'before', token: before.token }]);
    await stage.clock.advance(5_000);
    expect(await seat.confirm(announced, never)).toMatchObject(confirmed);
    expect(record()).toMatchObject({
      token: seat.token,
      place: stage.store.places('jobs')[0],
      unfenced: [],
      reservation: undefined,
      history: [
        {
          token: before.token,
          id: 'before',
          incarnation: 'once',
          toUnixMs: atWin + 5_000,
          why: 'unclean',
        },
      ],
      holding: { electedAtUnixMs: atWin + 5_000, request: undefined, revoked: false },
    });
    expect(record().nonce).not.toBe(before.nonce);
  });

  it('drains that are over for long are left out when it is announced', async () => {
    const stage = new Stage();
    const seat = await new Contestant(stage, 'before').win();
    await seat.release(clean, never);
    const untilUnixMs = stage.clock.wallMs() + hourMs;
    const drains = [
      { id: 'x', untilUnixMs: untilUnixMs - 100 * hourMs },
      { id: 'y', untilUnixMs },
    ];
    stage.store.put('jobs', { ...stage.store.record('jobs')!, drains });
    await new Contestant(stage, 'a').win();
    expect(stage.store.record('jobs')?.drains).toEqual(drains.slice(1));
  });

  it('the leader before is that of the last look, although an announcement was tried before it', async () => {
    const stage = new Stage();
    // The place of our candidate gets a number above that of the term below.
    stage.store.deletePlace(stage.store.enterForeign('jobs', 'x'));
    const a = new Contestant(stage, 'a');
    a.session.next('commit', { fail: 'before' });
    const campaign = a.campaign();
    await stage.clock.advance(0);
    expect(a.troubles).toEqual(['announcing']);
    const before = { id: 'x', incarnation: 'of x', token: 1n };
    const history = [{ ...before, fromUnixMs: 1, toUnixMs: 2, why: 'resigned' as const }];
    stage.store.put('jobs', { ...emptyQueueRecord('jobs', 'n'), token: 1n, place: 'x', history });
    await stage.clock.advance(1_000);
    expect((await campaign)?.predecessor).toMatchObject({ ...before, clean: true });
  });

  it('the leader before is the last one that ended', async () => {
    const stage = new Stage();
    for (const id of ['x', 'y']) {
      const seat = await new Contestant(stage, id).win();
      await seat.release({ ...clean, reason: id === 'x' ? 'vacated' : 'resigned' }, never);
    }
    const seat = await new Contestant(stage, 'a').win();
    expect(seat.predecessor).toMatchObject({ id: 'y', incarnation: 'once', clean: true });
    expect(seat.unfenced).toEqual([]);
    expect(seat.waitBeforeAnnounceMs).toBe(0);
  });
});
