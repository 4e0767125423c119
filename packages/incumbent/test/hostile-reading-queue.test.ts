// Schedules that two hostile readings of the queue have found, each once seen to break it.

import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { afterEach, describe, expect, it } from 'vitest';
import type { ZooKeeper } from '../../zookeeper/src/index.ts';
import { connect } from '../../zookeeper/src/index.ts';
import { zookeeper } from '../src/backends/zookeeper/index.ts';
import type { Backend } from '../src/core/contest.ts';
import { noListing } from '../src/core/listing.ts';
import type { Election, Term } from '../src/index.ts';
import { createElection } from '../src/index.ts';
import { QueueElection } from '../src/mechanisms/queue/backend.ts';
import type { Place } from '../src/mechanisms/queue/store.ts';
import type { SimulatedQueueSession } from '../src/testing/index.ts';
import { SimulatedClock, SimulatedQueueStore } from '../src/testing/index.ts';

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const timeoutMs = 10_000;
const beliefMs = 4_000;

function backendOn(session: SimulatedQueueSession): Backend<Place> {
  return {
    kind: 'simulated',
    description: 'a simulated session store',
    ...noListing('this test lists nothing'),
    limits: { sessionTimeoutMs: timeoutMs },
    open: (scope) =>
      new QueueElection<Place>(scope, session.open(scope.election), {
        guard: (place) => place,
        waitsForPredecessor: true,
        stepsDownWhenDisconnected: false,
        recheckMs: 30_000,
        delayAfterWinMs: 0,
      }),
  };
}

function simulate(isMixed = false) {
  const clock = new SimulatedClock();
  const store = new SimulatedQueueStore({ clock, isMixed });
  const candidate = (id: string) => {
    const session = store.connect();
    const backend = backendOn(session);
    const election = createElection({ name: 'e', backend, clock, candidate: { id } });
    return { session, election };
  };
  /** Advances until the promise settles. The bound only turns a hang into a failure. */
  const soon = async <T>(promise: Promise<T>): Promise<T> => {
    let settled = false;
    promise.then(
      () => {
        settled = true;
      },
      () => {
        settled = true;
      },
    );
    for (let i = 0; i < 3_000 && !settled; i += 1) await clock.advance(10);
    expect(settled).toBe(true);
    return promise;
  };
  return { clock, store, candidate, soon };
}

/**
 * Advances until `next` leads. Both must never lead at once.
 * @returns how long it took, in ms
 */
async function handOver(clock: SimulatedClock, first: Term<unknown>, next: Promise<Term<unknown>>) {
  const startMs = clock.monotonicMs();
  const won: Term<unknown>[] = [];
  void next.then((term) => won.push(term));
  for (let i = 0; i < 3_000 && won.length === 0; i += 1) {
    await clock.advance(10);
    expect(first.isLeading() && won.some((term) => term.isLeading())).toBe(false);
  }
  expect(won[0]?.isLeading()).toBe(true);
  expect(first.isLeading()).toBe(false);
  return clock.monotonicMs() - startMs;
}

describe('a record that somebody deletes by hand', () => {
  it('R1: a candidate that has waited behind a leader waits its belief out all the same', async () => {
    const { clock, store, candidate, soon } = simulate();
    const [a, b] = [candidate('a'), candidate('b')];
    const first = await soon(a.election.campaign());
    const next = b.election.campaign();
    await clock.advance(1_000);
    a.session.outage = 'silent';
    store.put('e', undefined);
    for (const name of store.places('e')) store.deletePlace(name);
    expect(await handOver(clock, first, next)).toBeGreaterThanOrEqual(beliefMs);
  });

  it('R1b: so does who has only seen the record, and was the first', async () => {
    const { clock, store, candidate, soon } = simulate();
    const [a, b] = [candidate('a'), candidate('b')];
    const first = await soon(a.election.campaign());
    a.session.outage = 'silent';
    for (const name of store.places('e')) store.deletePlace(name);
    const next = b.election.campaign();
    await clock.advance(300);
    store.put('e', undefined);
    for (const name of store.places('e')) store.deletePlace(name);
    expect(await handOver(clock, first, next)).toBeGreaterThanOrEqual(beliefMs - 500);
  });
});

