/**
 * The object that looks like a client of a driver: which of its names are commands, and where each
 * of them goes. The model is made here. Those of the real libraries are compared with it in
 * `drivers.test.ts` and `test-integration/client-api.test.ts`.
 */
import { describe, expect, test, vi } from 'vitest';
import type { Driver } from '../../src/client/driver.ts';
import { NotRoutableError } from '../../src/client/errors.ts';
import type { RoutedCall, Tour } from '../../src/client/routed-client.ts';
import { routedClient } from '../../src/client/routed-client.ts';
import { atRest } from '../support/hand-clock.ts';

// biome-ignore lint/suspicious/noExplicitAny: what a client has differs from library to library
type Any = any;

/** Records the calls on it, and how it was derived from another one. */
class Library {
  readonly via: readonly unknown[];
  readonly json = { _self: {}, version: 7, get: noteOf('json.get'), GET: noteOf('json.GET') };
  readonly options = { password: 'secret' };
  readonly nothing = null;
  isOpen = 'the model’s';
  isReady = 'the model’s';

  constructor(via: readonly unknown[] = []) {
    this.via = via;
  }

  withCommandOptions(options: unknown) {
    return new Library([...this.via, ['withCommandOptions', options]]);
  }
  withTypeMapping(mapping: unknown) {
    return new Library([...this.via, ['withTypeMapping', mapping]]);
  }
  withAbortSignal(signal: unknown) {
    return new Library([...this.via, ['withAbortSignal', signal]]);
  }
  asap() {
    return new Library([...this.via, ['asap']]);
  }
  async *scanIterator() {
    yield await (this as Any).scan('0');
    yield await (this as Any).scan('1');
  }
  scanStream(options: unknown) {
    return [this, options];
  }
  multi(...begin: unknown[]) {
    return chain(this, ['multi', ...begin]);
  }
  MULTI(...begin: unknown[]) {
    return chain(this, ['MULTI', ...begin]);
  }
  pipeline(...begin: unknown[]) {
    return chain(this, ['pipeline', ...begin]);
  }
}

function noteOf(name: string) {
  return function noted(this: Any, ...args: unknown[]) {
    return [name, this?.via ?? this, ...args];
  };
}

function chain(library: Library, begin: unknown[]) {
  const calls: unknown[] = [library.via, begin];
  const recorder: Any = new Proxy(
    {},
    {
      get:
        (_, key) =>
        (...args: unknown[]) => {
          calls.push([key, ...args]);
          return /^exec/i.test(String(key)) ? calls : recorder;
        },
    },
  );
  return recorder;
}

const commands =
  'get set GET mygetscript subscribe wait blPop quit sendCommand send_command call callBuffer on close ' +
  'defineCommand scan xRead duplicate';
for (const name of commands.split(' ')) {
  Object.defineProperty(Library.prototype, name, { value: noteOf(name) });
}

interface Performed {
  readonly call: RoutedCall<Library>;
  readonly signal: AbortSignal | undefined;
  readonly tour: Tour | undefined;
}

function stage({ pinned = false, own = [] as string[], isReady = (): boolean => true } = {}) {
  const performed: Performed[] = [];
  const driver: Driver<Library> = {
    ...{ name: 'node-redis', model: new Library(), own: new Set(own) },
    open: () => {
      throw new Error('nothing is opened here');
    },
  };
  const redis: Any = routedClient<Library>({
    ...{ driver, pinned, isReady },
    perform: async (call, signal, tour) => {
      performed.push({ call, signal, tour });
      return call.send(new Library(['real']));
    },
  });
  const last = () => performed.at(-1) as Performed;
  return { redis, performed, last };
}

