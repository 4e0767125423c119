/** Defects of other systems that concern winning the seat and watching it. */
import { expect, test } from 'vitest';
import type { View } from '../src/index.ts';
import { createElection } from '../src/index.ts';
import { SimulatedClock, settle } from '../src/testing/index.ts';
import { lost, ScriptedStore } from './support/scripted-store.ts';

function candidate(store: ScriptedStore, clock: SimulatedClock, id: string, lease = '15s') {
  return createElection({
    name: 'jobs',
    backend: store.backend(),
    clock,
    lease,
    candidate: { id },
    random: () => 0,
  });
}

test('the first attempt waits out a record that it finds, for the lease in the record (VB2, KB7)', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('dead', 7n, 40_000);
  const election = candidate(store, clock, 'b', '1s');
  const campaign = election.campaign();
  await clock.advance(39_900);
  expect(store.swaps).toBe(0);
  await clock.advance(400);
  const term = await campaign;
  expect(term.token).toBe(8n);
  expect(term.predecessor).toMatchObject({ id: 'dead', token: 7n, clean: false });
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('every confirmation starts the wait anew, an operator’s request does not', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('slow', 1n, 15_000);
  const election = candidate(store, clock, 'b');
  const campaign = election.campaign();
  for (let renewals = 0; renewals < 10; renewals += 1) {
    await clock.advance(12_000);
    store.hold('slow', 1n, 15_000);
  }
  expect(store.swaps).toBe(0);
  // An operator drains a third candidate every few seconds. That prolongs no belief.
  const operator = candidate(store, clock, 'operator');
  for (let seconds = 0; seconds < 20; seconds += 4) {
    await operator.drain('x', new Date(clock.wallMs() + 3_600_000 + seconds));
    await clock.advance(4_000);
  }
  const term = await campaign;
  expect(term.token).toBe(2n);
  await term[Symbol.asyncDispose]();
  await Promise.all([election.close(), operator.close()]);
});

test('its own stale record after a restart is not its own, and it is announced once (KB8)', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('host-1', 3n, 15_000);
  const election = candidate(store, clock, 'host-1');
  let announced = 0;
  const done = election.lead((term) => {
    announced += 1;
    return term.token;
  });
  await clock.advance(14_000);
  expect(announced).toBe(0);
  await clock.advance(2_000);
  expect(await done).toBe(4n);
  expect(announced).toBe(1);
  await election.close();
});

test('the lease in the record is waited out to its last millisecond', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('dead', 7n, 15_000);
  const election = candidate(store, clock, 'b');
  const campaign = election.campaign();
  await clock.advance(14_999);
  expect(store.swaps).toBe(0);
  await clock.advance(1);
  expect(store.swaps).toBe(1);
  await (await campaign)[Symbol.asyncDispose]();
  await election.close();
});

test('another process that had its own name is fenced, and ended unclean', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('host-1', 3n, 15_000);
  const election = candidate(store, clock, 'host-1');
  const fenced: bigint[] = [];
  const campaign = election.campaign({ onUnclean: ({ token }) => void fenced.push(token) });
  await clock.advance(16_000);
  const term = await campaign;
  expect(fenced).toEqual([3n]);
  expect(term.predecessor).toMatchObject({ id: 'host-1', clean: false });
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('a win whose answer is lost is found again, and believed from when it was sent (5.5)', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.onSwap = (apply) => {
    apply();
    store.onSwap = async (again) => again();
    return lost();
  };
  const election = candidate(store, clock, 'a');
  const campaign = election.campaign();
  await clock.advance(2_500);
  const term = await campaign;
  expect(term.token).toBe(1n);
  expect(term.remaining()).toBe(12_000 - 2_500);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('a win that lands after we gave up on it has no believer, and is taken again at once (5.5)', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  let land = () => {};
  store.onSwap = (apply) => {
    store.onSwap = async (again) => again();
    land = () => void apply();
    return lost();
  };
  store.onRead = async (apply) => {
    if (store.swaps === 1) {
      store.onRead = async (again) => again();
      return lost();
    }
    return apply();
  };
  const election = candidate(store, clock, 'a');
  const campaign = election.campaign();
  await clock.advance(2_600);
  land();
  await clock.advance(10_000);
  const term = await campaign;
  expect(term.isLeading()).toBe(true);
  expect(store.record?.token).toBe(term.token);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('an observer that is there before the first election hears of it (VB9)', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const election = candidate(store, clock, 'a');
  const watcher = candidate(store, clock, 'w');
  const stop = new AbortController();
  const views: View[] = [];
  const watching = (async () => {
    for await (const view of watcher.observe({ signal: stop.signal })) views.push(view);
  })();
  await clock.advance(3_600_000);
  expect(views.map(({ state }) => state)).toEqual(['vacant']);
  const term = await election.campaign();
  await clock.advance(10_000);
  expect(views.map(({ state }) => state)).toEqual(['vacant', 'led']);
  await term.proclaim({ metadata: { load: '7' }, addresses: ['10.0.0.7:1'] });
  await clock.advance(10_000);
  // Observers read the fields that the leader writes (VB11).
  expect(views.at(-1)).toMatchObject({
    state: 'led',
    leader: { id: 'a', metadata: { load: '7' }, addresses: ['10.0.0.7:1'] },
    token: 1n,
  });
  await term[Symbol.asyncDispose]();
  await clock.advance(10_000);
  expect(views.map(({ state }) => state)).toEqual(['vacant', 'led', 'led', 'vacant']);
  stop.abort();
  await watching;
  await election.close();
  await watcher.close();
});

test('a dead term is seen as vacant once it can no longer be believed, and only once (VB10)', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('dead', 7n, 15_000);
  const watcher = candidate(store, clock, 'w');
  const stop = new AbortController();
  const views: View[] = [];
  const watching = (async () => {
    for await (const view of watcher.observe({ signal: stop.signal })) views.push(view);
  })();
  await clock.advance(14_900);
  expect(views.map(({ state }) => state)).toEqual(['led']);
  await clock.advance(600_000);
  expect(views.map(({ state, token }) => [state, token])).toEqual([
    ['led', 7n],
    ['vacant', 7n],
  ]);
  stop.abort();
  await watching;
  await watcher.close();
});

test('renewals are no news; trouble is a view, not a throw; followers never write (VB8, VB10)', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const leader = candidate(store, clock, 'a');
  const term = await leader.campaign();
  const watcher = candidate(store, clock, 'w');
  const follower = candidate(store, clock, 'f');
  const stop = new AbortController();
  const views: View[] = [];
  const watching = (async () => {
    for await (const view of watcher.observe({ signal: stop.signal })) views.push(view);
  })();
  const waiting = follower.campaign({ signal: stop.signal });
  waiting.catch(() => {});
  await clock.advance(60_000);
  expect(views.map(({ state }) => state)).toEqual(['led']);
  expect(store.swaps).toBe(1 + 20);
  store.onRead = async () => {
    throw new Error('down');
  };
  await clock.advance(30_000);
  expect(views.map(({ state }) => state)).toEqual(['led', 'unknown']);
  expect(views.at(-1)?.error?.message).toBe('down');
  store.onRead = async (apply) => apply();
  await clock.advance(30_000);
  expect(views.map(({ state }) => state)).toEqual(['led', 'unknown', 'led']);
  stop.abort();
  await watching;
  await waiting.catch(() => {});
  await term[Symbol.asyncDispose]();
  await Promise.all([leader.close(), watcher.close(), follower.close()]);
});

