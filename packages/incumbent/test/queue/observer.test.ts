// The views of an observer of a queue, and the result of one look at it.
import { describe, expect, it, test } from 'vitest';
import { viewOf } from '../../src/mechanisms/queue/observer.ts';
import type { Member } from '../../src/mechanisms/queue/store.ts';
import type { QueueHolding, QueueRecord } from '../../src/record/queue-record.ts';
import { emptyQueueRecord } from '../../src/record/queue-record.ts';
import type { View } from '../../src/record/record.ts';
import { Stage } from './support.ts';

const candidate = { id: 'a', incarnation: 'of a', addresses: [], metadata: {} };
const other = { id: 'b', incarnation: 'of b', addresses: [], metadata: {} };
const holding: QueueHolding = {
  candidate,
  place: 'p-1',
  electedAtUnixMs: 7,
  leaseMs: 10,
  revoked: false,
  request: undefined,
};
const empty = emptyQueueRecord('jobs', 'nonce');
const led: QueueRecord = { ...empty, token: 3n, place: 'p-1', holding };
const past = { id: 'b', incarnation: 'of b', token: 2n, fromUnixMs: 2, toUnixMs: 5 } as const;
const left: QueueRecord = {
  ...led,
  holding: undefined,
  history: [{ ...past, why: 'resigned' }],
};
const theirs: Member = { name: 'p-9', token: 8n, candidate: other, isOurs: false };
const ours: Member = { ...theirs, isOurs: true };

test.each<readonly [string, QueueRecord | undefined, boolean, Member | undefined, View]>([
  ['no record', undefined, false, undefined, { state: 'vacant', sinceUnixMs: 9 }],
  ['that of an operator', empty, false, undefined, { state: 'vacant', sinceUnixMs: 9 }],
  [
    'a leader',
    led,
    true,
    undefined,
    { state: 'led', leader: candidate, ready: true, token: 3n, sinceUnixMs: 7 },
  ],
  ['a leader that is gone', led, false, undefined, { state: 'vacant', token: 3n, sinceUnixMs: 9 }],
  ['one that has left', left, false, undefined, { state: 'vacant', token: 3n, sinceUnixMs: 5 }],
  [
    'one that has left no history',
    { ...left, history: [] },
    false,
    undefined,
    { state: 'vacant', token: 3n, sinceUnixMs: 9 },
  ],
  [
    'the end, while its leader goes',
    { ...led, ended: true },
    true,
    undefined,
    { state: 'led', leader: candidate, ready: true, token: 3n, sinceUnixMs: 7 },
  ],
  [
    'the end',
    { ...left, ended: true },
    false,
    undefined,
    { state: 'ended', token: 3n, sinceUnixMs: 5 },
  ],
  [
    'the end of what nobody has led',
    { ...empty, ended: true },
    false,
    undefined,
    { state: 'ended', sinceUnixMs: 9 },
  ],
  [
    'one that prepares its work',
    { ...led, holding: { ...(led.holding as QueueHolding), ready: false } },
    true,
    undefined,
    { state: 'led', leader: candidate, ready: false, token: 3n, sinceUnixMs: 7 },
  ],
  [
    'one of theirs, which is ready',
    led,
    false,
    theirs,
    { state: 'led', leader: other, ready: true, token: 8n, sinceUnixMs: 9 },
  ],
  ['one of ours', left, false, ours, { state: 'vacant', token: 3n, sinceUnixMs: 5 }],
])('%s', (_, record, isThere, first, view) => {
  expect(viewOf({ record, version: 1 }, isThere, first, 9)).toEqual(view);
});

/** Views that are told from now on. */
function watching(stage: Stage) {
  const { session, election } = stage.candidate('observer');
  const views: View[] = [];
  const watch = async () => {
    for await (const view of election.observe()) views.push({ ...view });
  };
  void watch();
  return { session, election, views };
}