describe('a method of the model', () => {
  test('is called on the client of the chosen connection, with the same arguments', async () => {
    const { redis, last } = stage();
    expect(await redis.get('k', 1)).toEqual(['get', ['real'], 'k', 1]);
    expect(last()).toMatchObject({
      call: { isPipeline: false, command: { label: 'get', goesTo: 'any', isScript: false } },
      ...{ signal: undefined, tour: undefined },
    });
    await redis.set('k', 'v');
    expect(last().call.command.goesTo).toBe('primary');
  });

  test('that the model does not have is not there', () => {
    const { redis } = stage();
    expect(redis.nonsense).toBe(undefined);
    expect(['get' in redis, 'nonsense' in redis]).toEqual([true, false]);
    // Otherwise `await redis` would call it.
    expect(redis.then).toBe(undefined);
    expect(redis[Symbol.toPrimitive]).toBe(undefined);
  });

  test('that is no method is given as it is', () => {
    const { redis } = stage();
    expect(redis.options).toEqual({ password: 'secret' });
    expect(redis.nothing).toBe(null);
  });

  test('nothing can be changed: it would be a change of the model', () => {
    const { redis } = stage();
    expect(() => {
      redis.get = 1;
    }).toThrow(TypeError);
  });

  test('whether it is open and ready is said by the view', () => {
    for (const ready of [true, false]) {
      const { redis } = stage({ isReady: () => ready });
      expect([redis.isOpen, redis.isReady]).toEqual([ready, ready]);
    }
  });

  test('of a module is called on the module, and is no known read', async () => {
    const { redis, last } = stage();
    const [name, self, key] = await redis.json.get('k');
    expect([name, key, '_self' in self]).toEqual(['json.get', 'k', true]);
    expect(last().call.command).toMatchObject({
      ...{ label: 'json.get', goesTo: 'primary', isScript: true },
    });
    expect(redis.json.version).toBe(7);
  });

  test('a script of the caller’s goes to the primary, whatever it is called', async () => {
    const { redis, last } = stage({ own: ['get'] });
    await redis.get('k');
    expect(last().call.command).toMatchObject({ goesTo: 'primary', isScript: true });
  });

  test('ends with a callback, as ioredis has it: of the value, or of the error', async () => {
    const { redis } = stage();
    const done = vi.fn();
    const call = redis.get('k', done);
    redis.subscribe('channel', done);
    await atRest();
    expect(done.mock.calls).toEqual([
      [null, ['get', ['real'], 'k']],
      [expect.any(NotRoutableError)],
    ]);
    // The promise works as well.
    expect(await call).toEqual(['get', ['real'], 'k']);
  });
});

describe('what needs a connection of its own is refused, and nothing is sent', () => {
  test.each([
    ['subscribe', ['c'], 'subscribe cannot be routed: it belongs to one connection'],
    ['blPop', ['k', 0], 'blPop cannot be routed: it blocks all others'],
    ['quit', [], 'failover.close()'],
    ['wait', [1, 0], 'wait cannot be routed: it counts the writes of one connection'],
    ['xRead', [{}, { BLOCK: 0 }], 'with BLOCK it blocks all others'],
    ['sendCommand', [['SUBSCRIBE', 'c']], 'SUBSCRIBE cannot be routed'],
  ])('%s(%j)', async (name, args, message) => {
    const { redis, performed } = stage();
    const call = redis[name](...args);
    await expect(call).rejects.toMatchObject({
      ...{ code: 'NOT_ROUTABLE', message: expect.stringContaining(message) },
    });
    expect(performed).toEqual([]);
  });

  test('WAIT is sent where all is on one connection', async () => {
    const { redis } = stage({ pinned: true });
    expect(await redis.wait(1, 500)).toEqual(['wait', ['real'], 1, 500]);
    expect(await redis.sendCommand(['WAIT', '1', '500'])).toBeDefined();
    await expect(redis.multi().wait(1, 500).exec()).resolves.toBeDefined();
    await expect(redis.multi().sendCommand(['WAIT', '1', '500']).exec()).resolves.toBeDefined();
  });

  test.each(['on', 'close', 'defineCommand', 'duplicate'])(
    '%s is the life of a connection: it throws at once',
    (name) => {
      const { redis } = stage();
      expect(() => redis[name]('end')).toThrow(
        `${name} belongs to one connection, and a routed client has none`,
      );
    },
  );

  test('what the model does not have of that is not there', () => {
    expect(stage().redis.executeIsolated).toBe(undefined);
    const driver = { ...{ name: 'ioredis', model: { on: 1, asap: 1, hScanIterator: 1 } } };
    const redis: Any = routedClient<object>({
      driver: { ...driver, own: new Set() } as never,
      ...{ pinned: false, perform: async () => 1, isReady: () => true },
    });
    for (const name of ['withTypeMapping', 'scanIterator']) expect(redis[name]).toBe(undefined);
    for (const name of ['on', 'asap', 'hScanIterator']) expect(redis[name]).toBe(1);
  });
});