test('ending the election with joins racing: terms end, nobody joins, the token is kept (CB6, CB7)', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const [a, b, c] = ['a', 'b', 'c'].map((id) => candidate(store, clock, id));
  if (!(a && b && c)) throw new Error('unreachable');
  const leading = a.lead(
    (term) =>
      new Promise((_, reject) => {
        term.signal.addEventListener('abort', () => reject(term.signal.reason));
      }),
  );
  leading.catch(() => {});
  const waiting = b.campaign();
  waiting.catch(() => {});
  await clock.advance(1_000);
  await b.end();
  const joining = c.campaign();
  joining.catch(() => {});
  await clock.advance(10_000);
  const ended = 'election "jobs" was ended for everybody';
  await expect(leading).rejects.toThrow(ended);
  await expect(waiting).rejects.toThrow(ended);
  await expect(joining).rejects.toThrow(ended);
  expect((await c.leader()).state).toBe('ended');
  expect((await c.end()).changed).toBe(false);
  await c.reopen();
  const term = await c.campaign();
  expect(term.token).toBe(2n);
  await term[Symbol.asyncDispose]();
  await Promise.all([a.close(), b.close(), c.close()]);
});

test('an unclean predecessor: delay, then hooks in order, renewing meanwhile, then announced', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('dead', 7n, 15_000);
  const election = candidate(store, clock, 'b');
  const log: string[] = [];
  const hook = (name: string) => async (predecessor: { id: string; token: bigint }) => {
    log.push(`${name} starts on ${predecessor.id} at token ${predecessor.token}`);
    expect(store.record?.holding?.announced).toBe(false);
    expect(store.record?.holding?.actors).toBe(null);
    await new Promise<void>((resolve) => clock.setTimer(resolve, 20_000));
    log.push(`${name} ends`);
  };
  const campaign = election.campaign({
    takeoverDelay: '5s',
    onUnclean: [hook('one'), hook('two')],
  });
  await clock.advance(15_200);
  expect(log).toEqual([]);
  await clock.advance(50_000);
  const term = await campaign;
  expect(log).toEqual([
    'one starts on dead at token 7',
    'one ends',
    'two starts on dead at token 7',
    'two ends',
  ]);
  expect(term.isLeading()).toBe(true);
  expect(store.record?.holding?.announced).toBe(true);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('a hook that fails gives the seat up, and the next winner runs the hooks again', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('dead', 7n, 15_000);
  const election = candidate(store, clock, 'b');
  const fenced: string[] = [];
  const campaign = election.campaign({
    onUnclean: async ({ id }) => {
      fenced.push(id);
      if (fenced.length < 3) throw new Error('the switch did not answer');
    },
  });
  // Between two attempts it lets others go first, longer each time.
  await clock.advance(60_000);
  const term = await campaign;
  expect(fenced).toEqual(['dead', 'dead', 'dead']);
  expect(term.token).toBe(10n);
  await term[Symbol.asyncDispose]();
  await settle();
  expect(store.record?.unfenced).toEqual([]);
  await election.close();
});

test('a hook that hangs is bounded, and no other term begins while it runs', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('dead', 7n, 15_000);
  const election = candidate(store, clock, 'b');
  let running = 0;
  let most = 0;
  let aborted = 0;
  const campaign = election.campaign({
    hookTimeout: '5s',
    onUnclean: async (_predecessor, { signal }) => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => clock.setTimer(resolve, aborted === 0 ? 50_000 : 10));
      if (signal.aborted) aborted += 1;
      running -= 1;
    },
  });
  await clock.advance(300_000);
  const term = await campaign;
  expect([most, aborted]).toEqual([1, 1]);
  await term[Symbol.asyncDispose]();
  await election.close();
});
