/** Defects of other systems that concern stopping, releasing and handing over. */
import { expect, test } from 'vitest';
import type { Term, TermEndedError } from '../src/index.ts';
import { createElection, ElectionEndedError, RefusedError } from '../src/index.ts';
import { SimulatedClock, settle } from '../src/testing/index.ts';
import { lost, ScriptedStore } from './support/scripted-store.ts';

function candidate(store: ScriptedStore, clock: SimulatedClock, id: string) {
  return createElection({
    name: 'jobs',
    backend: store.backend(),
    clock,
    candidate: { id },
    random: () => 0,
  });
}

function setUp() {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  return { clock, store, election: candidate(store, clock, 'a') };
}

/** Work that ends `afterMs` after it was told to stop. */
const stopsAfter =
  (clock: SimulatedClock, afterMs: number, started?: (term: Term<bigint>) => void) =>
  (term: Term<bigint>) => {
    started?.(term);
    return new Promise<void>((resolve) => {
      term.signal.addEventListener('abort', () => clock.setTimer(resolve, afterMs));
    });
  };

test('a shutdown signal stops the work, then releases, then rejects (demand 9)', async () => {
  const { clock, store, election } = setUp();
  const stop = new AbortController();
  let term: Term<bigint> | undefined;
  const leading = election.lead(
    stopsAfter(clock, 20_000, (started) => {
      term = started;
    }),
    { signal: stop.signal },
  );
  leading.catch(() => {});
  await clock.advance(1_000);
  stop.abort(new Error('shutting down'));
  await clock.advance(19_000);
  // Renewing while the work stops: still ours, though the term was told to stop long ago.
  expect(term?.signal.aborted).toBe(true);
  expect(term?.isLeading()).toBe(true);
  expect(store.record?.holding?.candidate.id).toBe('a');
  await clock.advance(2_000);
  await expect(leading).rejects.toThrow('shutting down');
  expect(term?.isLeading()).toBe(false);
  expect(store.record?.holding).toBe(undefined);
  expect(await term?.ended).toEqual({
    reason: 'withdrawn',
    released: true,
    overrunMs: 0,
    error: expect.any(Error),
  });
  await election.close();
});

test('a signal that was aborted before campaigns for nothing', async () => {
  const { store, election } = setUp();
  await expect(
    election.lead(() => 1, { signal: AbortSignal.abort(new Error('too late')) }),
  ).rejects.toThrow('too late');
  expect(store.swaps).toBe(0);
  await election.close();
});

test('work that does not settle is not released: renewed for stopTimeout, then left to run out (KB3)', async () => {
  const { clock, store, election } = setUp();
  const stop = new AbortController();
  let term: Term<bigint> | undefined;
  const leading = election.lead(
    stopsAfter(clock, 100_000, (started) => {
      term = started;
    }),
    { signal: stop.signal },
  );
  leading.catch(() => {});
  await clock.advance(0);
  stop.abort();
  await clock.advance(60_000);
  expect(term?.isLeading()).toBe(false);
  expect(store.record?.holding?.candidate.id).toBe('a');
  await clock.advance(50_000);
  const outcome = await term?.ended;
  expect(outcome).toMatchObject({ reason: 'withdrawn', released: false });
  // Told to stop at 0 s, renewed until 30 s, belief until at most 42 s, settled at 100 s.
  expect(outcome?.overrunMs).toBeGreaterThanOrEqual(58_000);
  expect(outcome?.overrunMs).toBeLessThanOrEqual(70_000);
  await leading.catch(() => {});
  await election.close();
});

test('a candidate with unsettled work of an older term does not campaign', async () => {
  const { clock, store, election } = setUp();
  let running = 0;
  let most = 0;
  let terms = 0;
  const leading = election.lead(async (term) => {
    terms += 1;
    running += 1;
    most = Math.max(most, running);
    await stopsAfter(clock, terms === 1 ? 200_000 : 1)(term);
    running -= 1;
  });
  leading.catch(() => {});
  await clock.advance(1_000);
  store.onSwap = () => lost();
  await clock.advance(20_000);
  store.onSwap = async (apply) => apply();
  await clock.advance(100_000);
  expect([running, most, terms]).toEqual([1, 1, 1]);
  await clock.advance(200_000);
  expect([most, terms]).toEqual([1, 2]);
  const closed = election.close();
  await clock.advance(1_000);
  await closed;
  await expect(leading).rejects.toThrow('is closed');
});

