import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import type { DiagnosticEvents, NotElectedError } from '../src/index.ts';
import { createElection, ElectionError, NotLeadingError } from '../src/index.ts';
import { SimulatedClock } from '../src/testing/index.ts';

const written = (value: unknown) => JSON.parse(JSON.stringify(value));

test('terms, views, histories and answers can be written as JSON, with tokens as decimal texts', async () => {
  const clock = new SimulatedClock();
  const backend = memory();
  const a = createElection({ name: 'jobs', backend, clock, candidate: { id: 'a' } });
  const first = await a.campaign();
  await first[Symbol.asyncDispose]();
  const b = createElection({ name: 'jobs', backend, clock, candidate: { id: 'b' } });
  const term = await b.campaign();
  expect(written(term)).toMatchObject({
    election: 'jobs',
    candidate: 'b',
    token: '2',
    state: 'leading',
    predecessor: { id: 'a', token: '1' },
  });
  expect(written(term.predecessor)).toMatchObject({ token: '1' });
  expect(written(await a.leader())).toMatchObject({
    state: 'led',
    token: '2',
    leader: { id: 'b' },
  });
  expect(written(await a.inspect())).toMatchObject({
    view: { token: '2' },
    history: [{ token: '1' }],
  });
  expect(written(await a.history())).toMatchObject([{ token: '1', id: 'a', why: 'resigned' }]);
  const trying = a.campaign({ wait: 0 }).catch((error: unknown) => error);
  // A candidate that has resigned lets others go first.
  await clock.advance('2s');
  const refusal = await trying;
  expect(written(refusal)).toMatchObject({
    code: 'NOT_ELECTED',
    why: { kind: 'led', id: 'b', token: '2' },
  });
  expect(written((refusal as NotElectedError).why)).toMatchObject({ token: '2' });
  const views = a.observe();
  expect(written((await views.next()).value)).toMatchObject({ token: '2' });
  await views.return();
  expect(written(await a.vacate())).toMatchObject({ changed: true, view: { token: '2' } });
  await clock.advance('1s');
  expect(written(term.signal.reason)).toMatchObject({
    name: 'TermEndedError',
    code: 'TERM_ENDED',
    reason: 'vacated',
    token: '2',
  });
  await term[Symbol.asyncDispose]();
  await Promise.all([a.close(), b.close()]);
});

test('the arguments of hooks and subscribers can be written as JSON', async () => {
  const clock = new SimulatedClock();
  const backend = memory();
  const told: unknown[] = [];
  const tell = (message: unknown) => told.push(written(message));
  const channels: (keyof DiagnosticEvents)[] = ['incumbent:won', 'incumbent:confirmed'];
  for (const channel of channels) subscribe(channel, tell);
  const dead = createElection({
    name: 'json',
    backend,
    clock: stalled(clock),
    candidate: { id: 'a' },
  });
  await dead.campaign();
  const b = createElection({ name: 'json', backend, clock, candidate: { id: 'b' } });
  const hooks: unknown[] = [];
  const winning = b.campaign({ onUnclean: (...given) => void hooks.push(...given.map(written)) });
  await clock.advance('20s');
  const term = await winning;
  expect(hooks).toMatchObject([
    { id: 'a', token: '1' },
    { election: 'json', token: '2' },
  ]);
  expect(told).toContainEqual({
    election: 'json',
    candidate: 'b',
    incarnation: expect.any(String),
    seat: 1,
    token: '2',
    unfenced: ['a'],
    predecessor: expect.objectContaining({ id: 'a', token: '1', clean: false }),
  });
  for (const channel of channels) unsubscribe(channel, tell);
  await term[Symbol.asyncDispose]();
  await b.close();
});

test('errors are written with their codes and causes, and without what leads in a circle', () => {
  const error = new NotLeadingError('jobs', 7n, 500, 20);
  expect(written(error)).toMatchObject({ code: 'NOT_LEADING', token: '7', neededMs: 500 });
  const socket = Object.assign(Object.create({}), { error });
  const cause = Object.assign(new Error('reset', { cause: error }), { code: 'ECONNRESET', socket });
  expect(written(new ElectionError('STORE_UNAVAILABLE', 'away', { cause }))).toEqual({
    name: 'ElectionError',
    message: 'away',
    code: 'STORE_UNAVAILABLE',
    retryable: false,
    cause: expect.objectContaining({ message: 'reset', code: 'ECONNRESET' }),
  });
  const circle: Error = new Error('round');
  circle.cause = circle;
  expect(written(new ElectionError('CLOSED', 'closed', { cause: circle })).cause).toMatchObject({
    message: 'round',
  });
});

/** The clocks go on, and no timer fires: a process that stands still. */
function stalled(clock: SimulatedClock) {
  return {
    monotonicMs: () => clock.monotonicMs(),
    wallMs: () => clock.wallMs(),
    setTimer: () => ({ cancel() {} }),
  };
}
