/** The findings of a hostile reading of the core: one schedule each. */
import { expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import type { Backend } from '../src/core/contest.ts';
import type { ElectionOptions, Term } from '../src/index.ts';
import {
  createElection,
  InvalidOptionError,
  InvalidTimingError,
  MisuseError,
  NotElectedError,
  RecordDamagedError,
} from '../src/index.ts';
import { leaseBackend } from '../src/mechanisms/lease/backend.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import { lost, ScriptedStore } from './support/scripted-store.ts';

function candidate(
  backend: Backend<bigint>,
  clock: SimulatedClock,
  id: string,
  options: Partial<ElectionOptions<bigint>> = {},
) {
  return createElection({
    name: 'jobs',
    backend,
    clock,
    candidate: { id },
    random: () => 0,
    ...options,
  });
}

function setUp() {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  return { clock, store, election: candidate(store.backend(), clock, 'a') };
}

test('the process that holds the belief is an actor, whatever else is declared', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const dead = new Set<number>();
  const backend = store.backend({
    describe: async ({ pid }) => ({ pid }),
    provesGone: (actors) => actors.every(({ pid }) => dead.has(pid as number)),
  });
  const [a, b] = [candidate(backend, clock, 'a'), candidate(backend, clock, 'b')];
  const term = await a.campaign({ actors: 'declared' });
  const declared = term.declareActors([{ pid: 4711 }]);
  await clock.advance(1);
  await declared;
  dead.add(4711);
  const taking = b.campaign();
  await clock.advance(9_000);
  expect(store.record?.token).toBe(1n);
  expect(term.isLeading()).toBe(true);
  await term[Symbol.asyncDispose]();
  await clock.advance(5_000);
  await (await taking)[Symbol.asyncDispose]();
  await Promise.all([a.close(), b.close()]);
});

test('pauses of nothing are refused: they would keep the store and the process busy', () => {
  for (const name of ['retryBackoff', 'pollEvery', 'renewEvery'] as const) {
    expect(() => createElection({ name: 'jobs', backend: memory(), [name]: 1 })).toThrow(
      InvalidTimingError,
    );
  }
});

test('to try once does not wait for a health that does not come', async () => {
  const { clock, election } = setUp();
  const trying = election.campaign({ wait: 0, health: { check: () => false } });
  await expect(trying).rejects.toThrow(NotElectedError);
  await expect(election.lead(() => 1, { wait: 0, health: { check: () => false } })).rejects.toThrow(
    'the health check fails',
  );
  await clock.advance(1);
  await election.close();
});

test('a store that hangs when asked to describe a process or to close is waited for in bounds', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const backend = store.backend({ describe: () => lost(), close: () => lost() });
  const election = candidate(backend, clock, 'a');
  const campaign = election.campaign();
  await clock.advance(5_000);
  const term = await campaign;
  expect(store.record?.holding?.actors).toBe(null);
  await term[Symbol.asyncDispose]();
  const closed = election.close();
  await clock.advance(5_000);
  await closed;
});

test('a store that cannot describe a process elects all the same', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const describe = async () => {
    throw new Error('EMFILE');
  };
  const election = candidate(store.backend({ describe }), clock, 'a');
  expect(await election.lead(() => 1)).toBe(1);
  await election.close();
});

test('a guard that cannot be made ends the campaign and leaves no seat behind', async () => {
  const { clock, store } = setUp();
  const backend = leaseBackend<bigint>({
    kind: 'broken',
    description: 'a store with a broken guard',
    openStore: () => store.open(),
    guard: () => {
      throw new Error('no key');
    },
  });
  const election = candidate(backend, clock, 'a');
  await expect(election.lead(() => 1)).rejects.toThrow('could not make the guard of term 1');
  expect(store.swaps).toBe(0);
  await election.close();
});

