/**
 * The options of `RedisFailover.connect`. For its messages about mistakes see also
 * `drivers.test.ts`.
 */
import { ZooKeeper } from '@incumbent/zookeeper';
import { describe, expect, test } from 'vitest';
import { refuseOptions, refuseTargets } from '../../src/client/forced-options.ts';
import type { RedisFailoverOptions } from '../../src/client/options.ts';
import { resolveClientOptions } from '../../src/client/options.ts';
import { show } from '../../src/client/show.ts';
import type { FakeClient } from '../support/fake-driver.ts';
import { FakeDriver } from '../support/fake-driver.ts';

const redis = new FakeDriver();
const zookeeper = 'zk://h:2181';

function resolve(more: Readonly<Record<string, unknown>> = {}) {
  return resolveClientOptions<FakeClient>({
    ...{ zookeeper, redis, ...more },
  } as unknown as RedisFailoverOptions<FakeClient>);
}

describe('the options of connect', () => {
  test('have defaults', () => {
    expect(resolve()).toEqual({
      ...{ zookeeper, redis, root: '/redis_failover', reads: 'replicas', maxWaitMs: 10_000 },
      ...{ connectTimeoutMs: 2_000, commandTimeoutMs: 5_000, safeMode: true, verifyRole: true },
      retryAmbiguous: false,
    });
  });

  test('are taken as they are given', () => {
    const given = {
      ...{ root: '/sets/first', reads: 'primary', maxWait: '1s', connectTimeout: 1 },
      ...{ commandTimeout: '3ms', safeMode: false, verifyRole: false, retryAmbiguous: true },
      ...{ onChange: () => {}, signal: undefined, clock: undefined },
    };
    expect(resolve(given)).toMatchObject({
      ...{ root: '/sets/first', reads: 'primary', maxWaitMs: 1_000, connectTimeoutMs: 1 },
      ...{ commandTimeoutMs: 3, safeMode: false, verifyRole: false, retryAmbiguous: true },
    });
  });

  test('have a client of ZooKeeper as well as a connection string', () => {
    const client = Object.create(ZooKeeper.prototype) as ZooKeeper;
    expect(resolve({ zookeeper: client }).zookeeper).toBe(client);
  });

  test.each<Readonly<Record<string, unknown>>>([
    ...[{ zookeeper: '' }, { zookeeper: 7 }, { zookeeper: {} }, { zookeeper: null }],
    ...[{ root: '' }, { root: '/' }, { root: '/a/' }, { root: '/a//b' }, { root: '/a b' }],
    ...[{ root: 7 }, { root: 'a/b' }, { root: ['/a'] }, { redis: {} }, { redis: null }],
    ...[{ reads: 'any' }, { onChange: {} }, { safeMode: 1 }, { verifyRole: 'no' }],
    ...[{ retryAmbiguous: 0 }, { maxWait: 0 }, { maxWait: 0.9 }, { connectTimeout: '0ms' }],
    ...[{ commandTimeout: -1 }, { toString: 1 }, { zk: zookeeper }],
  ])('cannot be %j', (more) => {
    expect(() => resolve(more)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
  });

  test.each([undefined, null, 7, 'zk://h'])('are an object, not %j', (options) => {
    expect(() => resolveClientOptions(options as never)).toThrow(
      `RedisFailover.connect takes options such as`,
    );
  });

  test('of another name are told what they are called here, or what there is', () => {
    expect(() => resolve({ max_retries: 3 })).toThrow(
      'has no option "max_retries"; that is maxWait',
    );
    expect(() => resolve({ odd: 3 })).toThrow(
      'has no option "odd"; it knows zookeeper, root, redis',
    );
  });
});

test('an option of a driver is refused by name, unless its value changes nothing', () => {
  const refusals = { ...refuseTargets('host', 'port'), loud: 'it is too loud' };
  const refuse = (options: object) => () =>
    refuseOptions('driver', options, refusals, { loud: [false, 0] });
  expect(refuse({ host: 'h' })).toThrow(
    'driver cannot take host: which node is connected to is said by ZooKeeper',
  );
  expect(refuse({ port: 1 })).toThrow('driver cannot take port');
  expect(refuse({ loud: true })).toThrow('driver cannot take loud: it is too loud');
  for (const fine of [{}, { loud: false }, { loud: 0 }, { host: undefined }, { constructor: 1 }]) {
    expect(refuse(fine)).not.toThrow();
  }
});

test.each([
  [() => {}, 'a function'],
  [[1], 'a list'],
  [{ password: 'x' }, 'an object'],
  [new Map(), 'an instance of Map'],
  [Object.create(null), 'an instance of undefined'],
  [null, 'null'],
  [undefined, 'undefined'],
  ['text', '"text"'],
  [7, '7'],
  [Symbol('s'), 'Symbol(s)'],
])('%# a value is shown without what it holds', (value, text) => {
  expect(show(value)).toBe(text);
});
