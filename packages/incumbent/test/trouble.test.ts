import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Backend, ElectionOptions, Trouble } from '../src/index.ts';
import { createElection } from '../src/index.ts';
import { SimulatedClock, SimulatedLeaseStore, SimulatedQueueStore } from '../src/testing/index.ts';

const emitted = vi.spyOn(process, 'emitWarning');
const running: AbortController[] = [];
let stores = 0;

beforeEach(() => {
  emitted.mockClear();
  emitted.mockImplementation(() => {});
});

afterEach(() => {
  for (const stop of running.splice(0)) stop.abort();
});

/** A store of its own name: it is warned of once in a process. */
function setUp(options: Partial<ElectionOptions<bigint>> = {}) {
  const clock = new SimulatedClock();
  const connection = new SimulatedLeaseStore({ clock }).connect();
  stores += 1;
  const description = `store ${stores}`;
  const backend: Backend<bigint> = { ...connection.backend, description };
  const wait = (name: string) => {
    const election = createElection({ name, backend, clock, random: () => 0.5, ...options });
    const stop = new AbortController();
    running.push(stop);
    const led = election.lead(
      ({ signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', resolve);
        }),
      { signal: stop.signal },
    );
    led.catch(() => {});
    return election;
  };
  return { clock, connection, description, wait };
}

test('a store that has not answered for one lease is warned of once, with all that is known', async () => {
  const { clock, connection, description, wait } = setUp();
  connection.outage = 'refuses';
  const since = new Date(clock.wallMs()).toISOString();
  wait('jobs');
  wait('others');
  await clock.advance('14s');
  expect(emitted).not.toHaveBeenCalled();
  await clock.advance('10s');
  expect(emitted).toHaveBeenCalledTimes(1);
  const [text, options] = emitted.mock.calls[0]!;
  expect(text).toMatch(/^election "(jobs|others)"/);
  expect(text).toContain(`the store (${description}) has not answered since ${since}`);
  expect(text).toContain('The last error, campaigning: ');
  expect(options).toEqual({ type: 'IncumbentWarning', code: 'INCUMBENT_STORE_AWAY' });
  await clock.advance('1h');
  connection.outage = 'none';
  await clock.advance('1m');
  connection.outage = 'silent';
  await clock.advance('1h');
  expect(emitted).toHaveBeenCalledTimes(1);
});

test('a store that answers now and then is not away', async () => {
  const { clock, connection, wait } = setUp();
  wait('jobs');
  for (let times = 0; times < 20; times += 1) {
    connection.outage = 'refuses';
    await clock.advance('8s');
    connection.outage = 'none';
    await clock.advance('8s');
  }
  expect(emitted).not.toHaveBeenCalled();
});

test('a store that answers an observer was not silent before', async () => {
  const clock = new SimulatedClock();
  const session = new SimulatedQueueStore({ clock }).connect();
  const backend = { ...session.backend, description: 'observed' };
  const election = createElection({ name: 'jobs', backend, clock });
  const stop = new AbortController();
  running.push(stop);
  const views = election.observe({ signal: stop.signal });
  void (async () => {
    for await (const _ of views);
  })();
  await clock.advance('1m');
  session.outage = 'refuses';
  election.campaign({ signal: stop.signal }).catch(() => {});
  await clock.advance('10s');
  expect(emitted).not.toHaveBeenCalled();
  await clock.advance('20s');
  expect(emitted).toHaveBeenCalledTimes(1);
});

test('an observer that is told nothing of the leader has had no answer', async () => {
  const clock = new SimulatedClock();
  const session = new SimulatedQueueStore({ clock }).connect();
  const open = (...args: Parameters<typeof session.backend.open>) => {
    const opened = session.backend.open(...args);
    opened.observe = async function* (signal) {
      for (;;) {
        yield { state: 'unknown', sinceUnixMs: 0, error: new Error('no answer') };
        await clock.sleep('1s', signal);
      }
    };
    return opened;
  };
  const backend = { ...session.backend, open, description: 'observed in vain' };
  const election = createElection({ name: 'jobs', backend, clock });
  const stop = new AbortController();
  running.push(stop);
  const views = election.observe({ signal: stop.signal });
  const observed = (async () => {
    for await (const _ of views);
  })();
  observed.catch(() => {});
  session.outage = 'refuses';
  election.campaign({ signal: stop.signal }).catch(() => {});
  await clock.advance('30s');
  expect(emitted).toHaveBeenCalledTimes(1);
});

test('a store that was away and answers an observer is not away any more', async () => {
  const clock = new SimulatedClock();
  const session = new SimulatedQueueStore({ clock }).connect();
  const backend = { ...session.backend, description: 'observed again' };
  const election = createElection({ name: 'jobs', backend, clock });
  const stop = new AbortController();
  running.push(stop);
  const views = election.observe({ signal: stop.signal });
  void (async () => {
    for await (const _ of views);
  })();
  await clock.advance('1m');
  session.outage = 'refuses';
  const first = new AbortController();
  const campaign = election.campaign({ signal: first.signal });
  await clock.advance('5s');
  first.abort(new Error('enough'));
  await expect(campaign).rejects.toThrow('enough');
  session.outage = 'none';
  // It looks again, and sees the same as before. That is an answer as well.
  session.suspend();
  session.restore();
  await clock.advance('1m');
  session.outage = 'refuses';
  election.campaign({ signal: stop.signal }).catch(() => {});
  await clock.advance('10s');
  expect(emitted).not.toHaveBeenCalled();
  await clock.advance('20s');
  expect(emitted).toHaveBeenCalledTimes(1);
});

test('a leader’s silent store is warned of after one lease as well', async () => {
  const { clock, connection, wait } = setUp();
  const election = wait('jobs');
  await clock.advance('1s');
  expect((await election.leader()).state).toBe('led');
  connection.outage = 'silent';
  await clock.advance('30s');
  expect(emitted).toHaveBeenCalledTimes(1);
});

test('nobody is warned who listens, and a listener that throws disturbs nothing', async () => {
  const told: Trouble[] = [];
  const listening = setUp({
    onTrouble: (trouble) => {
      told.push(trouble);
      throw new Error('the logger is broken');
    },
  });
  listening.connection.outage = 'refuses';
  listening.wait('jobs');
  await listening.clock.advance('1m');
  expect(told.length).toBeGreaterThan(3);
  expect(told[0]).toEqual({ what: 'campaigning', error: expect.any(Error) });

  const heard: unknown[] = [];
  const hear = (message: unknown) => void heard.push(message);
  subscribe('incumbent:trouble', hear);
  const subscribed = setUp();
  subscribed.connection.outage = 'refuses';
  subscribed.wait('jobs');
  await subscribed.clock.advance('1m');
  unsubscribe('incumbent:trouble', hear);
  expect(heard.length).toBeGreaterThan(3);
  expect(emitted).not.toHaveBeenCalled();
});

test('a store with sessions that cannot be used is warned of too', async () => {
  const clock = new SimulatedClock();
  const session = new SimulatedQueueStore({ clock }).connect();
  session.outage = 'refuses';
  const backend = { ...session.backend, description: 'queue' };
  const stop = new AbortController();
  running.push(stop);
  const election = createElection({ name: 'jobs', backend, clock });
  election.campaign({ signal: stop.signal }).catch(() => {});
  await clock.advance('1m');
  expect(emitted).toHaveBeenCalledTimes(1);
});

test('onTrouble must be a function', () => {
  expect(() => setUp({ onTrouble: 'log' as never }).wait('jobs')).toThrow(
    'onTrouble must be a function, not "log"',
  );
});