test('a store that cannot be watched is polled', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const watch = () => {
    throw new Error('ENOSPC: no inotify watch left');
  };
  const election = candidate(store.backend({ watch }), clock, 'a');
  const views = election.observe();
  expect((await views.next()).value?.state).toBe('vacant');
  expect(await election.lead(() => 1)).toBe(1);
  await views.return();
  await election.close();
});

test('a damaged record is reported, not retried for ever', async () => {
  const { store, election } = setUp();
  store.onRead = async () => {
    throw new RecordDamagedError('/a/file', 'no JSON');
  };
  await expect(election.lead(() => 1)).rejects.toThrow('/a/file is not an election record');
  await election.close();
});

test('candidates that live for a minute can wait out a reservation, and operators lift it', async () => {
  const { clock, store, election } = setUp();
  const stop = new AbortController();
  const job = election.lead(() => 'done', { holdAtLeast: '10m', signal: stop.signal });
  await clock.advance(1);
  stop.abort();
  await clock.advance(1);
  expect(await job).toBe('done');
  let elected = 0;
  for (let minute = 0; minute < 12; minute += 1) {
    const shortLived = candidate(store.backend(), clock, 'b');
    const trying = shortLived.lead(() => 1, { wait: '50s' });
    trying.then(
      () => {
        elected += 1;
      },
      () => {},
    );
    await clock.advance(60_000);
    await shortLived.close();
    if (minute < 9) expect(elected).toBe(0);
  }
  expect(elected).toBeGreaterThan(0);
  const again = election.lead(() => 1, { holdAtLeast: '10m', signal: AbortSignal.timeout(0) });
  await clock.advance(600_000);
  await again.catch(() => {});
  store.record = store.record && {
    ...store.record,
    reservation: { for: undefined, reserveMs: 1e6, untilUnixMs: clock.wallMs() + 1e6 },
  };
  expect((await election.vacate()).changed).toBe(true);
  expect(store.record?.reservation).toBe(undefined);
  await election.close();
});

test('a candidate gives way from one campaign to the next', async () => {
  const { clock, store, election } = setUp();
  const other = candidate(store.backend(), clock, 'b');
  const led: string[] = [];
  const stop = new AbortController();
  const loop = async (id: string, handle: typeof election) => {
    while (!stop.signal.aborted) {
      const term = await handle.campaign({ signal: stop.signal });
      led.push(id);
      await new Promise<void>((resolve) => clock.setTimer(resolve, 4_000));
      await term[Symbol.asyncDispose]();
    }
  };
  const loops = [loop('a', election), loop('b', other)];
  await clock.advance(40_000);
  stop.abort();
  await clock.advance(20_000);
  await Promise.allSettled(loops);
  expect(led.slice(0, 4)).toEqual(['a', 'b', 'a', 'b']);
  await Promise.all([election.close(), other.close()]);
});

test('one vacate ousts one leader, also when its answer is lost', async () => {
  const { clock, store, election } = setUp();
  const other = candidate(store.backend(), clock, 'b', { pollEvery: '100ms' });
  const operator = candidate(store.backend(), clock, 'operator');
  const leading = (handle: typeof election) =>
    handle.lead(
      (term) =>
        new Promise<void>((resolve) => {
          term.signal.addEventListener('abort', () => resolve());
        }),
    );
  const a = leading(election);
  await clock.advance(100);
  const b = leading(other);
  await clock.advance(100);
  let swallow = true;
  store.onSwap = (apply, next) => {
    const result = apply();
    if (next.holding?.request === undefined || !swallow) return Promise.resolve(result);
    swallow = false;
    return lost();
  };
  const vacating = operator.vacate();
  await clock.advance(20_000);
  // The last look shows what came after the term that was asked.
  expect(await vacating).toMatchObject({
    changed: true,
    asked: { state: 'led', leader: { id: 'a' }, token: 1n },
  });
  expect((await operator.leader()).leader?.id).toBe('b');
  const history = await operator.history();
  expect(history.map(({ id, why }) => `${id} ${why}`)).toEqual(['a vacated']);
  const closed = [election.close(), other.close()];
  await clock.advance(1_000);
  await Promise.all(closed);
  await Promise.allSettled([a, b]);
  await operator.close();
});

