import { describe, expect, test } from 'vitest';
import { carryToken, leaderOnly, requireToken, toLeader } from '../src/following/http/index.ts';
import type { Election, Term } from '../src/index.ts';
import { InvalidOptionError, MisuseError } from '../src/index.ts';
import { FakeElection } from './support/fake-election.ts';

const fake = () => new FakeElection('billing');
const term = { election: 'billing', token: 1n, assertLeading: () => {} } as unknown as Term;

/** Any arguments that JavaScript may pass. */
const toLeaderWith = (options: object, election: unknown = fake()) =>
  toLeader(election as Election, { waitTimeout: 0, ...options });
const leaderOnlyWith = (options: object) =>
  leaderOnly({ election: fake().election, term: () => undefined, ...options });
const requireTokenWith = (options: object) => requireToken({ election: 'billing', ...options });

const refused: Record<string, readonly [() => unknown, string]> = {
  'toLeader without an election': [() => toLeaderWith({}, null), 'createElection'],
  'toLeader with a name': [() => toLeaderWith({}, 'billing'), 'createElection gave, not "billing"'],
  'toLeader with an unknown option': [() => toLeaderWith({ timeout: 1 }), 'no option "timeout"'],
  'toLeader with no options at all': [
    () => toLeader(fake().election, null as unknown as object),
    'not null',
  ],
  'a wait without a unit': [
    () => toLeaderWith({ waitTimeout: '5' }),
    'waitTimeout "5" has no unit',
  ],
  'no attempts': [
    () => toLeaderWith({ attempts: 0 }),
    'attempts must be a whole number from 1 to 100',
  ],
  'half an attempt': [() => toLeaderWith({ attempts: 1.5 }), 'not 1.5'],
  'too many attempts': [() => toLeaderWith({ attempts: 101 }), 'not 101'],
  'attempts as text': [() => toLeaderWith({ attempts: '3' }), 'not "3"'],
  'a negative limit': [() => toLeaderWith({ replayLimit: -1 }), 'replayLimit'],
  'an address as text': [() => toLeaderWith({ addressOf: 'h:1' }), 'addressOf must be a function'],
  'leaderOnly without options': [
    () => leaderOnly(undefined as unknown as Parameters<typeof leaderOnly>[0]),
    'not undefined',
  ],
  'leaderOnly without a term': [() => leaderOnlyWith({ term }), 'term must be a function'],
  'leaderOnly without an election': [() => leaderOnlyWith({ election: {} }), 'createElection'],
  'an unknown way of followers': [
    () => leaderOnlyWith({ followers: 'forward' }),
    'followers is "redirect" or "proxy" or "refuse", not "forward"',
  ],
  'another status': [
    () => leaderOnlyWith({ refuseWith: 500 }),
    'refuseWith is 421 or 503, not 500',
  ],
  'another scheme': [() => leaderOnlyWith({ scheme: 'ws' }), 'scheme is "http" or "https"'],
  'other late answers': [() => leaderOnlyWith({ lateAnswers: 'send' }), 'lateAnswers'],
  'an endless wait': [
    () => leaderOnlyWith({ waitTimeout: Infinity }),
    'waitTimeout must be finite',
  ],
  'an unknown option of the proxy': [
    () => leaderOnlyWith({ proxy: { timeout: 1 } }),
    'proxy has no option "timeout"',
  ],
  'a proxy that is none': [() => leaderOnlyWith({ proxy: 'http://p' }), 'proxy takes options'],
  'a bad timeout of the proxy': [
    () => leaderOnlyWith({ proxy: { idleTimeout: '1 week' } }),
    'idleTimeout "1 week" is not a duration',
  ],
  'trust that is no boolean': [
    () => leaderOnlyWith({ proxy: { trustForwarded: 'yes' } }),
    'trustForwarded is true or false',
  ],
  'requireToken without an election': [
    () => requireTokenWith({ election: undefined }),
    'not undefined',
  ],
  'requireToken with an empty name': [
    () => requireTokenWith({ election: '' }),
    'must not be empty',
  ],
  'a memory that is none': [
    () => requireTokenWith({ memory: new Map() }),
    'memory must have a function raise',
  ],
  'an unknown option of requireToken': [() => requireTokenWith({ load: 1 }), 'no option "load"'],
  'a listener that is none': [() => requireTokenWith({ onError: 1 }), 'onError must be a function'],
  'carryToken without a term': [
    () => carryToken(undefined as unknown as Term),
    'term must be a term, not undefined',
  ],
  'carryToken with an unknown option': [
    () => carryToken(term, { minMs: 1 } as object),
    'no option "minMs"',
  ],
};

describe('bad options are refused at once', () => {
  test.for(Object.entries(refused))('%s', ([, [make, why]]) => {
    expect(make).toThrow(InvalidOptionError);
    expect(make).toThrow(why);
  });

  test('nothing is observed before everything is checked', () => {
    const election = fake();
    expect(() => toLeaderWith({ attempts: 0 }, election)).toThrow();
    expect(() => leaderOnlyWith({ election, proxy: { idleTimeout: -1 } })).toThrow();
    expect(election.begun).toBe(0);
  });

  test('arguments that are no request and no response are refused at the first call, with the way out', () => {
    const only = leaderOnlyWith({}) as unknown as (...args: unknown[]) => void;
    const required = requireTokenWith({}) as unknown as (...args: unknown[]) => void;
    for (const middleware of [only, required]) {
      for (const args of [[], [{ headers: {} }, () => {}], [{ headers: {} }, {}, () => {}]]) {
        expect(() => middleware(...args)).toThrow(MisuseError);
        expect(() => middleware(...args)).toThrow('addHook("onRequest", it.fastify)');
      }
    }
  });

  test('handlers of undici before version 7 are refused where they come', () => {
    const interceptors = [toLeaderWith({}), carryToken(term)];
    for (const intercept of interceptors) {
      const dispatch = intercept(() => true);
      const old = { onConnect() {} } as object;
      const send = () => dispatch({ path: '/', method: 'GET' }, old);
      expect(send).toThrow("Node's own fetch does with a dispatcher of undici 8");
      expect(send).toThrow("import { fetch } from 'undici'");
    }
  });
});
