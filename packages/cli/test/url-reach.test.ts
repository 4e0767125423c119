import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import type { StoreNeeds } from '../src/context.ts';
import { UnusableStoreError } from '../src/unusable.ts';
import {
  codeOf,
  isNetworkError,
  reach,
  reasonOf,
  TookTooLongError,
  unreachable,
} from '../src/url/reach.ts';

const never = new AbortController().signal;
const needs = (change: Partial<StoreNeeds> = {}): StoreNeeds => ({
  timeoutMs: 60_000,
  signal: never,
  ...change,
});
const refused = Object.assign(new Error('connect ECONNREFUSED h:1'), { code: 'ECONNREFUSED' });

/** Fails so often, and then answers. */
function server(failures: number, error: unknown = refused) {
  let attempts = 0;
  return {
    ask: async () => {
      attempts += 1;
      if (attempts <= failures) throw error;
      return attempts;
    },
    get attempts() {
      return attempts;
    },
  };
}

test('a patient command asks a starting server again', async () => {
  const starting = server(2);
  expect(await reach(needs({ patient: true }), starting.ask, isNetworkError)).toBe(3);
});

test('an impatient command asks once, and no command asks again where waiting cures nothing', async () => {
  const starting = server(2);
  await expect(reach(needs(), starting.ask, isNetworkError)).rejects.toBe(refused);
  expect(starting.attempts).toBe(1);
  const password = new Error('wrong password');
  const closed = server(2, password);
  const patient = needs({ patient: true });
  await expect(reach(patient, closed.ask, isNetworkError)).rejects.toBe(password);
  expect(closed.attempts).toBe(1);
});

test('it is bounded, also where nothing answers, and ends with the last reason', async () => {
  const silent = () => new Promise<never>(() => {});
  await expect(reach(needs({ timeoutMs: 20 }), silent, () => true)).rejects.toThrow(
    TookTooLongError,
  );
  const dead = server(Number.POSITIVE_INFINITY);
  const soon = needs({ timeoutMs: 300, patient: true });
  await expect(reach(soon, dead.ask, isNetworkError)).rejects.toBe(refused);
});

test('an attempt that was cut short hides no reason that was told before', async () => {
  let asked = 0;
  const refusesThenHangs = () => {
    asked += 1;
    return asked === 1 ? Promise.reject(refused) : new Promise<never>(() => {});
  };
  const soon = needs({ timeoutMs: 500, patient: true });
  await expect(reach(soon, refusesThenHangs, isNetworkError)).rejects.toBe(refused);
  expect(asked).toBe(2);
});

test('an interruption ends it at once, with its reason', async () => {
  for (const patient of [{}, { patient: true }] as const) {
    const interruption = new AbortController();
    const reached = reach(
      needs({ signal: interruption.signal, ...patient }),
      () => new Promise<never>(() => {}),
      () => true,
    );
    const reason = new Error('INT');
    interruption.abort(reason);
    await expect(reached).rejects.toBe(reason);
  }
});

test.each([
  [refused, 'connect ECONNREFUSED h:1', 'ECONNREFUSED'],
  // Of a name with several addresses Node says nothing itself.
  [new AggregateError([refused, refused], ''), 'connect ECONNREFUSED h:1', 'ECONNREFUSED'],
  [
    new AggregateError([refused, new Error('connect ETIMEDOUT')], ''),
    'connect ECONNREFUSED h:1; connect ETIMEDOUT',
    'ECONNREFUSED',
  ],
  [Object.assign(new Error(''), { code: 'EPIPE' }), 'EPIPE', 'EPIPE'],
  [new TypeError(''), 'TypeError', ''],
  [new Error('two\n  lines'), 'two lines', ''],
  ['text', 'text', ''],
  [undefined, 'undefined', ''],
])('the reason of %o is "%s"', (error, words, code) => {
  expect(reasonOf(error)).toBe(words);
  expect(codeOf(error)).toBe(code);
});

test('the message about a server that is away names it and the reason', () => {
  const error = unreachable(
    'PostgreSQL at h:1',
    refused,
    needs({ timeoutMs: 10_000, timeoutName: '--timeout' }),
    { url: 'postgres://joe:***@h:1', origin: '--store' },
    '; a hint',
  );
  expect(error).toBeInstanceOf(UnusableStoreError);
  expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', exitCode: 69, cause: refused });
  expect(error.message).toBe(
    'PostgreSQL at h:1 cannot be reached: connect ECONNREFUSED h:1; a hint',
  );
  expect(error.findings()).toEqual([]);
  expect(inspect(error, { depth: null })).toContain('***');
});

test('the bound is named where it was waited for, and not where more time would not help', () => {
  const known = { url: 'redis://h', origin: '--store' } as const;
  const said = (error: Error, changes: Partial<StoreNeeds>) =>
    unreachable('Redis at h', error, needs({ timeoutMs: 10_000, ...changes }), known).message;
  expect(said(new TookTooLongError(), { timeoutName: '--timeout' })).toBe(
    'Redis at h cannot be reached within 10s (--timeout): it does not answer',
  );
  expect(said(refused, { patient: true })).toContain('cannot be reached within 10s: connect');
  expect(said(refused, {})).toContain('cannot be reached: connect ECONNREFUSED');
});