test('a release meets our own confirmation that landed late: retried, not given up (KB2)', async () => {
  const { clock, store, election } = setUp();
  const term = await election.campaign();
  // The renewal at 3 s lands, its answer does not come.
  store.onSwap = (apply) => {
    apply();
    store.onSwap = async (again) => again();
    return lost();
  };
  await clock.advance(3_100);
  const disposed = term[Symbol.asyncDispose]();
  await clock.advance(1_000);
  await disposed;
  expect((await term.ended).released).toBe(true);
  expect(store.record?.holding).toBe(undefined);
  await election.close();
});

test('a successor is never erased by a late release (KB4)', async () => {
  const { clock, store, election } = setUp();
  const term = await election.campaign();
  store.hold('b', 2n, 15_000);
  const before = store.record;
  const disposed = term[Symbol.asyncDispose]();
  await clock.advance(10_000);
  await disposed;
  expect(store.record).toBe(before);
  expect((await term.ended).released).toBe(false);
  await election.close();
});

test('a store that cannot be reached bounds the release (KB2)', async () => {
  const { clock, store, election } = setUp();
  const term = await election.campaign();
  store.onSwap = () => lost();
  store.onRead = () => lost();
  const disposed = term[Symbol.asyncDispose]();
  await clock.advance(3 * 2_500);
  await disposed;
  expect((await term.ended).released).toBe(false);
  await election.close();
});

test('resign, dispose, close and abort, twice and in any order (CB9)', async () => {
  for (const order of ['rdc', 'cdr', 'drc', 'rrcc', 'ddcc', 'cd', 'arcd']) {
    const { clock, election } = setUp();
    const stop = new AbortController();
    const term = await election.campaign({ signal: stop.signal });
    const waits: Promise<unknown>[] = [];
    for (const step of order) {
      if (step === 'r') term.resign();
      if (step === 'd') waits.push(term[Symbol.asyncDispose]());
      if (step === 'c') waits.push(election.close());
      if (step === 'a') stop.abort();
    }
    if (!order.includes('d')) waits.push(term[Symbol.asyncDispose]());
    await clock.advance(60_000);
    await Promise.all(waits);
    expect((await term.ended).released).toBe(true);
    expect(term.state).toBe('ended');
  }
});

test('an abort listener that calls back into the term finds everything decided', async () => {
  const { clock, election } = setUp();
  const term = await election.campaign();
  const seen: unknown[] = [];
  term.signal.addEventListener('abort', () => {
    term.resign();
    seen.push(term.state, (term.signal.reason as TermEndedError).reason);
    void term[Symbol.asyncDispose]();
    void election.close();
  });
  term.resign();
  await clock.advance(1_000);
  expect(seen).toEqual(['stopping', 'resigned']);
  expect((await term.ended).reason).toBe('resigned');
});

test('work: an error of its own rejects, one of the term is a loss', async () => {
  const { clock, store, election } = setUp();
  await expect(
    election.lead(() => {
      throw new Error('bad job');
    }),
  ).rejects.toThrow('bad job');
  expect((await election.history()).at(-1)?.why).toBe('work-failed');
  let runs = 0;
  const leading = election.lead(async (term) => {
    runs += 1;
    if (runs === 3) return 'done';
    if (runs === 1) {
      store.onSwap = () => lost();
      clock.setTimer(() => {
        store.onSwap = async (apply) => apply();
      }, 13_000);
    } else {
      term.resign();
    }
    if (!term.signal.aborted) {
      await new Promise((resolve) => term.signal.addEventListener('abort', resolve));
    }
    throw new Error('wrapped', { cause: term.signal.reason });
  });
  await clock.advance(60_000);
  expect(await leading).toBe('done');
  expect(runs).toBe(3);
  await election.close();
});

test('assertLeading that throws out of the work counts as loss', async () => {
  const { clock, election } = setUp();
  let runs = 0;
  const leading = election.lead((term) => {
    runs += 1;
    if (runs === 1) {
      clock.stall(5_000);
      term.assertLeading(8_000);
    }
    return runs;
  });
  await clock.advance(0);
  await clock.advance(10_000);
  expect(await leading).toBe(2);
  await election.close();
});

test('vacate leaves a request: the leader stops its work first, and gives way', async () => {
  const { clock, store, election } = setUp();
  const other = candidate(store, clock, 'b');
  const led: string[] = [];
  const work = (id: string) => async (term: Term<bigint>) => {
    led.push(id);
    await stopsAfter(clock, 1_000)(term);
  };
  const stop = new AbortController();
  const a = election.lead(work('a'), { signal: stop.signal });
  await clock.advance(100);
  const b = other.lead(work('b'), { signal: stop.signal });
  await clock.advance(1_000);
  const operator = candidate(store, clock, 'operator');
  expect((await operator.vacate()).changed).toBe(true);
  expect(store.record?.holding?.candidate.id).toBe('a');
  await clock.advance(10_000);
  expect(led).toEqual(['a', 'b']);
  expect((await operator.history()).at(-1)).toMatchObject({ id: 'a', why: 'vacated' });
  stop.abort();
  await clock.advance(10_000);
  await Promise.allSettled([a, b]);
  await Promise.all([election.close(), other.close(), operator.close()]);
});

