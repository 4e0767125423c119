// The views of an observer of a lease, and the result of one look at it.
import { describe, expect, test } from 'vitest';
import type { Timer } from '../../src/base/clock.ts';
import { createElection } from '../../src/index.ts';
import { leaseLeftMs, viewOf } from '../../src/mechanisms/lease/observer.ts';
import type { Observation, Sighting } from '../../src/mechanisms/lease/reading.ts';
import type { LeaseStore } from '../../src/mechanisms/lease/store.ts';
import type { LeaseHolding, LeaseRecord } from '../../src/record/lease-record.ts';
import type { View } from '../../src/record/record.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { leaseMs, candidate as scripted } from '../support/scripted-candidate.ts';
import { ScriptedStore } from '../support/scripted-store.ts';
import { vacantRecord } from '../support/vacant-record.ts';

const candidate = { id: 'a', incarnation: 'of a', addresses: [], metadata: {} };
const holding: LeaseHolding = {
  candidate,
  electedAtUnixMs: 7,
  announced: true,
  actors: null,
  revoked: false,
  request: undefined,
};
const vacant = vacantRecord('jobs', 'nonce');
const held: LeaseRecord = { ...vacant, leaseMs: 100, holding };
const past = { id: 'b', incarnation: 'of b', token: 1n, fromUnixMs: 2, toUnixMs: 5 };

function sighted(record: LeaseRecord | undefined): Sighting {
  return { record, version: 1, sinceMs: 0 };
}

test.each<readonly [string, LeaseRecord | undefined, boolean, View]>([
  ['no record', undefined, false, { state: 'vacant', sinceUnixMs: 9 }],
  ['one that nobody has led', vacant, false, { state: 'vacant', token: 1n, sinceUnixMs: 9 }],
  [
    'one that somebody has given back',
    { ...vacant, history: [{ ...past, why: 'resigned' }] },
    false,
    { state: 'vacant', token: 1n, sinceUnixMs: 5 },
  ],
  ['one that ended', { ...held, ended: true }, true, { state: 'ended', token: 1n, sinceUnixMs: 9 }],
  [
    'a leader',
    { ...held, history: [{ ...past, why: 'resigned' }] },
    true,
    { state: 'led', leader: candidate, ready: true, token: 1n, sinceUnixMs: 7 },
  ],
  [
    'a leader that prepares its work',
    { ...held, holding: { ...holding, ready: false } },
    true,
    { state: 'led', leader: candidate, ready: false, token: 1n, sinceUnixMs: 7 },
  ],
  [
    'a leader without tokens',
    { ...held, holding: { ...holding, tokenless: true } },
    true,
    { state: 'led', leader: candidate, ready: true, sinceUnixMs: 7 },
  ],
  [
    'a leader that cannot believe any more',
    held,
    false,
    { state: 'vacant', token: 1n, sinceUnixMs: 9 },
  ],
  [
    'a holder that still fences',
    { ...held, holding: { ...holding, announced: false } },
    true,
    { state: 'vacant', token: 1n, sinceUnixMs: 9 },
  ],
])('%s', (_, record, isProtected, view) => {
  expect(viewOf(sighted(record), isProtected, 9)).toEqual(view);
});

describe('a lease protects its holder', () => {
  const observation = { unchangedMs: () => 30 } as unknown as Observation;
  const actor = { pid: 1 };
  const leftOf = (record: LeaseRecord | undefined, provesGone?: LeaseStore['provesGone']) =>
    leaseLeftMs({ provesGone } as LeaseStore, observation, sighted(record));

  test('for the rest of it, and none where there is no holder', () => {
    expect(leftOf(held)).toBe(70);
    expect(leftOf(vacant)).toBe(0);
    expect(leftOf(undefined)).toBe(0);
  });

  test('unless all who act for it are proved dead', () => {
    const acting = (actors: LeaseHolding['actors']) => ({
      ...held,
      holding: { ...holding, actors },
    });
    const gone = () => true;
    expect(leftOf(acting([actor]), gone)).toBe(0);
    expect(leftOf(acting([actor]), () => false)).toBe(70);
    expect(leftOf(acting([actor]))).toBe(70);
    expect(leftOf(acting([]), gone)).toBe(70);
    expect(leftOf(acting(null), gone)).toBe(70);
  });
});

/** A clock that notes which timers keep the process alive. */
class NotingClock extends SimulatedClock {
  readonly alive: number[] = [];

  override setTimer(callback: () => void, delayMs: number, background?: boolean): Timer {
    if (background !== true) this.alive.push(delayMs);
    return super.setTimer(callback, delayMs);
  }
}

/** An observer that looks without jitter. */
function setUp(
  says: Partial<LeaseStore> = {},
  pollEvery: number | undefined = undefined,
  random = 0,
) {
  const clock = new NotingClock();
  const store = new ScriptedStore();
  const election = createElection({
    name: 'jobs',
    backend: store.backend(says),
    clock,
    lease: leaseMs,
    random: () => random,
    ...(pollEvery === undefined ? {} : { pollEvery }),
  });
  const views: View[] = [];
  const watch = async () => {
    for await (const view of election.observe()) views.push({ ...view });
  };
  return { clock, store, election, views, watch, startMs: clock.wallMs() };
}

