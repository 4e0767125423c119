import { FakeZooKeeper, startEnsemble, startServer } from '@incumbent/zookeeper-testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  askFourLetterWord,
  connect,
  createClient,
  InvalidArgumentError,
  ZooKeeper,
} from '../src/index.ts';
import { closeAfterEach } from './hostile-reading/closing.ts';

const later = closeAfterEach();
afterEach(() => {
  vi.restoreAllMocks();
});

// Nothing listens there, so every refusal comes before anything is sent.
const nowhere = 'zk://127.0.0.1:1';
// biome-ignore lint/suspicious/noExplicitAny: what callers without types may pass
type Any = any;

/** Every call that takes options. */
const calls: Readonly<Record<string, (zk: Any, options: unknown) => unknown>> = {
  connected: (zk, options) => zk.connected(options),
  states: (zk, options) => zk.states(options),
  leaveSilentServer: (zk, options) => zk.leaveSilentServer(options),
  close: (zk, options) => zk.close(options),
  create: (zk, options) => zk.create('/a', null, options),
  get: (zk, options) => zk.get('/a', options),
  set: (zk, options) => zk.set('/a', 'x', options),
  delete: (zk, options) => zk.delete('/a', options),
  stat: (zk, options) => zk.stat('/a', options),
  exists: (zk, options) => zk.exists('/a', options),
  getChildren: (zk, options) => zk.getChildren('/a', options),
  getEphemerals: (zk, options) => zk.getEphemerals('/a', options),
  getAllChildrenNumber: (zk, options) => zk.getAllChildrenNumber('/a', options),
  sync: (zk, options) => zk.sync('/a', options),
  getAcl: (zk, options) => zk.getAcl('/a', options),
  setAcl: (zk, options) => zk.setAcl('/a', [{ perms: 1, scheme: 'ip', id: '::1' }], options),
  addAuth: (zk, options) => zk.addAuth('digest', 'joe:secret', options),
  whoAmI: (zk, options) => zk.whoAmI(options),
  getConfig: (zk, options) => zk.getConfig(options),
  reconfig: (zk, options) => zk.reconfig({ leaving: [1] }, options),
  transaction: (zk, options) => zk.transaction().check('/a').commit(options),
  multiRead: (zk, options) => zk.multiRead([{ get: '/a' }], options),
  confirm: (zk, options) => zk.confirm(['/a'], options),
  watch: (zk, options) => zk.watch('/a', options),
  watchChildren: (zk, options) => zk.watchChildren('/a', options),
  watchStat: (zk, options) => zk.watchStat('/a', options),
  follow: (zk, options) => zk.follow('/a', options),
  followChildren: (zk, options) => zk.followChildren('/a', options),
  addWatch: (zk, options) => zk.addWatch('/a', options),
  checkWatches: (zk, options) => zk.checkWatches('/a', 'any', options),
  removeWatches: (zk, options) => zk.removeWatches('/a', 'any', options),
  ensurePath: (zk, options) => zk.ensurePath('/a', options),
  deleteRecursive: (zk, options) => zk.deleteRecursive('/a', options),
};
const withoutOptions = ['onState', 'exportSession'];

async function refused(act: () => unknown, why: RegExp): Promise<void> {
  const result = Promise.resolve().then(act);
  await expect(result).rejects.toThrow(InvalidArgumentError);
  await expect(result).rejects.toThrow(why);
}

