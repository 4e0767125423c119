// The options of `createElection` and of a campaign. More refusals are in bad-input.test.ts.
import { describe, expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import { resolveCandidate } from '../src/base/candidate.ts';
import { systemClock } from '../src/base/clock.ts';
import { InvalidOptionError } from '../src/base/errors.ts';
import type { CampaignCall, LeadOptions } from '../src/core/options.ts';
import {
  checkElectionOptions,
  checkSignal,
  checkSignalOption,
  resolveCampaign,
} from '../src/core/options.ts';

const backend = memory();
const { signal } = new AbortController();
const hook = () => {};

describe('createElection', () => {
  test.each([
    {},
    { init: undefined },
    { init: 'auto' },
    { init: 'never' },
    { clock: systemClock },
    { random: Math.random },
    { onTrouble: () => {} },
    { lease: '10s', clockDrift: 0 },
  ])('takes %o', (more) => {
    expect(() => checkElectionOptions({ name: 'jobs', backend, ...more } as never)).not.toThrow();
  });

  test.each([
    [{ init: 'always' }, "init must be 'auto' or 'never', not \"always\""],
    [{ init: true }, "init must be 'auto' or 'never', not true"],
    [{ random: 0.5 }, 'random must be a function, not 0.5'],
    [{ onTrouble: 'log' }, 'onTrouble must be a function, not "log"'],
    [{ clock: {} }, 'clock must have monotonicMs, wallMs and setTimer'],
    [{ clock: null }, 'clock must have monotonicMs, wallMs and setTimer'],
    [{ clock: { ...systemClock, wallMs: 5 } }, 'clock must have monotonicMs, wallMs and setTimer'],
    [{ backend: undefined }, 'backend must be a store such as file(directory)'],
    [{ leese: '10s' }, 'no option "leese"'],
  ])('refuses %o: %s', (more, message) => {
    const check = () => checkElectionOptions({ name: 'jobs', backend, ...more } as never);
    expect(check).toThrow(InvalidOptionError);
    expect(check).toThrow(message);
  });
});

function resolve(call: CampaignCall, options: object, hasOwnClock = false) {
  return resolveCampaign(
    call,
    options as LeadOptions,
    (given) => resolveCandidate(given ?? {}, 'default', 'incarnation'),
    hasOwnClock,
  );
}

describe('a campaign', () => {
  test('goes by these numbers where nothing is said', () => {
    const resolved = resolve('lead', {});
    expect(resolved).toMatchObject({
      candidate: { id: 'default' },
      onUnclean: [],
      takeoverDelayMs: 0,
      hookTimeoutMs: 30_000,
      health: undefined,
      actors: 'self',
      readiness: undefined,
      killOnOverrun: false,
      waitMs: undefined,
      settles: true,
      holdAtLeastMs: 0,
      signal: undefined,
    });
    expect(resolved.again('resigned')).toBe(true);
  });

  test('may have to say that it is ready, within a minute or the given time', () => {
    expect(resolve('terms', { ready: 'manual' }).readiness).toEqual({ timeoutMs: 60_000 });
    const given = { ready: 'manual', readyTimeout: '5s' };
    expect(resolve('campaign', given).readiness).toEqual({ timeoutMs: 5_000 });
  });

  test.each([
    [{ ready: true }, 'ready is "manual" or left out, not true'],
    [{ ready: 'auto' }, 'ready is "manual" or left out, not "auto"'],
    [{ readyTimeout: '5s' }, 'give it together with ready: "manual"'],
    [{ ready: 'manual', readyTimeout: 0 }, 'readyTimeout must be more than 0'],
    [{ ready: 'manual', readyTimeout: 'soon' }, 'readyTimeout'],
  ])('refuses %o: %s', (given, message) => {
    expect(() => resolve('lead', given)).toThrow(InvalidOptionError);
    expect(() => resolve('lead', given)).toThrow(message);
  });

  test('goes by the given options', () => {
    const again = () => false;
    const onBelief = () => {};
    const onSeat = () => {};
    const onStatus = () => {};
    const health = { check: () => true };
    const given = {
      takeoverDelay: 5,
      hookTimeout: '2s',
      holdAtLeast: '1m',
      wait: 0,
      settle: false,
    };
    const rest = {
      actors: 'declared',
      watchdog: 'kill',
      onBelief,
      onSeat,
      onStatus,
      again,
      health,
      signal,
    };
    expect(
      resolve('lead', { ...given, ...rest, onUnclean: hook, candidate: { id: 'x' } }),
    ).toMatchObject({
      candidate: { id: 'x' },
      onUnclean: [hook],
      takeoverDelayMs: 5,
      hookTimeoutMs: 2_000,
      holdAtLeastMs: 60_000,
      waitMs: 0,
      settles: false,
      actors: 'declared',
      killOnOverrun: true,
      onBelief,
      onSeat,
      onStatus,
      again,
      health,
      signal,
    });
  });

  test.each<readonly [CampaignCall, object]>([
    ['lead', { wait: '5s' }],
    ['lead', { wait: '5s', settle: true }],
    ['campaign', { wait: 0, settle: true }],
    ['campaign', { wait: 0, settle: false }],
    ['campaign', { onUnclean: [hook, hook], hookTimeout: '1s' }],
    ['terms', { actors: 'self' }],
    ['terms', { signal }],
  ])('of `%s` takes %o', (call, options) => {
    expect(() => resolve(call, options)).not.toThrow();
  });

  test.each<readonly [CampaignCall, object, string]>([
    ['lead', { settle: false }, 'settle: false is for a candidate that does not wait'],
    ['lead', { settle: false, wait: 1 }, 'settle: false is for a candidate that does not wait'],
    ['lead', { settle: 0, wait: 0 }, 'settle must be true or false, not 0'],
    ['lead', { again: 'yes' }, 'again must be a function, not "yes"'],
    ['terms', { again: hook }, '`terms` has no option "again": `lead` takes it'],
    ['terms', { settle: true }, '`terms` has no option "settle": `lead` or `campaign` takes it'],
    ['terms', { onStatus: 1 }, 'onStatus must be a function, not 1'],
    ['terms', { onBelief: 1 }, 'onBelief must be a function, not 1'],
    ['lead', { onSeat: 1 }, 'onSeat must be a function, not 1'],
    ['terms', { signal: {} }, 'signal must be an AbortSignal'],
    ['terms', { watchdog: true }, 'watchdog is "kill" or left out, not true'],
    ['terms', { onUnclean: [hook, 1] }, 'onUnclean takes functions, not 1'],
    ['terms', { onUnclean: null }, 'onUnclean takes functions, not null'],
    ['terms', { hookTimeout: 5 }, 'hookTimeout bounds the hooks of onUnclean'],
  ])('of `%s` refuses %o: %s', (call, options, message) => {
    expect(() => resolve(call, options)).toThrow(InvalidOptionError);
    expect(() => resolve(call, options)).toThrow(message);
  });

  test('has a watchdog on the clocks of the machine alone', () => {
    expect(() => resolve('lead', { watchdog: 'kill' }, true)).toThrow(
      'watchdog goes by the clocks of the machine',
    );
    expect(() => resolve('lead', {}, true)).not.toThrow();
  });
});

describe('a signal', () => {
  test('may be left out, and must be one', () => {
    expect(() => checkSignal(undefined)).not.toThrow();
    expect(() => checkSignal(signal)).not.toThrow();
    for (const wrong of [null, 1, {}, { aborted: false }, { addEventListener: hook }]) {
      expect(() => checkSignal(wrong)).toThrow('signal must be an AbortSignal');
    }
  });

  test('is an option of every call, beside those that it has more', () => {
    expect(() => checkSignalOption('leader', { signal })).not.toThrow();
    expect(() =>
      checkSignalOption('vacate', { signal, force: true }, { force: true }),
    ).not.toThrow();
    expect(() => checkSignalOption('leader', { force: true })).toThrow('no option "force"');
    expect(() => checkSignalOption('leader', { signal: 1 })).toThrow('AbortSignal');
  });
});