test('force: no confirmation counts any more, and everybody still waits out the belief', async () => {
  const { clock, store, election } = setUp();
  const other = candidate(store, clock, 'b');
  const term = await election.campaign();
  const taking = other.campaign();
  await clock.advance(1_000);
  await other.vacate({ force: true });
  await clock.advance(3_000);
  // It was told to stop. Its belief runs on, so no other candidate may lead yet.
  expect((term.signal.reason as TermEndedError).reason).toBe('vacated');
  expect(term.isLeading()).toBe(true);
  expect(store.record?.token).toBe(1n);
  await clock.advance(12_000);
  expect(term.isLeading()).toBe(false);
  await clock.advance(5_000);
  const next = await taking;
  expect(next.token).toBe(2n);
  const disposed = [term[Symbol.asyncDispose](), next[Symbol.asyncDispose]()];
  await clock.advance(1_000);
  await Promise.all(disposed);
  await Promise.all([election.close(), other.close()]);
});

test('transfer hands over to the named candidate and to nobody else', async () => {
  const { clock, store, election } = setUp();
  const [b, c] = [candidate(store, clock, 'b'), candidate(store, clock, 'c')];
  const term = await election.campaign();
  const waitingB = b.campaign();
  const waitingC = c.campaign();
  await clock.advance(1_000);
  await expect(b.transfer('a')).rejects.toThrow(RefusedError);
  await b.transfer('c');
  term.signal.addEventListener('abort', () => void term[Symbol.asyncDispose]());
  await clock.advance(8_000);
  const next = await waitingC;
  expect(next.token).toBe(2n);
  expect((await election.history()).at(-1)).toMatchObject({ id: 'a', why: 'handed-over' });
  await next[Symbol.asyncDispose]();
  await clock.advance(8_000);
  await (await waitingB)[Symbol.asyncDispose]();
  await Promise.all([election.close(), b.close(), c.close()]);
});

test('transfer waits for the named candidate also where everybody only looks now and then', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const open = (id: string) =>
    createElection({
      name: 'jobs',
      backend: store.backend(),
      clock,
      candidate: { id },
      random: () => 0,
      lease: '45s',
      pollEvery: '22.5s',
    });
  const [a, b, c] = [open('a'), open('b'), open('c')];
  const term = await a.campaign();
  term.signal.addEventListener('abort', () => void term[Symbol.asyncDispose]());
  // Looks at 22.5 s and 45 s, and c a second later.
  const waitingB = b.campaign();
  await clock.advance(1_000);
  const waitingC = c.campaign();
  await clock.advance(24_000);
  await c.transfer('c');
  await clock.advance(22_000);
  const next = await waitingC;
  expect(next.token).toBe(2n);
  await next[Symbol.asyncDispose]();
  await clock.advance(80_000);
  await (await waitingB)[Symbol.asyncDispose]();
  await Promise.all([a.close(), b.close(), c.close()]);
});

test('transfer when nobody leads is refused with the reason', async () => {
  const { election } = setUp();
  await expect(election.transfer('x')).rejects.toThrow('nobody leads election "jobs"');
  await election.close();
});

test('a drained candidate stays out until then, also when it leads', async () => {
  const { clock, election } = setUp();
  const term = await election.campaign();
  await election.drain('a', new Date(clock.wallMs() + 60_000));
  term.signal.addEventListener('abort', () => void term[Symbol.asyncDispose]());
  await clock.advance(4_000);
  expect((await term.ended).reason).toBe('vacated');
  const again = election.campaign();
  await clock.advance(50_000);
  expect((await election.leader()).state).toBe('vacant');
  await clock.advance(12_000);
  await (await again)[Symbol.asyncDispose]();
  await election.close();
});

test('a term under way when the election is ended stops its work first', async () => {
  const { clock, store, election } = setUp();
  let stopped = false;
  const leading = election.lead(async (term) => {
    await stopsAfter(clock, 5_000)(term);
    expect(term.isLeading()).toBe(true);
    stopped = true;
  });
  leading.catch(() => {});
  await clock.advance(1_000);
  const operator = candidate(store, clock, 'operator');
  await operator.end();
  await clock.advance(20_000);
  expect(stopped).toBe(true);
  await expect(leading).rejects.toThrow(ElectionEndedError);
  await Promise.all([election.close(), operator.close()]);
});