it('R5: a foreign leader after an unclean one of ours counts as a gap', async () => {
  const { clock, store, candidate, soon } = simulate(true);
  const [a, b] = [candidate('a'), candidate('b')];
  const first = await soon(a.election.campaign());
  const foreign = store.enterForeign('e', 'f');
  // The session ends without a word: the record goes on naming a.
  a.session.expire();
  await clock.advance(20_000);
  expect(first.isLeading()).toBe(false);
  const next = b.election.campaign();
  await clock.advance(5_000);
  const startMs = clock.monotonicMs();
  store.deletePlace(foreign);
  await soon(next);
  expect(clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(beliefMs);
});

it('S4: beside members that do not wait, a leader that is forced out believes no longer', async () => {
  const { clock, store, candidate, soon } = simulate(true);
  const [a, operator] = [candidate('a'), candidate('operator')];
  const first = await soon(a.election.campaign());
  store.enterForeign('e', 'f');
  await soon(operator.election.vacate({ force: true }));
  // As soon as it has heard of it, however long its work goes on.
  for (let i = 0; i < 100 && !first.signal.aborted; i += 1) await clock.advance(10);
  expect(first.isLeading()).toBe(false);
  await soon(first[Symbol.asyncDispose]());
  expect((await first.ended).reason).toBe('vacated');
});

it('an announcement that landed without its answer names the true predecessor', async () => {
  const { candidate, soon } = simulate();
  const [a, b] = [candidate('a'), candidate('b')];
  const first = await soon(a.election.campaign());
  await soon(first[Symbol.asyncDispose]());
  b.session.next('commit', { lose: 'reply' });
  const second = await soon(b.election.campaign());
  expect(second.predecessor).toMatchObject({ id: 'a', clean: true });
  expect(second.token).toBeGreaterThan(first.token);
});

it('no announcement into an election that was ended while its winner waited', async () => {
  const { clock, store, candidate, soon } = simulate();
  const [a, b, operator] = [candidate('a'), candidate('b'), candidate('operator')];
  const first = await soon(a.election.campaign());
  a.session.outage = 'silent';
  for (const name of store.places('e')) store.deletePlace(name);
  const next = b.election.campaign();
  next.catch(() => {});
  await clock.advance(1_000);
  await soon(operator.election.end());
  await expect(soon(next)).rejects.toMatchObject({ code: 'ELECTION_ENDED' });
  expect(store.record('e')?.holding?.candidate.id).toBe('a');
  expect(store.record('e')?.token).toBe(first.token);
});

describe('on ZooKeeper’s protocol', () => {
  async function stand() {
    const fake = await FakeZooKeeper.start({ tickTimeMs: 200, realTime: true });
    cleanUps.push(() => fake.close());
    const client = async (): Promise<ZooKeeper> => {
      const made = await connect(fake.connectionString, { sessionTimeoutMs: 4_000 });
      cleanUps.push(() => made.close());
      return made;
    };
    const below = (path: string) => [...fake.tree().keys()].filter((each) => each.startsWith(path));
    return { fake, client, below };
  }

  async function until(what: string, holds: () => boolean): Promise<void> {
    const deadlineMs = performance.now() + 20_000;
    while (!holds()) {
      if (performance.now() > deadlineMs) throw new Error(`never: ${what}`);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  for (const layout of ['incumbent', 'golea'] as const) {
    it.each([0, 2, 4, 6, 8])(
      `R4: ${layout}: an abort %i microtasks after the reply leaves no place behind`,
      async (hops) => {
        const { client, below } = await stand();
        const real = await client();
        await real.ensurePath('/r/e');
        const stop = new AbortController();
        const abortLater = async () => {
          for (let i = 0; i < hops; i += 1) await Promise.resolve();
          stop.abort(new Error('enough'));
        };
        const aborting = new Proxy(real, {
          get(target, property) {
            if (property === 'create') {
              return async (...from: Parameters<ZooKeeper['create']>) => {
                const reply = await target.create(...from);
                if (from[0].includes('/e/')) void abortLater();
                return reply;
              };
            }
            const value: unknown = Reflect.get(target, property, target);
            return typeof value === 'function' ? value.bind(target) : value;
          },
        });
        const backend = zookeeper(aborting, { layout, root: '/r', tickTime: 200 });
        const election: Election<unknown> = createElection({ name: 'e', backend });
        await election.campaign({ signal: stop.signal }).then(
          (term) => term[Symbol.asyncDispose](),
          () => {},
        );
        await election.close();
        await until('nothing is left', () => below('/r/e/').length === 0);
      },
    );
  }

  it('R2: golea: after a reset of the election the same name is a new place, and leads', async () => {
    const { client } = await stand();
    const admin = await client();
    await admin.create('/e');
    const backend = zookeeper(await client(), { layout: 'golea', tickTime: 200 });
    const election = createElection({ name: 'e', backend });
    cleanUps.push(() => election.close());
    const stop = new AbortController();
    const tokens: bigint[] = [];
    const leading = election.lead(
      (term) =>
        new Promise<void>((resolve) => {
          tokens.push(term.token);
          term.signal.addEventListener('abort', () => resolve());
        }),
      { signal: stop.signal },
    );
    leading.catch(() => {});
    await until('it leads', () => tokens.length === 1);
    const { children } = await admin.getChildren('/e');
    const reset = admin.transaction();
    for (const child of children) reset.delete(`/e/${child}`);
    await reset.delete('/e').create('/e').commit();
    await until('it leads again', () => tokens.length === 2);
    expect((tokens[1] as bigint) > (tokens[0] as bigint)).toBe(true);
    stop.abort(new Error('done'));
    await expect(leading).rejects.toThrow('done');
  });
});