describe('an observer', () => {
  test('is told at once, and when a lease is over, without a write', async () => {
    const { clock, store, election, views, watch, startMs } = setUp();
    store.hold('a', 1n, leaseMs);
    void watch();
    await clock.advance(leaseMs - 1);
    expect(views).toMatchObject([{ state: 'led', leader: { id: 'a' }, token: 1n, sinceUnixMs: 1 }]);
    await clock.advance(1);
    expect(views.slice(1)).toEqual([
      { state: 'vacant', token: 1n, sinceUnixMs: startMs + leaseMs },
    ]);
    await election.close();
  });

  test('is told since when the seat is vacant, each time anew', async () => {
    const { clock, store, election, views, watch, startMs } = setUp();
    void watch();
    await clock.advance(5_000);
    store.hold('a', 1n, leaseMs);
    await clock.advance(20_000);
    expect(views).toMatchObject([
      { state: 'vacant', sinceUnixMs: startMs },
      { state: 'led' },
      { state: 'vacant', token: 1n },
    ]);
    const vacantMs = views[2]?.sinceUnixMs;
    expect(vacantMs).toBeGreaterThanOrEqual(startMs + 5_000 + leaseMs);
    // A candidate that was elected and died before it was announced: vacant as before.
    store.hold('b', 2n, 1);
    await clock.advance(leaseMs);
    expect(views.at(-1)).toEqual({ state: 'vacant', token: 2n, sinceUnixMs: expect.any(Number) });
    expect(views.at(-1)?.sinceUnixMs).toBeGreaterThan(vacantMs as number);
    await election.close();
  });

  test('is told that the store cannot be read, and looks again as often as it polls', async () => {
    const failure = new Error('no route');
    const { clock, store, election, views, watch, startMs } = setUp({}, 1_000);
    store.onRead = () => Promise.reject(failure);
    void watch();
    await clock.advance(0);
    expect(views).toEqual([{ state: 'unknown', sinceUnixMs: startMs, error: failure }]);
    expect(store.reads).toBe(1);
    await clock.advance(10_000);
    expect(store.reads).toBe(11);
    expect(views).toHaveLength(1);
    store.onRead = async (apply) => apply();
    await clock.advance(1_000);
    expect(views.at(-1)).toMatchObject({ state: 'vacant' });
    await election.close();
    await clock.advance(10_000);
    expect(store.reads).toBe(12);
  });

  test.each([
    ['as often as it polls, and a part of a renewal later', {}, 0.5, 3_000 + 0.05 * 2_000],
    ['once per lease where hints work', { watch: () => () => {}, hintsWork: true }, 0, leaseMs],
  ])('looks %s', async (_, says, random, everyMs) => {
    const { clock, store, election, watch } = setUp(says, 3_000, random);
    void watch();
    await clock.advance(10 * everyMs - 1);
    expect(store.reads).toBe(10);
    await clock.advance(1);
    expect(store.reads).toBe(11);
    await election.close();
  });

  test('is told that a lease is over when it is, and not at the next look', async () => {
    const { clock, store, election, views, watch } = setUp({}, 3_000);
    store.hold('a', 1n, 7_500);
    void watch();
    await clock.advance(7_499);
    expect(views.map(({ state }) => state)).toEqual(['led']);
    await clock.advance(1);
    expect(views.map(({ state }) => state)).toEqual(['led', 'vacant']);
    await election.close();
  });

  test('is told when a term was over that it has not seen', async () => {
    const { clock, store, election, views, watch, startMs } = setUp();
    const other = scripted(store, clock);
    void watch();
    await clock.advance(1);
    const term = await other.campaign();
    await clock.advance(10);
    await term[Symbol.asyncDispose]();
    const toUnixMs = store.record?.history.at(-1)?.toUnixMs;
    await clock.advance(2 * leaseMs);
    expect(toUnixMs).toBeGreaterThan(startMs);
    expect(views).toMatchObject([
      { state: 'vacant', sinceUnixMs: startMs },
      { state: 'vacant', token: 1n, sinceUnixMs: toUnixMs },
    ]);
    await Promise.all([election.close(), other.close()]);
  });

  test('is told since when no candidate leads, whichever leaders have died meanwhile', async () => {
    const { clock, store, election, views, watch, startMs } = setUp({ provesGone: () => true });
    const die = (id: string, token: bigint) => {
      store.hold(id, token, leaseMs);
      store.record = {
        ...store.record!,
        holding: { ...store.record!.holding!, actors: [{ pid: 1 }] },
      };
    };
    die('a', 1n);
    void watch();
    await clock.advance(5_000);
    die('b', 2n);
    await clock.advance(5_000);
    expect(views).toEqual([
      { state: 'vacant', token: 1n, sinceUnixMs: startMs },
      { state: 'vacant', token: 2n, sinceUnixMs: startMs },
    ]);
    await election.close();
  });

  test('does not keep the process alive, but for the answer to a look', async () => {
    const { clock, election, watch } = setUp();
    void watch();
    await clock.advance(10_000);
    expect(new Set(clock.alive)).toEqual(new Set([election.timing.operationTimeoutMs]));
    await election.close();
  });

  test('ends its watch with it', async () => {
    let watching = 0;
    const watch = () => {
      watching += 1;
      return () => {
        watching -= 1;
      };
    };
    const stage = setUp({ watch });
    void stage.watch();
    await stage.clock.advance(10);
    expect(watching).toBe(1);
    await stage.election.close();
    expect(watching).toBe(0);
  });
});