describe('an option that is unknown', () => {
  it('is looked for in every call that there is', () => {
    const methods = Object.entries(Object.getOwnPropertyDescriptors(ZooKeeper.prototype))
      .filter(([name, { value }]) => typeof value === 'function' && name !== 'constructor')
      .map(([name]) => name);
    expect(Object.keys(calls).concat(withoutOptions).sort()).toEqual(methods.sort());
  });

  it.each(Object.entries(calls))('is refused by %s', async (_, act) => {
    const zk = later(createClient(nowhere));
    await refused(() => act(zk, { unheardOf: 1 }), /has no option "unheardOf"; there are \w+/);
    await refused(() => act(zk, 5), /options of .* an object .*not 5/);
    await refused(() => act(zk, null), /not null/);
    expect(zk.state).toBe('connecting');
    expect(zk.counters).toMatchObject({ requests: 0 });
  });

  it.each([
    [
      'a version of a read',
      (zk: Any) => zk.get('/a', { version: 1 }),
      /get has no option "version"/,
    ],
    ['ephemeral of a set', (zk: Any) => zk.set('/a', '', { ephemeral: true }), /"ephemeral"/],
    [
      'a bound of one operation',
      (zk: Any) => zk.transaction().create('/a', '', { timeoutMs: 1 }),
      /create in a transaction has no option "timeoutMs"/,
    ],
    [
      'protected of one operation',
      (zk: Any) => zk.transaction().create('/a', '', { protected: true }),
      /"protected"/,
    ],
    ['a bound of an iteration', (zk: Any) => zk.follow('/a', { timeoutMs: 1 }), /"timeoutMs"/],
    [
      'a check that is misspelt',
      (zk: Any) => zk.confirm([{ path: '/a', versoin: 5 }]),
      /"versoin"; did you mean version\?/,
    ],
    ['a node that is none', (zk: Any) => zk.confirm([null]), /not null/],
    [
      'two reads in one',
      (zk: Any) => zk.multiRead([{ get: '/a', children: '/b' }]),
      /not \{get, children\}/,
    ],
    ['a read that is none', (zk: Any) => zk.multiRead(['/a']), /\{get: path\}.*not "\/a"/],
    [
      'a read with a watch',
      (zk: Any) => zk.multiRead([{ get: '/a', watch: true }]),
      /not \{get, watch\}/,
    ],
    [
      'a change of the members',
      (zk: Any) => zk.reconfig({ leaving: [1], joinin: ['x'] }),
      /"joinin"; did you mean joining\?/,
    ],
    ['no change of the members', (zk: Any) => zk.reconfig(null), /not null/],
    [
      'a signal as the options',
      (zk: Any) => zk.get('/a', new AbortController().signal),
      /get has no option/,
    ],
    [
      'a controller as the signal',
      (zk: Any) => zk.get('/a', { signal: new AbortController() }),
      /signal is an AbortSignal, not a AbortController/,
    ],
    [
      'a word as a switch',
      (zk: Any) => zk.create('/a', null, { ephemeral: 'no' }),
      /ephemeral is true or false, not "no"/,
    ],
    [
      'a word as a switch',
      (zk: Any) => zk.addWatch('/a', { recursive: 1 }),
      /recursive is true or false, not 1/,
    ],
    [
      'what is no callback',
      (zk: Any) => zk.deleteRecursive('/a', { onProgress: 1 }),
      /onProgress is a function, not 1/,
    ],
    [
      'what is no number',
      (zk: Any) => zk.reconfig({ leaving: [1] }, { configId: 5 }),
      /configId.*not 5/,
    ],
  ])('or that would be ignored is refused: %s', async (_, act, why) => {
    const zk = later(createClient(nowhere));
    await refused(() => act(zk), why);
    expect(zk.counters).toMatchObject({ requests: 0 });
  });

  it('is refused by connect, by askFourLetterWord, and by what tests start', async () => {
    await refused(
      () => connect(nowhere, { conectTimeoutMs: 1 } as Any),
      /did you mean connectTimeoutMs/,
    );
    await refused(() => connect(nowhere, null as Any), /not null/);
    await refused(() => connect(nowhere, { signal: 1 } as Any), /signal is an AbortSignal/);
    await refused(
      () => createClient('zks://127.0.0.1:1', { tls: { rejectUnauthorised: false } } as Any),
      /tls has no option "rejectUnauthorised"; did you mean rejectUnauthorized\?/,
    );
    const server = { host: '127.0.0.1', port: 1 };
    await refused(
      () => askFourLetterWord(server, 'srvr', { timeout: 5 } as Any),
      /did you mean timeoutMs/,
    );
    const start = [
      () => FakeZooKeeper.start({ tickTime: 100 } as Any),
      () => startServer({ tickTime: 100 } as Any),
      () => startEnsemble(3, { tickTime: 100 } as Any),
    ];
    for (const act of start) await refused(act, /did you mean tickTimeMs\?/);
  });
});