describe('a command by its words', () => {
  test.each([
    [[['GET', 'k']], 'any'],
    [['GET', 'k'], 'any'],
    [['GET', ['k']], 'any'],
    [[Buffer.from('get'), 'k'], 'any'],
    [[['SET', 'k', 'v']], 'primary'],
    [[['OBJECT', 'ENCODING', 'k']], 'any'],
  ])('%j goes to %s', async (args, goesTo) => {
    for (const name of ['sendCommand', 'send_command', 'call', 'callBuffer']) {
      const { redis, last } = stage();
      expect(await redis[name](...args)).toEqual([name, ['real'], ...args]);
      expect(last().call.command.goesTo).toBe(goesTo);
    }
  });

  test('a Command of ioredis can be sent once only, so it is refused', () => {
    const { redis } = stage();
    expect(() => redis.sendCommand({ name: 'get', args: ['k'] })).toThrow(
      "sendCommand takes the words of a command here: redis.call('GET', 'key')",
    );
    expect(() => redis.call()).toThrow(NotRoutableError);
  });

  test('the same name in a module is a method like others', async () => {
    const { redis, last } = stage();
    await redis.json.GET('k');
    expect(last().call.command.label).toBe('json.GET');
  });
});

describe('a client that is derived', () => {
  test('is derived anew on each connection, one step after the other', async () => {
    const { redis, last } = stage();
    const { signal } = new AbortController();
    const derived = redis.withTypeMapping('m').asap().withAbortSignal(signal);
    expect(await derived.get('k')).toEqual([
      'get',
      ['real', ['withTypeMapping', 'm'], ['asap'], ['withAbortSignal', signal]],
      'k',
    ]);
    expect(last().signal).toBe(signal);
    await derived.asap().set('k', 'v');
    expect(last().signal).toBe(signal);
  });

  test('has the signal that its options name', async () => {
    const { redis, last } = stage();
    const { signal } = new AbortController();
    await redis.withCommandOptions({ abortSignal: signal }).get('k');
    expect(last().signal).toBe(signal);
    for (const other of [{}, { abortSignal: 'a' }, undefined]) {
      await redis.withCommandOptions(other).get('k');
      expect(last().signal).toBe(undefined);
    }
    await redis.withAbortSignal('no signal').get('k');
    expect(last().signal).toBe(undefined);
    // Another method with such an option gives no client.
    await redis.set('k', { abortSignal: signal });
    expect(last().signal).toBe(undefined);
  });

  test('a transaction of it, too', async () => {
    const { redis, last } = stage();
    const { signal } = new AbortController();
    const [via] = await redis.withAbortSignal(signal).multi().set('k', 'v').exec();
    expect(via).toEqual(['real', ['withAbortSignal', signal]]);
    expect(last().signal).toBe(signal);
  });
});

describe('an iteration', () => {
  test('belongs together: all of its calls are of one tour', async () => {
    const { redis, performed } = stage();
    const { signal } = new AbortController();
    const pages: unknown[] = [];
    for await (const page of redis.asap().withAbortSignal(signal).scanIterator()) pages.push(page);
    expect(pages).toHaveLength(2);
    const [first, second] = performed;
    expect(first?.tour).toEqual({ reign: undefined });
    expect(second?.tour).toBe(first?.tour);
    expect(second?.signal).toBe(signal);
    for await (const _ of redis.scanIterator());
    expect(performed[2]?.tour).not.toBe(first?.tour);
  });

  test('within one is the same', async () => {
    const { redis, performed } = stage();
    const [inner, options] = redis.scanStream({ match: '*' });
    expect(options).toEqual({ match: '*' });
    await inner.scan('0');
    for await (const _ of inner.scanIterator());
    expect(new Set(performed.map(({ tour }) => tour)).size).toBe(1);
  });
});

