import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, test, vi } from 'vitest';
import type { Sight } from '../src/following/index.ts';
import { Follower, LeaderWatch } from '../src/following/index.ts';
import type { View } from '../src/record/record.ts';
import { candidate, FakeElection, ledBy, unknown, vacant } from './support/fake-election.ts';

const a = candidate('a', { addresses: ['10.0.0.1:1'] });
const b = candidate('b', { addresses: ['10.0.0.2:1'] });

/** Tries until it holds. Gives up after half a minute. */
function eventually<T>(check: () => T): Promise<T> {
  return vi.waitFor(check, { timeout: 30_000, interval: 5 });
}

function start(): {
  fake: FakeElection;
  watch: LeaderWatch;
  seen: Sight[];
  stop: () => void;
} {
  const fake = new FakeElection('billing');
  const watch = LeaderWatch.of(fake.election);
  const seen: Sight[] = [];
  return { fake, watch, seen, stop: watch.subscribe((sight) => seen.push(sight)) };
}

async function hasSeen(seen: readonly Sight[], count: number): Promise<void> {
  await eventually(() => expect(seen.length).toBeGreaterThanOrEqual(count));
}

test('one observation serves everybody, and ends with the last of them', async () => {
  const { fake, watch, seen, stop } = start();
  expect(LeaderWatch.of(fake.election)).toBe(watch);
  const others = Array.from({ length: 100 }, () => watch.subscribe(() => {}));
  fake.show(ledBy(a, 1n));
  await hasSeen(seen, 1);
  for (const other of others) other();
  others[0]?.();
  expect([fake.begun, fake.open]).toEqual([1, 1]);
  expect(watch.sight).toMatchObject({ state: 'led', led: true, token: 1n });
  stop();
  await eventually(() => expect(fake.open).toBe(0));
  expect(watch.sight, 'what is not watched is not known').toBeUndefined();
  const again = watch.subscribe(() => {});
  await eventually(() => expect(watch.sight?.leader?.info).toBe(a));
  expect(fake.begun).toBe(2);
  again();
});

test('keeps the last leader while the store cannot be read, and when nobody leads', async () => {
  const { fake, seen, stop } = start();
  for (const view of [unknown, ledBy(a, 1n), unknown, vacant(1n), unknown, ledBy(b, 2n)]) {
    fake.show(view);
    await hasSeen(seen, seen.length + 1);
  }
  expect(seen.map(({ state, led, leader, token }) => [state, led, leader?.info.id, token])).toEqual(
    [
      ['unknown', false, undefined, undefined],
      ['led', true, 'a', 1n],
      ['unknown', true, 'a', 1n],
      ['vacant', false, 'a', 1n],
      ['unknown', false, 'a', 1n],
      ['led', true, 'b', 2n],
    ],
  );
  expect(seen[0]?.error?.message).toBe('no route');
  stop();
});

test('a leader is ready when its view says so, also while the store cannot be read', async () => {
  const { fake, watch, seen, stop } = start();
  const preparing = { ...ledBy(b, 3n), ready: false };
  const views = [
    ledBy(a, 2n),
    unknown,
    preparing,
    unknown,
    { ...preparing, ready: true },
    vacant(3n),
  ];
  for (const view of views) {
    fake.show(view);
    await hasSeen(seen, seen.length + 1);
  }
  expect(seen.map(({ state, led, ready }) => [state, led, ready])).toEqual([
    // A store of a user's own need not tell.
    ['led', true, true],
    ['unknown', true, true],
    ['led', true, false],
    ['unknown', true, false],
    ['led', true, true],
    ['vacant', false, false],
  ]);
  expect(watch.sight?.ready).toBe(false);
  stop();
});

test('a follower has no leader to ask while that one is not ready', async () => {
  const fake = new FakeElection('billing');
  const follower = new Follower(fake.election);
  const preparing = { ...ledBy(b, 3n), ready: false };
  fake.show(preparing);
  const found = follower.until(({ leader }) => leader, 30_000);
  await eventually(() => expect(follower.unready?.info).toBe(b));
  expect([follower.leader, follower.token]).toEqual([undefined, 3n]);
  fake.show({ ...preparing, ready: true });
  expect((await found)?.info).toBe(b);
  expect(follower.unready).toBeUndefined();
  follower.close();
});

