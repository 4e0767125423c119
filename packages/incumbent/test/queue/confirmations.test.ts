// One proof for all terms of a session: its cost, and the terms that it speaks for.
import { setMaxListeners } from 'node:events';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ZooKeeperClient } from '../../src/backends/zookeeper/client.ts';
import { ZooKeeperSession } from '../../src/backends/zookeeper/session.ts';
import { readClocks } from '../../src/base/clock.ts';
import { OperationTimeoutError, StoreUnsuitableError } from '../../src/base/errors.ts';
import type { Term } from '../../src/core/term.ts';
import { Confirmations } from '../../src/mechanisms/queue/confirmations.ts';
import type { Place, Presence, QueueSession } from '../../src/mechanisms/queue/store.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { Stage } from './support.ts';

const never = new AbortController().signal;
// Many wait with it at one time.
setMaxListeners(0, never);

/** A session that refuses as ZooKeeper does: it names the first place that is missing. */
function stand(size: number, maxPlaces = 1_000) {
  const clock = new SimulatedClock();
  const gone = new Set<Place>();
  const denied = new Set<Place>();
  const asked: (readonly Place[])[] = [];
  const answers: (() => void)[] = [];
  let holds = false;
  const session: QueueSession = {
    isSuspended: false,
    isOver: () => false,
    onEvent: () => () => {},
    maxPlaces,
    confirm: async (places): Promise<Presence> => {
      asked.push(places);
      if (holds) await new Promise<void>((resolve) => answers.push(resolve));
      if (places.some((place) => denied.has(place))) throw new StoreUnsuitableError('no right');
      const missing = places.find((place) => gone.has(place));
      return missing === undefined ? { there: places, gone: [] } : { there: [], gone: [missing] };
    },
  };
  const confirmations = Confirmations.of(session, clock);
  const places = Array.from({ length: size }, (_, index): Place => {
    return { name: `p${index}`, token: BigInt(index + 1), session };
  });
  const before = readClocks(clock);
  for (const place of places) confirmations.add(place, before);
  const isNewer = ({ monotonicMs }: { monotonicMs: number }) => monotonicMs > before.monotonicMs;
  /** The answer to every term that asks at this moment. */
  const confirmAll = async () => {
    await clock.advance(1);
    const results = places.map((place) =>
      confirmations.confirm(place, isNewer, 1_000, never).then(
        (sentAt) => (sentAt === undefined ? 'gone' : 'there'),
        () => 'failed',
      ),
    );
    const all = Promise.all(results);
    await clock.advance(0);
    return all;
  };
  const hold = () => {
    holds = true;
    return answers;
  };
  return { clock, session, confirmations, places, gone, denied, asked, confirmAll, hold };
}

const said = (places: readonly Place[], what: (place: Place) => string) => places.map(what);

describe('a refused proof', () => {
  it('costs one transaction more when one of a thousand places is gone', async () => {
    const { places, gone, asked, confirmAll } = stand(1_000);
    gone.add(places[417] as Place);
    expect(await confirmAll()).toEqual(
      said(places, (place) => (gone.has(place) ? 'gone' : 'there')),
    );
    expect(asked.map(({ length }) => length)).toEqual([1_000, 999]);
  });

  it('costs at most 2k + 1 transactions for k that are gone, and speaks truly of every place', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 60 }), async (pattern) => {
        const { places, gone, asked, confirmAll } = stand(pattern.length);
        for (const [index, isGone] of pattern.entries())
          if (isGone) gone.add(places[index] as Place);
        expect(await confirmAll()).toEqual(
          said(places, (place) => (gone.has(place) ? 'gone' : 'there')),
        );
        expect(asked.length).toBeLessThanOrEqual(2 * gone.size + 1);
      }),
    );
  });

  it('for want of a right on one place fails that one, in 2 log2(n) transactions', async () => {
    const { places, denied, asked, confirmAll } = stand(1_000);
    denied.add(places[417] as Place);
    expect(await confirmAll()).toEqual(
      said(places, (place) => (denied.has(place) ? 'failed' : 'there')),
    );
    expect(asked.length).toBeLessThanOrEqual(1 + 2 * Math.ceil(Math.log2(1_000)));
  });

  it('does not end a term of which it said nothing, when the next answer is not to be had', async () => {
    const { session, places, gone, confirmAll } = stand(10);
    gone.add(places[3] as Place);
    const { confirm } = session;
    let calls = 0;
    session.confirm = (asked, signal) => {
      calls += 1;
      return calls === 1 ? confirm(asked, signal) : Promise.reject(new Error('no answer'));
    };
    expect(await confirmAll()).toEqual(
      said(places, (place) => (gone.has(place) ? 'gone' : 'failed')),
    );
  });

  it('of one part of the places costs the other parts nothing', async () => {
    const { session, places, confirmAll } = stand(20, 10);
    const { confirm } = session;
    session.confirm = (asked, signal) =>
      asked.includes(places[0] as Place)
        ? Promise.reject(new Error('no answer'))
        : confirm(asked, signal);
    const heard = await confirmAll();
    expect(heard.slice(0, 10)).toEqual(new Array(10).fill('failed'));
    expect(heard.slice(10)).toEqual(new Array(10).fill('there'));
  });

  it('that names no place is asked once, and proves nothing', async () => {
    const { session, confirmAll } = stand(10);
    let calls = 0;
    session.confirm = async () => {
      calls += 1;
      return { there: [], gone: [] };
    };
    expect(await confirmAll()).toEqual(new Array(10).fill('failed'));
    expect(calls).toBe(1);
  });
});