describe('a transaction', () => {
  test('is kept back until it is executed, and made on the chosen connection', async () => {
    const { redis, performed, last } = stage();
    const begun = redis.multi('begin').set('k', 'v').get('k');
    expect(performed).toEqual([]);
    expect(begun.length).toBe(2);
    expect(begun.then).toBe(undefined);
    expect(begun[Symbol.iterator]).toBe(undefined);
    expect(await begun.exec('how')).toEqual([
      ['real'],
      ['multi', 'begin'],
      ['set', 'k', 'v'],
      ['get', 'k'],
      ['exec', 'how'],
    ]);
    expect(last()).toMatchObject({
      call: {
        isPipeline: false,
        command: { label: 'a transaction', goesTo: 'primary', isScript: false },
      },
      tour: undefined,
    });
  });

  test.each([
    ['multi', 'exec', [], false],
    ['MULTI', 'EXEC', [], false],
    ['multi', 'exec', [false], false],
    ['multi', 'exec', [true], true],
    ['multi', 'execAsPipeline', [], true],
    ['multi', 'execAsPipelineTyped', [], true],
    ['multi', 'execTyped', [], false],
    ['pipeline', 'exec', [], true],
    ['pipeline', 'execBuffer', [], true],
  ])('%s().%s(%j): a pipeline of single commands: %j %j', async (kind, name, args, isPipeline) => {
    const { redis, last } = stage();
    await redis[kind]()
      .set('k', 'v')
      [name](...args);
    expect(last().call.isPipeline).toBe(isPipeline);
    expect(last().call.command.label).toBe(isPipeline ? 'a pipeline' : 'a transaction');
  });

  test('with a callback, as ioredis has it', async () => {
    const { redis } = stage();
    const done = vi.fn();
    redis.multi().set('k', 'v').exec(done);
    await atRest();
    expect(done).toHaveBeenCalledWith(null, expect.anything());
  });

  test('may be given as a list, as ioredis has it', async () => {
    const { redis } = stage();
    const batch = [['set', 'k', 'v']];
    expect(await redis.multi(batch).exec()).toEqual([
      ...[['real'], ['multi'], ['addBatch', batch], ['exec']],
    ]);
    expect(await redis.multi(batch, { pipeline: true }).exec()).toEqual([
      ...[['real'], ['multi', { pipeline: true }], ['addBatch', batch], ['exec']],
    ]);
  });

  test('that would stay open on one connection is refused', () => {
    const { redis } = stage();
    for (const begin of [[{ pipeline: false }], [[['get', 'k']], { pipeline: false }]]) {
      expect(() => redis.multi(...begin)).toThrow(
        /^multi\(\{ pipeline: false \}\) keeps a transaction/,
      );
    }
    expect(() => redis.multi({ pipeline: true })).not.toThrow();
    expect(() => redis.multi(undefined)).not.toThrow();
  });

  test.each([
    ['a method', (redis: Any) => redis.multi().set('k', 'v').subscribe('c'), 'subscribe'],
    ['words', (redis: Any) => redis.multi().sendCommand(['SUBSCRIBE', 'c']), 'SUBSCRIBE'],
    ['words one by one', (redis: Any) => redis.pipeline().call('SUBSCRIBE', 'c'), 'SUBSCRIBE'],
    ['addCommand', (redis: Any) => redis.multi().addCommand(['BLPOP', 'k', '0']), 'BLPOP'],
    ['bytes', (redis: Any) => redis.multi().addCommand([Buffer.from('BLPOP')]), 'BLPOP'],
    [
      'what is no word',
      (redis: Any) => redis.multi().addCommand([{ toString: () => 'QUIT' }]),
      'QUIT',
    ],
    [
      'a list',
      (redis: Any) =>
        redis.multi([
          ['get', 'k'],
          ['subscribe', 'c'],
        ]),
      'subscribe',
    ],
    ['a list of words', (redis: Any) => redis.multi([['xread', 'BLOCK', '0']]), 'xread'],
    ['addBatch', (redis: Any) => redis.pipeline().addBatch([['select', '1']]), 'select'],
    ['wait', (redis: Any) => redis.multi().wait(1, 0), 'wait'],
  ])('is refused when one of its commands is: %s', async (_, begin, label) => {
    const { redis, performed } = stage();
    await expect(begin(redis).set('k', 'v').exec()).rejects.toMatchObject({
      ...{ code: 'NOT_ROUTABLE', message: expect.stringContaining(`${label} cannot be routed`) },
    });
    expect(performed).toEqual([]);
  });

  test('is not refused for a malformed batch', async () => {
    const { redis } = stage();
    await expect(redis.multi().addBatch('nonsense').exec()).resolves.toBeDefined();
  });

  test('a script of the caller’s in it is not refused, whatever it is called', async () => {
    const { redis } = stage({ own: ['subscribe'] });
    await expect(redis.multi().subscribe('c').exec()).resolves.toBeDefined();
    await expect(redis.multi([['subscribe', 'c']]).exec()).resolves.toBeDefined();
    await expect(redis.multi().sendCommand(['subscribe']).exec()).rejects.toThrow(
      'cannot be routed',
    );
  });
});