test('a look that finds the same leader ready is news, and one that does not is none', async () => {
  const { fake, watch, seen, stop } = start();
  const preparing = { ...ledBy(b, 3n), ready: false };
  fake.show(preparing);
  await hasSeen(seen, 1);
  let looked = 0;
  fake.look = async () => {
    looked += 1;
    return preparing;
  };
  watch.lookAgain();
  await eventually(() => expect(looked).toBe(1));
  fake.look = async () => ({ ...preparing, ready: true });
  await eventually(() => {
    watch.lookAgain();
    expect(seen.length).toBe(2);
  });
  expect(seen.map(({ ready }) => ready)).toEqual([false, true]);
  stop();
});

test('a subscriber that throws disturbs nobody', async () => {
  const fake = new FakeElection('billing');
  const watch = LeaderWatch.of(fake.election);
  const told: unknown[] = [];
  const listener = (message: unknown) => told.push((message as { error: Error }).error.message);
  subscribe('incumbent:trouble', listener);
  const seen: Sight[] = [];
  const stops = [
    watch.subscribe(() => {
      throw new Error('a defect of the user');
    }),
    watch.subscribe((sight) => seen.push(sight)),
  ];
  fake.show(ledBy(a, 1n));
  await hasSeen(seen, 1);
  fake.show(ledBy(b, 2n));
  await hasSeen(seen, 2);
  expect(seen.map(({ state, token }) => [state, token])).toEqual([
    ['led', 1n],
    ['led', 2n],
  ]);
  expect(fake.begun).toBe(1);
  expect(told).toEqual(['a defect of the user', 'a defect of the user']);
  unsubscribe('incumbent:trouble', listener);
  for (const stop of stops) stop();
});

test('says so when the handle is closed, also when it was closed before', async () => {
  const { fake, seen } = start();
  fake.show(ledBy(a, 1n));
  await hasSeen(seen, 1);
  fake.close();
  await hasSeen(seen, 2);
  expect(seen.at(-1)).toMatchObject({ state: 'closed', led: false });
  const late = new FakeElection('late');
  late.close();
  const states: string[] = [];
  LeaderWatch.of(late.election).subscribe(({ state }) => states.push(state));
  await eventually(() => expect(states).toEqual(['closed']));
});

test('an observation that breaks is begun again (VB15)', async () => {
  const { fake, seen, stop } = start();
  fake.breakWith(new Error('a defect'));
  await hasSeen(seen, 1);
  expect(seen[0]).toMatchObject({ state: 'unknown', error: { message: 'a defect' } });
  fake.repair();
  fake.show(ledBy(a, 1n));
  await eventually(() => expect(seen.at(-1)).toMatchObject({ state: 'led' }));
  stop();
  await eventually(() => expect(fake.open).toBe(0));
});

/** The knowledge after one look that finds `found` while the observation says `observed`. */
async function afterLook(observed: View, found: View): Promise<Sight | undefined> {
  const { fake, watch, seen, stop } = start();
  fake.show(observed);
  await hasSeen(seen, 1);
  fake.look = async () => found;
  watch.lookAgain();
  await eventually(() => expect(fake.looks).toBe(1));
  await new Promise(setImmediate);
  const { sight } = watch;
  stop();
  return sight;
}

test('a look finds a newer leader, or that the leader is gone', async () => {
  expect(await afterLook(ledBy(a, 1n), ledBy(b, 2n))).toMatchObject({ token: 2n, led: true });
  expect(await afterLook(vacant(1n), ledBy(b, 2n))).toMatchObject({ token: 2n, led: true });
  expect(await afterLook(ledBy(a, 1n), vacant(1n))).toMatchObject({ state: 'vacant' });
  expect(await afterLook(unknown, ledBy(a, 1n))).toMatchObject({ state: 'led' });
  // Leaders of other programs have no token for observers.
  expect(await afterLook(ledBy(a), ledBy(b))).toMatchObject({ leader: { info: b } });
});

test('a look revives no term that the observation has found dead', async () => {
  expect(await afterLook(vacant(3n), ledBy(a, 3n))).toMatchObject({ state: 'vacant' });
  expect(await afterLook(ledBy(b, 3n), ledBy(a, 2n))).toMatchObject({ token: 3n });
  expect(await afterLook(ledBy(b, 3n), vacant(2n))).toMatchObject({ state: 'led' });
  expect(await afterLook(ledBy(b, 3n), unknown)).toMatchObject({ state: 'led' });
});

