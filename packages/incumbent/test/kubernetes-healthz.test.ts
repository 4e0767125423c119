import { channel } from 'node:diagnostics_channel';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { LeaderHealthz } from '../src/backends/kubernetes/index.ts';
import { leaderHealthz } from '../src/backends/kubernetes/index.ts';
import { createElection } from '../src/index.ts';
import { SimulatedClock, SimulatedLeaseStore } from '../src/testing/index.ts';

let health: LeaderHealthz | undefined;

afterEach(() => health?.close());

test('a leader in order is healthy, and so is a process that follows or cannot reach the store', async () => {
  const clock = new SimulatedClock();
  health = leaderHealthz({ clock });
  const store = new SimulatedLeaseStore({ clock });
  const election = createElection({ name: 'a', backend: store.connect().backend, clock });
  let isStopped = false;
  const leading = election.lead(
    (term) =>
      new Promise<void>((resolve) => {
        term.signal.addEventListener('abort', () => {
          isStopped = true;
          resolve();
        });
      }),
  );
  await clock.advance(60_000);
  expect(health.check()).toBeUndefined();
  leading.catch(() => {});
  const closed = election.close();
  await clock.advance(60_000);
  await closed;
  expect(isStopped).toBe(true);
  expect(health.check()).toBeUndefined();
});

test('work that outlives its term by more than the tolerance is unhealthy, until it ends', async () => {
  const clock = new SimulatedClock();
  health = leaderHealthz({ clock, tolerance: '20s', elections: ['a'] });
  const store = new SimulatedLeaseStore({ clock });
  const election = createElection({ name: 'a', backend: store.connect().backend, clock });
  let finish: () => void = () => {};
  const leading = election.lead(
    () =>
      new Promise<void>((resolve) => {
        finish = resolve;
      }),
  );
  leading.catch(() => {});
  await clock.advance(1_000);
  const operator = createElection({ name: 'a', backend: store.connect().backend, clock });
  const vacated = operator.vacate({ force: true });
  await clock.advance(16_000);
  await vacated;
  // Its belief is over, its work is not: the tolerance runs.
  expect(health.check()).toBeUndefined();
  await clock.advance(25_000);
  expect(health.check()).toMatch(
    /^work of term 1 of election "a" has gone on for \d+ s after the term was over \(vacated\)$/,
  );
  finish();
  await clock.advance(100);
  expect(health.check()).toBeUndefined();
  const closed = Promise.all([election.close(), operator.close()]);
  await clock.advance(60_000);
  await closed;
});

test('the handler answers as a probe wants it, and only of the elections that are meant', async () => {
  const clock = new SimulatedClock();
  health = leaderHealthz({ clock, elections: ['a'] });
  const server = createServer(health.handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const probe = async () => {
    const response = await fetch(`http://127.0.0.1:${port}/healthz`);
    return [response.status, await response.text()];
  };
  const overrun = (election: string) =>
    channel('incumbent:overrun').publish({
      election,
      candidate: 'x',
      token: 7n,
      reason: 'stalled',
    });
  try {
    overrun('b');
    await clock.advance(60_000);
    expect(await probe()).toEqual([200, 'ok\n']);
    overrun('a');
    expect(await probe()).toEqual([200, 'ok\n']);
    await clock.advance(20_001);
    expect(await probe()).toEqual([503, expect.stringContaining('term 7 of election "a"')]);
    health.close();
  } finally {
    server.close();
    server.closeAllConnections();
  }
});