describe('an observer', () => {
  it('is told since when nobody leads, each time anew', async () => {
    const stage = new Stage();
    const { clock } = stage;
    const startMs = clock.wallMs();
    const { election, views } = watching(stage);
    await clock.advance(1_000);
    const a = stage.candidate('a');
    await stage.soon(a.election.campaign());
    await clock.advance(1_000);
    a.session.expire();
    const goneMs = clock.wallMs();
    await clock.advance(5_000);
    expect(views).toMatchObject([
      { state: 'vacant', sinceUnixMs: startMs },
      { state: 'led', leader: { id: 'a' } },
      { state: 'vacant', sinceUnixMs: goneMs },
    ]);
    await election.close();
  });

  it('is told that the store is away, at once, and the present view when it is back', async () => {
    const stage = new Stage();
    const { clock } = stage;
    const { session, election, views } = watching(stage);
    await clock.advance(1_000);
    session.suspend();
    await clock.advance(0);
    expect(views.at(-1)).toMatchObject({ state: 'unknown', sinceUnixMs: clock.wallMs() });
    await clock.advance(5_000);
    session.restore();
    await clock.advance(0);
    expect(views.map(({ state }) => state)).toEqual(['vacant', 'unknown', 'vacant']);
    await election.close();
  });

  it('looks again as often as it polls while the store refuses, and else hardly ever', async () => {
    const stage = new Stage();
    const { clock } = stage;
    const { session, election, views } = watching(stage);
    await clock.advance(0);
    expect(session.sent.get('watch')).toBe(1);
    await clock.advance(29_999);
    expect(session.sent.get('watch')).toBe(1);
    session.outage = 'refuses';
    await clock.advance(1);
    expect(session.sent.get('watch')).toBe(2);
    await clock.advance(10_000);
    expect(session.sent.get('watch')).toBe(12);
    session.outage = 'none';
    await clock.advance(1_000);
    expect(views.map(({ state }) => state)).toEqual(['vacant', 'unknown', 'vacant']);
    await election.close();
    await clock.advance(60_000);
    expect(session.sent.get('watch')).toBe(13);
  });
});

describe('one look tells', () => {
  it('all that is in the record', async () => {
    const stage = new Stage();
    const { clock } = stage;
    const { election } = stage.candidate('o');
    const a = stage.candidate('a');
    await stage.soon(a.election.campaign());
    const nowMs = clock.wallMs();
    const request = { kind: 'vacate', nonce: 'x' } as const;
    const record = stage.store.record('jobs')!;
    a.session.hintMs = 1_000_000;
    stage.store.put('jobs', {
      ...record,
      holding: { ...record.holding!, request },
      drains: [
        { id: 'over', untilUnixMs: nowMs },
        { id: 'out', untilUnixMs: nowMs + 1 },
      ],
      history: [{ ...past, why: 'resigned' }],
      reservation: { for: 'c', reserveMs: 5, untilUnixMs: nowMs + 1 },
    });
    const snapshot = await election.inspect();
    expect(snapshot).toMatchObject({
      view: { state: 'led', leader: { id: 'a' } },
      history: [{ id: 'b' }],
      drains: [{ id: 'out', untilUnixMs: nowMs + 1 }],
      request,
      leaseMs: 10_000,
      holderGone: false,
      reservation: { for: 'c', untilUnixMs: nowMs + 1 },
    });
    a.session.outage = 'silent';
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    const gone = await election.inspect();
    expect(gone).toMatchObject({ view: { state: 'vacant' }, holderGone: true });
    expect(gone.leaseMs).toBeUndefined();
  });

  it('earlier commits, also where the server lags behind', async () => {
    const stage = new Stage();
    const { session, election } = stage.candidate('o');
    session.lag();
    await stage.soon(stage.candidate('a').election.campaign());
    expect(await election.leader()).toMatchObject({ state: 'led', leader: { id: 'a' } });
  });

  it.each([
    ['a hold', { ms: 5, untilUnixMs: 100 }, 100],
    ['a hold that is over', { ms: 5, untilUnixMs: 0 }, undefined],
  ])('until when nobody may take it: %s', async (_, held, untilMs) => {
    const stage = new Stage();
    const nowMs = stage.clock.wallMs();
    const { election } = stage.candidate('o');
    const holds = { ...held, untilUnixMs: nowMs + held.untilUnixMs };
    const reservation = { for: 'c', reserveMs: 5, untilUnixMs: nowMs + 50 };
    stage.store.put('jobs', {
      ...led,
      holding: { ...holding, held: holds },
      reservation,
    });
    const snapshot = await election.inspect();
    expect(snapshot.reservation).toEqual(
      untilMs === undefined ? undefined : { for: undefined, untilUnixMs: nowMs + untilMs },
    );
  });

  it('that nobody is there, where there is no record', async () => {
    const stage = new Stage();
    const snapshot = await stage.candidate('o').election.inspect();
    expect(snapshot).toMatchObject({
      view: { state: 'vacant' },
      history: [],
      drains: [],
      holderGone: false,
    });
    expect(snapshot.leaseMs).toBeUndefined();
    expect(snapshot.reservation).toBeUndefined();
  });
});