test('a stall across the end of belief is a loss, and an overrun', async () => {
  const { clock, election } = setUp();
  const terms: Term<bigint>[] = [];
  const leading = election.lead((term) => {
    terms.push(term);
    if (terms.length === 1) clock.stall(60_000);
    return terms.length;
  });
  await clock.advance(0);
  await clock.advance(30_000);
  expect(await leading).toBe(2);
  expect(await terms[0]?.ended).toMatchObject({ reason: 'stalled', overrunMs: 48_000 });
  await election.close();
});

test('a listener that hears of the end of a term may campaign again', async () => {
  const { clock, election } = setUp();
  const first = await election.campaign();
  void first[Symbol.asyncDispose]();
  await clock.advance(1);
  await first.ended;
  const again = election.campaign();
  await clock.advance(10_000);
  await (await again)[Symbol.asyncDispose]();
  await election.close();
});

test('iterators end while they wait', async () => {
  const { clock, store, election } = setUp();
  store.hold('other', 1n, 600_000);
  const terms = election.terms();
  const waiting = terms.next();
  await clock.advance(1_000);
  const ended = terms.return();
  await clock.advance(0);
  expect(await waiting).toEqual({ done: true, value: undefined });
  await ended;
  const views = election.observe();
  await views.next();
  const next = views.next();
  await clock.advance(1_000);
  await views.return();
  expect((await next).done).toBe(true);
  expect(clock.pendingTimers).toBe(0);
  await election.close();
});

test.each([
  [{ leese: 5 }, 'createElection has no option "leese"; it knows lease'],
  [{ clock: {} }, 'clock must have monotonicMs'],
  [{ random: 3 }, 'random must be a function, not 3'],
  [{ candidate: 'a' }, 'candidate must be an object such as { id: "host-7" }, not "a"'],
])('createElection refuses %j', (options, message) => {
  const create = () => createElection({ name: 'jobs', backend: memory(), ...(options as object) });
  expect(create).toThrow(InvalidOptionError);
  expect(create).toThrow(message);
});

test.each([
  [{ signal: 5 }, 'signal must be an AbortSignal, not 5'],
  [{ onBelief: 5 }, 'onBelief must be a function, not 5'],
  [{ weight: 5 }, 'has no option "weight"'],
  [{ candidate: null }, 'candidate must be an object'],
  [
    { candidate: { adresses: ['10.0.0.7:1'] } },
    'a candidate has no "adresses"; it has id, addresses, metadata',
  ],
  [{ watchdog: 'kill' }, 'leave out `clock`'],
])('a campaign refuses %j before it begins', async (options, message) => {
  const { clock, election } = setUp();
  let checks = 0;
  const health = {
    check: () => {
      checks += 1;
    },
  };
  const all = { health, ...(options as object) };
  await expect(election.campaign(all)).rejects.toThrow(message);
  expect(() => election.terms(all)).toThrow(message);
  await clock.advance(60_000);
  expect(checks).toBe(0);
  await election.close();
});