describe('a proof that is under way', () => {
  it('is shared by the places that it asks for, and by no other', async () => {
    const { clock, confirmations, places, gone, asked, hold } = stand(2);
    const answers = hold();
    await clock.advance(1);
    const nowMs = clock.monotonicMs();
    const isNow = ({ monotonicMs }: { monotonicMs: number }) => monotonicMs >= nowMs;
    const ask = (place: Place) => confirmations.confirm(place, isNow, 1_000, never);
    const [first, second] = places as [Place, Place];
    const shared = [ask(first), ask(second)];
    await clock.advance(0);
    expect(asked).toHaveLength(1);
    // Entered after the proof was sent, and deleted again: the proof says nothing of it.
    const late: Place = { name: 'late', token: 9n, session: undefined };
    gone.add(late);
    const own = ask(late);
    await clock.advance(0);
    expect(asked).toHaveLength(2);
    expect(asked[1]).toContain(late);
    while (answers.length > 0) {
      for (const answer of answers.splice(0)) answer();
      await clock.advance(0);
    }
    expect(await own).toBeUndefined();
    for (const one of shared) expect(await one).toMatchObject({ monotonicMs: nowMs });
  });

  it('goes on for all terms while a candidate that is about to win asks for its own place alone', async () => {
    const { clock, confirmations, places, session, asked, hold } = stand(1_000);
    const answers = hold();
    await clock.advance(1);
    const nowMs = clock.monotonicMs();
    const isNow = ({ monotonicMs }: { monotonicMs: number }) => monotonicMs >= nowMs;
    const ask = (place: Place) => confirmations.confirm(place, isNow, 1_000, never);
    const [first, second] = places as [Place, Place];
    const terms = [ask(first)];
    const winner: Place = { name: 'winner', token: 2_000n, session };
    const wins = ask(winner);
    terms.push(ask(second));
    await clock.advance(0);
    expect(asked.map(({ length }) => length)).toEqual([1_000, 1]);
    for (const answer of answers.splice(0)) answer();
    for (const each of [...terms, wins]) expect(await each).toMatchObject({ monotonicMs: nowMs });
  });

  it('is not shared by a term that needs a newer one', async () => {
    const { clock, confirmations, places, asked, hold } = stand(1);
    const answers = hold();
    const [place] = places as [Place];
    const since = (fromMs: number) => (at: { monotonicMs: number }) => at.monotonicMs >= fromMs;
    await clock.advance(1);
    const [olderMs, newerMs] = [clock.monotonicMs(), clock.monotonicMs() + 1];
    const older = confirmations.confirm(place, since(olderMs), 1_000, never);
    await clock.advance(1);
    const newer = confirmations.confirm(place, since(newerMs), 1_000, never);
    await clock.advance(0);
    expect(asked).toHaveLength(2);
    for (const answer of answers.splice(0)) answer();
    expect(await older).toMatchObject({ monotonicMs: olderMs });
    expect(await newer).toMatchObject({ monotonicMs: newerMs });
  });
});

it('a proof that one term gives up too soon is asked for again by those that have more time', async () => {
  const { clock, confirmations, places, asked, hold } = stand(3);
  const answers = hold();
  await clock.advance(1);
  const nowMs = clock.monotonicMs();
  const isNow = ({ monotonicMs }: { monotonicMs: number }) => monotonicMs >= nowMs;
  const [hasty, patient, other] = places as [Place, Place, Place];
  const outcome = (place: Place, timeoutMs: number) =>
    confirmations.confirm(place, isNow, timeoutMs, never).then(
      (sentAt) => (sentAt === undefined ? 'gone' : 'there'),
      () => 'failed',
    );
  const given = [outcome(hasty, 50), outcome(patient, 1_000), outcome(other, 1_000)];
  await clock.advance(60);
  // One for both, not one for each.
  expect(asked).toHaveLength(2);
  await clock.advance(80);
  for (const answer of answers.splice(0)) answer();
  await clock.advance(0);
  expect(await Promise.all(given)).toEqual(['failed', 'there', 'there']);
});

it.each(['there', 'gone'] as const)(
  'the finding of a proof about a place stands, though it is given up then: it is %s',
  async (verdict) => {
    const { clock, session, confirmations, places } = stand(2);
    const [hasty, patient] = places as [Place, Place];
    let calls = 0;
    session.confirm = async () => {
      calls += 1;
      // It tells of one of the two, and then of nothing any more.
      if (calls > 1) return new Promise(() => {});
      return { there: [], gone: [], [verdict]: [patient] };
    };
    await clock.advance(1);
    const isNow = ({ monotonicMs }: { monotonicMs: number }) => monotonicMs > 0;
    const failed = confirmations.confirm(hasty, isNow, 50, never).catch(() => 'failed');
    const heard: unknown[] = [];
    void confirmations.confirm(patient, isNow, 1_000, never).then((at) => heard.push(at));
    await clock.advance(60);
    expect(await failed).toBe('failed');
    expect(heard).toMatchObject([verdict === 'there' ? { monotonicMs: 1 } : undefined]);
    expect(calls).toBe(2);
  },
);