test('holdAtLeast keeps the seat after a short job, and a withdrawal leaves it closed', async () => {
  const { clock, store, election } = setUp();
  const other = candidate(store, clock, 'b');
  const ran: string[] = [];
  const job = (id: string) => () => void ran.push(id);
  const first = election.lead(job('a'), { holdAtLeast: '10s' });
  await clock.advance(10);
  const stop = new AbortController();
  const second = other.lead(job('b'), { holdAtLeast: '10s', signal: stop.signal });
  await clock.advance(9_900);
  expect(ran).toEqual(['a']);
  await clock.advance(4_000);
  await first;
  expect(ran).toEqual(['a', 'b']);
  stop.abort();
  await clock.advance(100);
  await second;
  expect(store.record?.holding).toBe(undefined);
  expect(store.record?.reservation?.reserveMs).toBeGreaterThan(5_000);
  const third = election.lead(job('c'));
  await clock.advance(5_000);
  expect(ran).toEqual(['a', 'b']);
  await clock.advance(10_000);
  await third;
  expect(ran).toEqual(['a', 'b', 'c']);
  await Promise.all([election.close(), other.close()]);
});

test('an unhealthy candidate stays out, an unhealthy leader gives its term up', async () => {
  const { clock, election } = setUp();
  let healthy = false;
  const led: boolean[] = [];
  const stop = new AbortController();
  const leading = election.lead(
    async (term) => {
      led.push(healthy);
      await stopsAfter(clock, 0)(term);
    },
    {
      signal: stop.signal,
      health: {
        every: '1s',
        check: () => {
          if (!healthy) throw new Error('disk full');
        },
      },
    },
  );
  leading.catch(() => {});
  await clock.advance(10_000);
  expect(led).toEqual([]);
  healthy = true;
  await clock.advance(2_000);
  expect(led).toEqual([true]);
  healthy = false;
  await clock.advance(2_000);
  expect((await election.history()).at(-1)?.why).toBe('unhealthy');
  await clock.advance(20_000);
  expect(led).toEqual([true]);
  stop.abort();
  await settle();
  await clock.advance(1);
  await leading.catch(() => {});
  await election.close();
});

test('campaign with wait gives up in time; wait 0 tries once', async () => {
  const { clock, store, election } = setUp();
  store.hold('b', 1n, 600_000);
  await expect(election.campaign({ wait: 0 })).rejects.toThrow('"b" leads with token 1');
  const waiting = election.campaign({ wait: '30s' });
  waiting.catch(() => {});
  await clock.advance(30_000);
  await expect(waiting).rejects.toThrow('was not won within 30s');
  expect(store.swaps).toBe(0);
  await election.close();
});

test('close waits for a seat that is still won meanwhile, and gives it back', async () => {
  const { clock, store, election } = setUp();
  let answer = () => {};
  store.onSwap = (apply) =>
    new Promise((resolve) => {
      store.onSwap = async (again) => again();
      answer = () => resolve(apply());
    });
  const campaign = election.campaign();
  campaign.catch(() => {});
  await clock.advance(0);
  let isClosed = false;
  const closed = election.close().then(() => {
    isClosed = true;
  });
  await clock.advance(1_000);
  expect(isClosed).toBe(false);
  answer();
  await settle();
  // As soon as that is so: who closes may end the process.
  expect(store.record).toMatchObject({ token: 1n, holding: undefined });
  expect(isClosed).toBe(true);
  await closed;
  await expect(campaign).rejects.toThrow('is closed');
});

test('terms() gives one term after the other, each settled at the next', async () => {
  const { clock, election } = setUp();
  const tokens: bigint[] = [];
  const looping = (async () => {
    for await (const term of election.terms()) {
      expect(term.isLeading()).toBe(true);
      tokens.push(term.token);
      if (tokens.length === 3) break;
    }
  })();
  await clock.advance(20_000);
  await looping;
  expect(tokens).toEqual([1n, 2n, 3n]);
  expect((await election.leader()).state).toBe('vacant');
  expect(clock.pendingTimers).toBe(0);
  await election.close();
});

test('nothing is left behind: no timers after close', async () => {
  const { clock, election } = setUp();
  const leading = election.lead(stopsAfter(clock, 0));
  leading.catch(() => {});
  await clock.advance(20_000);
  const closed = election.close();
  await clock.advance(1_000);
  await closed;
  await leading.catch(() => {});
  expect(clock.pendingTimers).toBe(0);
});