test('what listens to the belief may fail in any way', async () => {
  const { clock, election } = setUp();
  let told = 0;
  const onBelief = async () => {
    told += 1;
    throw new Error('my own bug');
  };
  const term = await election.campaign({ onBelief: onBelief as () => void });
  await clock.advance(10_000);
  expect(told).toBeGreaterThan(2);
  expect(term.isLeading()).toBe(true);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('work is not begun for a term that is ending', async () => {
  for (let turns = 0; turns < 80; turns += 1) {
    const { clock, election } = setUp();
    let begunAborted = false;
    const leading = election.lead((term) => {
      begunAborted = term.signal.aborted;
    });
    leading.catch(() => {});
    for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
    const closed = election.close();
    await clock.advance(1_000);
    await closed;
    await leading.catch(() => {});
    expect(begunAborted).toBe(false);
  }
});

test('a job whose holding is cut short by a drain stays held', async () => {
  const { clock, store, election } = setUp();
  const other = candidate(store.backend(), clock, 'b', { pollEvery: '100ms' });
  const ran: string[] = [];
  const first = election.lead(() => void ran.push('a'), { holdAtLeast: '5m' });
  await clock.advance(100);
  const second = other.lead(() => void ran.push('b'));
  await other.drain('a', new Date(clock.wallMs() + 60_000));
  await clock.advance(200_000);
  await first;
  expect(ran).toEqual(['a']);
  await clock.advance(200_000);
  await second;
  expect(ran).toEqual(['a', 'b']);
  await Promise.all([election.close(), other.close()]);
});

test('disposing the term from within the work of lead is misuse', async () => {
  const { clock, election } = setUp();
  const leading = election.lead((term) => term[Symbol.asyncDispose]());
  leading.catch(() => {});
  await clock.advance(10_000);
  await expect(leading).rejects.toThrow(MisuseError);
  await election.close();
});

test('health checks that hang do not pile up', async () => {
  const { clock, election } = setUp();
  let running = 0;
  const stop = new AbortController();
  const campaign = election.campaign({
    signal: stop.signal,
    health: {
      check: () => {
        running += 1;
        return new Promise(() => {});
      },
    },
  });
  campaign.catch(() => {});
  await clock.advance(3_600_000);
  expect(running).toBe(1);
  stop.abort();
  await clock.advance(10_000);
  await campaign.catch(() => {});
  await election.close();
});

test('a job that is done stays done for the time it is held, even if its process dies', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  let dead = false;
  const backend = store.backend({
    describe: async ({ pid }) => ({ pid }),
    provesGone: () => dead,
  });
  const [a, b] = [candidate(backend, clock, 'a'), candidate(backend, clock, 'b')];
  const ran: string[] = [];
  const first = a.lead(() => void ran.push('a'), { holdAtLeast: '5m' });
  await clock.advance(1_000);
  expect((await b.inspect()).reservation).toMatchObject({ for: undefined });
  // The process is gone: nothing of it runs any more.
  store.onSwap = async (apply, next) =>
    next.holding?.candidate.id === 'a' || next.holding === undefined ? lost() : apply();
  dead = true;
  const second = b.lead(() => void ran.push('b'));
  await clock.advance(240_000);
  expect(ran).toEqual(['a']);
  await expect(b.campaign()).rejects.toThrow('campaigns already');
  await clock.advance(70_000);
  expect(ran).toEqual(['a', 'b']);
  store.onSwap = async (apply) => apply();
  await clock.advance(60_000);
  await Promise.all([first, second]);
  await Promise.all([a.close(), b.close()]);
});

test('a lost term is not campaigned for again where that is not wanted', async () => {
  const { clock, store, election } = setUp();
  const leading = election.lead(
    (term) =>
      new Promise<void>((resolve) => term.signal.addEventListener('abort', () => resolve())),
    { again: (reason) => reason !== 'superseded' },
  );
  leading.catch(() => {});
  await clock.advance(1_000);
  store.hold('other', 9n, 15_000);
  await clock.advance(10_000);
  await expect(leading).rejects.toMatchObject({ code: 'TERM_ENDED', reason: 'superseded' });
  await election.close();
});

test('a candidate that was not elected hears of the trouble meanwhile', async () => {
  const { clock, store, election } = setUp();
  store.onRead = async () => {
    throw new Error('ENOTDIR: not a directory');
  };
  const waiting = election.lead(() => 1, { wait: '5s' });
  waiting.catch(() => {});
  await clock.advance(10_000);
  await expect(waiting).rejects.toThrow('the store cannot be used: ENOTDIR');
  await election.close();
});