describe('undefined', () => {
  it.each([
    [
      'version',
      (zk: Any) => zk.set('/a', 'x', { version: undefined }),
      /set: version is undefined; leave it out, or give -1, for any/,
    ],
    [
      'version',
      (zk: Any) => zk.delete('/a', { version: undefined }),
      /delete: version is undefined/,
    ],
    [
      'version',
      (zk: Any) => zk.setAcl('/a', [], { version: undefined }),
      /setAcl: version is undefined/,
    ],
    [
      'version',
      (zk: Any) => zk.confirm([{ path: '/a', version: undefined }]),
      /version is undefined/,
    ],
    [
      'version',
      (zk: Any) => zk.transaction().check('/a', undefined),
      /check: version is undefined/,
    ],
    [
      'version',
      (zk: Any) => zk.transaction().set('/a', '', undefined),
      /set: version is undefined/,
    ],
    [
      'version',
      (zk: Any) => zk.transaction().delete('/a', undefined),
      /delete: version is undefined/,
    ],
    [
      'configId',
      (zk: Any) => zk.reconfig({ leaving: [1] }, { configId: undefined }),
      /configId is undefined/,
    ],
    [
      'acl',
      (zk: Any) => zk.create('/a', 'x', { acl: undefined }),
      /acl is undefined; leave it out, .* everybody/,
    ],
    [
      'acl',
      (zk: Any) => zk.transaction().create('/a', 'x', { acl: undefined }),
      /acl is undefined/,
    ],
    ['acl', (zk: Any) => zk.ensurePath('/a', { acl: undefined }), /acl is undefined/],
    [
      'ttlMs',
      (zk: Any) => zk.create('/a', 'x', { ttlMs: undefined }),
      /ttlMs is undefined; leave it out for a node that stays/,
    ],
    [
      'data',
      (zk: Any) => zk.set('/a', undefined),
      /the data of \/a .*not undefined; null empties the node/,
    ],
    ['data', (zk: Any) => zk.transaction().set('/a', undefined), /null empties the node/],
  ])('does not stand for a %s that was left out', async (_, act, why) => {
    const zk = later(createClient(nowhere));
    await refused(() => act(zk), why);
    expect(zk.counters).toMatchObject({ requests: 0 });
  });

  it('stands for a bound, a switch or the data of a new node that was left out', async () => {
    const fake = later(await FakeZooKeeper.start());
    const zk: Any = later(await connect(fake.connectionString, { signal: undefined }));
    const none = { signal: undefined, timeoutMs: undefined, ephemeral: undefined };
    await zk.create('/a', undefined, none);
    await zk.transaction().create('/a/b', undefined).check('/a').delete('/a/b').commit(undefined);
    await zk.ensurePath('/b', { data: undefined });
    expect((await zk.get('/a', { timeoutMs: undefined })).data).toBe(null);
  });
});

describe('sessionTimeout', () => {
  it('is taken as the former name of sessionTimeoutMs, with one warning', async () => {
    vi.resetModules();
    const { createClient: create } = await import('../src/index.ts');
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const fake = later(await FakeZooKeeper.start());
    const clients = ['12s', 15_000].map((sessionTimeout) =>
      later(create(fake.connectionString, { sessionTimeout })),
    );
    for (const client of clients) await client.connected();
    expect(clients.map(({ session }) => session?.timeoutMs)).toEqual([12_000, 15_000]);
    expect(warn).toHaveBeenCalledTimes(1);
    expect(warn).toHaveBeenCalledWith(
      expect.stringContaining('write sessionTimeoutMs: 12000'),
      expect.objectContaining({ type: 'DeprecationWarning', code: 'INCUMBENT_ZK_SESSION_TIMEOUT' }),
    );
    later(create(fake.connectionString, { sessionTimeoutMs: 12_000 }));
    expect(warn).toHaveBeenCalledTimes(1);
  });
});