it('a proof that has failed is not shared by a term that asks after that', async () => {
  const { clock, places, denied, asked, confirmAll, confirmations } = stand(1);
  const [place] = places as [Place];
  denied.add(place);
  expect(await confirmAll()).toEqual(['failed']);
  denied.clear();
  // For whom a proof of that time would be new enough.
  const again = confirmations.confirm(place, ({ monotonicMs }) => monotonicMs > 0, 1_000, never);
  await clock.advance(0);
  expect(await again).toMatchObject({ monotonicMs: 1 });
  expect(asked).toHaveLength(2);
});

describe('several terms on one session', () => {
  async function led(size: number) {
    const stage = new Stage();
    const session = stage.store.connect();
    const names = Array.from({ length: size }, (_, index) => `jobs-${index}`);
    const terms: Term<bigint>[] = [];
    for (const name of names) {
      const election = stage.elect(session, 'a', { name });
      terms.push(await stage.soon(election.campaign()));
    }
    const place = (index: number) => stage.store.places(names[index] as string)[0] as string;
    return { stage, session, names, terms, place };
  }

  it('lose only the one whose place is deleted, and renew by one transaction again', async () => {
    const { stage, session, terms, place } = await led(20);
    stage.store.deletePlace(place(7));
    await stage.clock.advance(20_000);
    const leading = terms.map((term) => term.isLeading());
    expect(leading).toEqual(terms.map((_, index) => index !== 7));
    const before = session.sent.get('confirm') ?? 0;
    await stage.clock.advance(10_000);
    const renewals = Math.ceil(10_000 / 1_000);
    expect((session.sent.get('confirm') ?? 0) - before).toBeLessThanOrEqual(renewals + 1);
  });

  it('each lose their own place, when several are deleted at once and nobody is told', async () => {
    const { stage, session, terms, place } = await led(6);
    // No watch tells of it, so only proofs count.
    session.hintMs = 1e9;
    for (const index of [1, 2, 4]) stage.store.deletePlace(place(index));
    await stage.clock.advance(1_100);
    await stage.clock.advance(0);
    expect(terms.map((term) => term.signal.aborted)).toEqual([
      false,
      true,
      true,
      false,
      true,
      false,
    ]);
  });
});

it('a store that tells of none of the places it was asked for has proved nothing', async () => {
  const { clock, session, places } = stand(1);
  const silent: QueueSession = { ...session, confirm: async () => ({ there: [], gone: [] }) };
  const [place] = places as [Place];
  const asked = Confirmations.of(silent, clock).confirm(place, () => true, 1_000, never);
  await expect(asked).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
});

it('a proof that is answered late does not make an older one of a newer', async () => {
  const { clock, confirmations, places, asked, hold } = stand(1);
  const [place] = places as [Place];
  const answers = hold();
  const sentFrom = async (fromMs: number) => {
    const confirming = confirmations.confirm(
      place,
      ({ monotonicMs }) => monotonicMs >= fromMs,
      1_000,
      never,
    );
    await clock.advance(0);
    return { confirming };
  };
  await clock.advance(1);
  const first = await sentFrom(1);
  await clock.advance(1);
  const second = await sentFrom(2);
  expect(asked).toHaveLength(2);
  answers[1]?.();
  expect(await second.confirming).toMatchObject({ monotonicMs: 2 });
  answers[0]?.();
  expect(await first.confirming).toMatchObject({ monotonicMs: 1 });
  await clock.advance(1);
  const third = await sentFrom(2);
  expect(asked).toHaveLength(2);
  expect(await third.confirming).toMatchObject({ monotonicMs: 2 });
});

it.each(['terms', 'next'] as const)(
  'only for its terms a client leaves a silent server: %s',
  async (share) => {
    const clock = new SimulatedClock();
    const left: number[] = [];
    const silent = {
      ...{ state: 'connected', session: { id: 1n }, onState: () => () => {} },
      transaction: () => ({ check: () => {}, commit: untilAborted }),
      leaveSilentServer: ({ silentForMs }: { readonly silentForMs: number }) =>
        left.push(silentForMs),
    };
    const session = ZooKeeperSession.of(silent as unknown as ZooKeeperClient);
    const place: Place = { name: '/e/1', token: 1n, session: 1n };
    const confirmations = Confirmations.of(session, clock, share);
    const confirming = confirmations.confirm(place, () => false, 1_000, never);
    confirming.catch(() => {});
    await clock.advance(1_000);
    await expect(confirming).rejects.toThrow(OperationTimeoutError);
    expect(left).toEqual(share === 'terms' ? [800] : []);
  },
);

function untilAborted({ signal }: { readonly signal: AbortSignal }): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