describe('one look tells', () => {
  test('all that is in the record', async () => {
    const { store, election, startMs } = setUp();
    store.hold('a', 3n, leaseMs);
    const request = { kind: 'vacate', nonce: 'x' } as const;
    store.record = {
      ...store.record!,
      holding: { ...store.record!.holding!, request },
      drains: [
        { id: 'over', untilUnixMs: startMs },
        { id: 'out', untilUnixMs: startMs + 1 },
      ],
      history: [{ ...past, why: 'resigned' }],
    };
    const snapshot = await election.inspect();
    expect(snapshot).toMatchObject({
      view: { state: 'led', token: 3n },
      history: [{ id: 'b', token: 1n }],
      drains: [{ id: 'out', untilUnixMs: startMs + 1 }],
      request,
      leaseMs,
      holderGone: false,
    });
    expect(snapshot.reservation).toBeUndefined();
    expect(snapshot.settling).toBeUndefined();
    await election.close();
  });

  test('that nobody holds it, where there is no record or a vacant one', async () => {
    const { store, election, startMs } = setUp();
    const nobody = { history: [], drains: [], request: undefined, leaseMs: undefined };
    expect(await election.inspect()).toMatchObject({
      view: { state: 'vacant', sinceUnixMs: startMs },
      ...nobody,
      holderGone: false,
    });
    store.record = vacant;
    expect(await election.inspect()).toMatchObject({ ...nobody, holderGone: false });
    await election.close();
  });

  test('that its holder is dead, where the store can prove it', async () => {
    const { store, election } = setUp({ provesGone: () => true });
    store.hold('a', 3n, leaseMs);
    store.record = {
      ...store.record!,
      holding: { ...store.record!.holding!, actors: [{ pid: 1 }] },
    };
    expect(await election.inspect()).toMatchObject({
      view: { state: 'vacant', token: 3n },
      holderGone: true,
      leaseMs,
    });
    await election.close();
  });

  test.each([
    ['that a leader whom it forgot may still believe', { clockStepMs: 0 }, 1_000, true],
    [
      'nothing of that when it has forgotten nobody for a lease',
      { clockStepMs: 0 },
      leaseMs,
      false,
    ],
    ['nothing of that when it cannot say for how long', {}, undefined, false],
  ])('of a store that forgets: %s', async (_, says, lifeAgeMs, settles) => {
    const { store, election, startMs } = setUp({ forgets: true, ...says });
    store.onRead = async (apply) => ({
      ...apply(),
      life: 'only',
      ...(lifeAgeMs === undefined ? {} : { lifeAgeMs }),
    });
    const { settling } = await election.inspect();
    if (settles) {
      expect(settling).toEqual({
        kind: 'settling',
        after: 'restart',
        sinceUnixMs: startMs - 1_000,
        untilUnixMs: startMs - 1_000 + election.timing.leaseMs,
      });
    } else {
      expect(settling).toBeUndefined();
    }
    await election.close();
  });

  test.each([
    ['a reservation', { for: 'c', reserveMs: 5, untilUnixMs: 1_000 }, undefined, 'c', 1_000],
    ['one for nobody', { for: undefined, reserveMs: 5, untilUnixMs: 9 }, undefined, undefined, 9],
    ['a hold', undefined, { ms: 5, untilUnixMs: 1_000 }, undefined, 1_000],
    ['a reservation that is over', { for: 'c', reserveMs: 5, untilUnixMs: 0 }, undefined, 'c', 0],
    ['a hold that is over', undefined, { ms: 5, untilUnixMs: 0 }, undefined, 0],
  ])('the candidate that may take it: %s', async (_, reserved, holds, whom, untilMs) => {
    const { store, election, startMs } = setUp();
    store.hold('a', 3n, leaseMs);
    const at = <T extends { readonly untilUnixMs: number }>(given: T | undefined) =>
      given && { ...given, untilUnixMs: startMs + given.untilUnixMs };
    const { holding: present } = store.record!;
    store.record = {
      ...store.record!,
      reservation: at(reserved),
      holding: holds === undefined ? undefined : { ...present!, held: at(holds) },
    };
    const { reservation } = await election.inspect();
    expect(reservation).toEqual(
      untilMs === 0 ? undefined : { for: whom, untilUnixMs: startMs + untilMs },
    );
    await election.close();
  });
});
