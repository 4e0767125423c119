import { describe, expect, test } from 'vitest';
import { createElection, NotElectedError } from '../src/index.ts';
import type { SimulatedConnection } from '../src/testing/index.ts';
import { runConformance, SimulatedClock, SimulatedLeaseStore } from '../src/testing/index.ts';

function setUp() {
  const clock = new SimulatedClock();
  const store = new SimulatedLeaseStore({ clock });
  const elect = (connection: SimulatedConnection, id: string) =>
    createElection({ name: 'jobs', backend: connection.backend, clock, candidate: { id } });
  return { clock, store, elect };
}

describe('a simulated store', () => {
  test('applies a swap whose reply is lost, and the candidate finds its own nonce', async () => {
    const { clock, store, elect } = setUp();
    const a = store.connect();
    a.next('swap', { lose: 'reply' });
    const winning = elect(a, 'a').campaign();
    await clock.advance(0);
    expect(store.record('jobs')?.holding?.candidate.id).toBe('a');
    await clock.advance(15_000 / 6);
    const term = await winning;
    expect(term.token).toBe(1n);
    expect(store.version('jobs')).toBe(1);
    // Belief counts from when the write was sent, not from when it was found.
    expect(term.remaining()).toBe(12_000 - 2_500);
  });

  test('loses a request: nothing is applied', async () => {
    const { clock, store, elect } = setUp();
    const a = store.connect();
    a.next('swap', { lose: 'request' });
    const winning = elect(a, 'a').campaign();
    await clock.advance(2_400);
    expect(store.record('jobs')).toBeUndefined();
    await clock.advance(5_000);
    expect((await winning).token).toBe(1n);
  });

  test('answers with an error before or after applying', async () => {
    const { clock, store, elect } = setUp();
    const [a, b] = [store.connect(), store.connect()];
    a.next('swap', { fail: 'after' });
    const term = elect(a, 'a').campaign();
    await clock.advance(1);
    expect((await term).token).toBe(1n);
    b.next('read', { fail: 'before' });
    await expect(elect(b, 'b').campaign({ wait: 0 })).rejects.toThrow(/failed before/);
    await expect(elect(b, 'b').campaign({ wait: 0 })).rejects.toThrow(NotElectedError);
  });

  test('delays requests and replies by the clock', async () => {
    const { clock, store, elect } = setUp();
    const a = store.connect();
    a.next('swap', { requestMs: 100, replyMs: 200 });
    const winning = elect(a, 'a').campaign();
    await clock.advance(99);
    expect(store.version('jobs')).toBe(0);
    await clock.advance(1);
    expect(store.version('jobs')).toBe(1);
    await clock.advance(200);
    expect((await winning).remaining()).toBe(12_000 - 300);
  });

  test('delivers a swap twice: the second time it conflicts', async () => {
    const { clock, store, elect } = setUp();
    const a = store.connect();
    a.next('swap', { againAfterMs: 50 });
    const term = await elect(a, 'a').campaign();
    await clock.advance(100);
    expect(store.version('jobs')).toBe(1);
    expect(term.isLeading()).toBe(true);
  });

  test('holds operations until they are let go one by one', async () => {
    const { clock, store, elect } = setUp();
    const [a, b] = [store.connect(), store.connect()];
    a.hold('swap');
    b.hold('swap');
    const [first, second] = [elect(a, 'a').campaign(), elect(b, 'b').campaign({ wait: 0 })];
    const refused = expect(second).rejects.toThrow(NotElectedError);
    await clock.advance(0);
    expect([a.held.length, b.held.length]).toEqual([1, 1]);
    expect(a.held[0]?.next?.holding?.candidate.id).toBe('a');
    a.held[0]?.apply();
    a.held[0]?.apply();
    expect(store.version('jobs')).toBe(1);
    b.release('swap');
    await refused;
    a.release('swap');
    expect((await first).token).toBe(1n);
    expect(a.held).toEqual([]);
  });

  test('an outage ends a term; when it is over a candidate leads again', async () => {
    const { clock, store, elect } = setUp();
    const a = store.connect();
    const election = elect(a, 'a');
    const tokens: bigint[] = [];
    const leading = election.lead(async (term) => {
      tokens.push(term.token);
      await new Promise((resolve) => term.signal.addEventListener('abort', resolve));
    });
    leading.catch(() => {});
    await clock.advance(1_000);
    for (const outage of ['silent', 'refuses', 'refuses-writes'] as const) {
      a.outage = outage;
      await clock.advance(30_000);
      a.outage = 'none';
      await clock.advance(30_000);
    }
    expect(tokens).toEqual([1n, 2n, 3n, 4n]);
    const closed = election.close();
    await clock.advance(1_000);
    await closed;
    expect(store.record('jobs')?.holding).toBeUndefined();
  });

  test('a record that is deleted by hand ends the term at the next confirmation', async () => {
    const { clock, store, elect } = setUp();
    const term = await elect(store.connect(), 'a').campaign();
    store.put('jobs', undefined);
    await clock.advance(3_000);
    expect(term.signal.reason).toMatchObject({ reason: 'record-gone' });
    expect(term.isLeading()).toBe(false);
  });
});

describe('runConformance', () => {
  test('reports what passed, what failed, and what was skipped and why', async () => {
    const seen: string[] = [];
    const cleaned: string[] = [];
    const results = await runConformance<string>(
      [
        {
          name: 'passes',
          async run(context) {
            context.onCleanUp(() => cleaned.push('first'));
            context.onCleanUp(() => cleaned.push('second'));
            if ((await context.open()) !== `on ${context.election}`) throw new Error('open');
          },
        },
        { name: 'fails', run: () => Promise.reject(new Error('not so')) },
        { name: 'hangs', run: () => new Promise(() => {}) },
        { name: 'needs more', needs: 'age', run: () => Promise.reject(new Error('ran')) },
      ],
      {
        open: (election) => `on ${election}`,
        timeoutMs: 50,
        onResult: ({ name }) => seen.push(name),
      },
    );
    expect(results.map(({ outcome, reason }) => [outcome, reason])).toEqual([
      ['passed', undefined],
      ['failed', 'not so'],
      ['failed', 'not done after 50 ms'],
      ['skipped', 'the backend does not offer "age"'],
    ]);
    expect(seen).toEqual(['passes', 'fails', 'hangs', 'needs more']);
    expect(cleaned).toEqual(['second', 'first']);
  });
});