test('a view that was observed during a look counts more than the finding of the look', async () => {
  const { fake, watch, seen, stop } = start();
  fake.show(ledBy(a, 1n));
  await hasSeen(seen, 1);
  const found: { answer?: (view: View) => void } = {};
  fake.look = () =>
    new Promise((resolve) => {
      found.answer = resolve;
    });
  watch.lookAgain();
  await eventually(() => expect(found.answer).toBeDefined());
  fake.show(ledBy(b, 2n));
  await hasSeen(seen, 2);
  // Read before b was announced: its number was taken, and no candidate led.
  found.answer?.(vacant(2n));
  await new Promise(setImmediate);
  expect(watch.sight).toMatchObject({ state: 'led', token: 2n });
  stop();
});

test('a view that was observed before a look counts less than the finding of the look', async () => {
  const { fake, watch, seen, stop } = start();
  fake.show(unknown);
  await hasSeen(seen, 1);
  fake.look = async () => ledBy(b, 2n);
  watch.lookAgain();
  await hasSeen(seen, 2);
  // Read before b led, told late.
  fake.show(ledBy(a, 1n));
  await hasSeen(seen, 3);
  expect(watch.sight).toMatchObject({ state: 'led', token: 2n, leader: { info: b } });
  stop();
});

test('a view of a leader that was not ready yet counts less than a look that found it ready', async () => {
  const { fake, watch, seen, stop } = start();
  const preparing = { ...ledBy(b, 2n), ready: false };
  fake.show(preparing);
  await hasSeen(seen, 1);
  fake.look = async () => ledBy(b, 2n);
  watch.lookAgain();
  await hasSeen(seen, 2);
  // Read before b was ready, told late.
  fake.show({ ...preparing });
  await hasSeen(seen, 3);
  expect(watch.sight).toMatchObject({ state: 'led', token: 2n, ready: true });
  stop();
});

test('the record may be begun anew after a look', async () => {
  const { fake, watch, seen, stop } = start();
  fake.show(unknown);
  await hasSeen(seen, 1);
  fake.look = async () => ledBy(b, 7n);
  watch.lookAgain();
  await hasSeen(seen, 2);
  // The record was deleted, and a was elected.
  fake.look = async () => ledBy(a, 1n);
  fake.show(ledBy(a, 1n));
  await hasSeen(seen, 3);
  expect(watch.sight).toMatchObject({ state: 'led', token: 1n, leader: { info: a } });
  expect(fake.looks).toBe(2);
  // A state that it has reported is not asked about again.
  fake.show(ledBy(b, 2n));
  await hasSeen(seen, 4);
  expect(fake.looks).toBe(2);
  stop();
});

test('however often it is asked, it looks rarely', async () => {
  const { fake, watch, seen, stop } = start();
  fake.show(vacant());
  await hasSeen(seen, 1);
  fake.look = async () => vacant();
  for (let i = 0; i < 1000; i += 1) {
    watch.lookAgain();
    await new Promise(setImmediate);
  }
  // One at once. The next ones are a second and more apart, on a machine however slow.
  expect(fake.looks).toBeGreaterThanOrEqual(1);
  expect(fake.looks).toBeLessThan(10);
  stop();
  watch.lookAgain();
});

test('looks often again in the next trouble, as if there had been none', async (context) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'hrtime'] });
  context.onTestFinished(() => {
    vi.useRealTimers();
  });
  const { fake, watch, seen, stop } = start();
  fake.show(ledBy(a, 1n));
  await vi.advanceTimersByTimeAsync(1);
  expect(seen).toHaveLength(1);
  fake.look = async () => ledBy(a, 1n);
  /** How often it looks while calls fail. */
  const looksIn = async (seconds: number) => {
    const before = fake.looks;
    for (let i = 0; i < seconds * 20; i += 1) {
      watch.lookAgain();
      await vi.advanceTimersByTimeAsync(50);
    }
    return fake.looks - before;
  };
  // After 0, 1, 3, 7 s.
  expect(await looksIn(8)).toBe(4);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(await looksIn(8)).toBe(4);
  // After 15 and 31 s, then every 30 s.
  await looksIn(32);
  expect(await looksIn(600)).toBe(20);
  // The last one has left a look waiting, for up to 30 s.
  await vi.advanceTimersByTimeAsync(11_000);
  expect(await looksIn(8)).toBe(4);
  // Calls every few seconds are one trouble.
  const before = fake.looks;
  for (let i = 0; i < 100; i += 1) {
    watch.lookAgain();
    await vi.advanceTimersByTimeAsync(9000);
  }
  expect(fake.looks - before).toBeLessThanOrEqual(33);
  stop();
});
