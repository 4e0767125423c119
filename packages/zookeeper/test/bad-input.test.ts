import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { ZooKeeper } from '../src/index.ts';
import { ClosedError, connect, createClient, InvalidArgumentError } from '../src/index.ts';

// Nothing listens there, so every refusal comes before anything is sent.
const nowhere = 'zk://127.0.0.1:1';
const clients: ZooKeeper[] = [];
function client(): ZooKeeper {
  const made = createClient(nowhere);
  clients.push(made);
  return made;
}
afterEach(async () => {
  await Promise.all(clients.splice(0).map((made) => made.close()));
});

// biome-ignore lint/suspicious/noExplicitAny: bad input is what the types forbid
type Any = any;

describe('options', () => {
  it.each([
    [{ sessionTimeoutMs: 'soon' }, /sessionTimeoutMs.*"soon"/],
    [{ sessionTimeoutMs: '10s' }, /write 10000, or \?timeout=10s in the connection string/],
    [{ sessionTimeoutMs: 0 }, /sessionTimeoutMs.*0/],
    [{ sessionTimeoutMs: Number.NaN }, /NaN/],
    [{ sessionTimeout: 'soon' }, /sessionTimeout,.*"soon"/],
    [{ sessionTimeout: '10s', sessionTimeoutMs: 10_000 }, /former name of sessionTimeoutMs/],
    [{ connectTimeoutMs: -1 }, /connectTimeoutMs.*-1/],
    [{ requestTimeoutMs: 2 ** 31 }, /requestTimeoutMs/],
    [{ closeTimeoutMs: '1' }, /closeTimeoutMs.*"1"/],
    [{ maxInFlight: 0 }, /maxInFlight.*0/],
    [{ maxQueuedRequests: 1.5 }, /maxQueuedRequests/],
    [{ maxQueuedBytes: -1 }, /maxQueuedBytes/],
    [{ maxRequestBytes: 0 }, /maxRequestBytes/],
    [{ maxReplyBytes: 0 }, /maxReplyBytes/],
    [{ compatibility: '3.3' }, /compatibility.*"3\.3"/],
    [{ tls: {} }, /zks:\/\//],
    [{ sasl: { username: 'joe' } }, /sasl/],
    [{ sesionTimeoutMs: 4_000 }, /no option "sesionTimeoutMs"; did you mean sessionTimeoutMs\?/],
    [{ connectTimeout: 4_000 }, /did you mean connectTimeoutMs\?/],
    [{ signal: new AbortController().signal }, /a client has no option "signal"/],
    [{ readOnly: 'no' }, /readOnly is true or false, not "no"/],
    [{ tls: { rejectUnauthorised: false } }, /zks:/],
    [{ sasl: { username: 'joe', password: 'x', realm: 'y' } }, /sasl has no option "realm"/],
    [{ sasl: null }, /sasl/],
    [{ auth: { scheme: 'digest', credentials: 'x' } }, /auth is a list/],
    [{ auth: [{ scheme: 'digest', credential: 'x' }] }, /did you mean credentials\?/],
    [{ auth: [null] }, /auth/],
    [{ auth: [{ scheme: '', credentials: 'x' }] }, /scheme/],
    [{ auth: [{ scheme: 'digest', credentials: 7 }] }, /credentials.*7/],
    [{ session: { id: 0n } }, /exportSession/],
    [null, /options/],
  ])('option %# is refused with its name and value', (options: Any, why) => {
    expect(() => createClient(nowhere, options)).toThrow(InvalidArgumentError);
    expect(() => createClient(nowhere, options)).toThrow(why);
  });

  it('are refused by connect before anything is opened', async () => {
    await expect(connect('http://x')).rejects.toThrow(InvalidArgumentError);
    await expect(connect(nowhere, { maxInFlight: 0 })).rejects.toThrow(InvalidArgumentError);
  });
});

describe('arguments', () => {
  it.each<[string, (zk: Any) => unknown, RegExp]>([
    ['relative path', (zk) => zk.get('a'), /"a" is relative/],
    ['empty path', (zk) => zk.set('', 'x'), /is empty/],
    ['empty component', (zk) => zk.delete('/a//b'), /empty component/],
    ['dots', (zk) => zk.exists('/a/../b'), /component "\.\."/],
    ['NUL', (zk) => zk.getChildren('/a\0'), /U\+0000/],
    ['surrogate', (zk) => zk.create('/a\ud800'), /U\+d800/],
    ['path of another type', (zk) => zk.watch(7), /not number/],
    ['data of another type', (zk) => zk.set('/a', { a: 1 }), /not a Object/],
    ['data of another type', (zk) => zk.create('/a', 7), /not 7/],
    ['version above 32 bits', (zk) => zk.set('/a', '', { version: 2 ** 31 }), /32-bit.*2147483648/],
    ['fractional version', (zk) => zk.delete('/a', { version: 0.5 }), /not 0\.5/],
    ['version of another type', (zk) => zk.delete('/a', { version: '1' }), /not "1"/],
    ['TTL 0', (zk) => zk.create('/a', '', { ttlMs: 0 }), /TTL.*not 0/],
    ['TTL above 40 bits', (zk) => zk.create('/a', '', { ttlMs: 2 ** 40 }), /1099511627775/],
    ['ephemeral TTL', (zk) => zk.create('/a', '', { ttlMs: 1, ephemeral: true }), /ttlMs \(1\)/],
    ['container', (zk) => zk.create('/a', '', { container: true, sequential: true }), /container/],
    ['empty ACL', (zk) => zk.create('/a', '', { acl: [] }), /at least one entry/],
    ['ACL', (zk) => zk.setAcl('/a', [{ perms: 0, scheme: 'world', id: 'anyone' }]), /not 0/],
    ['guid', (zk) => zk.create('/a', '', { protected: 'a b' }), /guid.*"a b"/],
    ['timeout', (zk) => zk.get('/a', { timeoutMs: -5 }), /timeoutMs.*-5/],
    ['flags instead of options', (zk) => zk.create('/a', '', 1), /an object.*not 1/],
    ['a mode instead of options', (zk) => zk.create('/a', '', 'EPHEMERAL'), /not "EPHEMERAL"/],
    ['a version instead of options', (zk) => zk.set('/a', '', 77), /not 77/],
    ['a version instead of options', (zk) => zk.delete('/a', 9), /not 9/],
    ['a watcher instead of options', (zk) => zk.getChildren('/a', () => {}), /not a function/],
    ['an option that is none', (zk) => zk.create('/a', '', { ephemral: true }), /"ephemral"/],
    ['an option that is none', (zk) => zk.get('/a', { timeout: 5 }), /"timeout".*timeoutMs/],
    ['empty transaction', (zk) => zk.transaction().commit(), /at least one operation/],
    ['path in a transaction', async (zk) => zk.transaction().check('a'), /relative/],
    ['version in a transaction', async (zk) => zk.transaction().set('/a', '', 1.5), /not 1\.5/],
    ['empty multiRead', (zk) => zk.multiRead([]), /at least one/],
    ['empty confirm', (zk) => zk.confirm([]), /at least one path/],
    ['type of a watch', (zk) => zk.removeWatches('/a', 'all'), /not "all"/],
    ['maxBuffered', (zk) => zk.addWatch('/a', { maxBuffered: 0 }), /maxBuffered/],
    ['reconfig of nothing', (zk) => zk.reconfig({}), /changes nothing/],
    ['reconfig of both', (zk) => zk.reconfig({ members: ['x'], leaving: [1] }), /not both/],
    ['deleting the root', (zk) => zk.deleteRecursive('/'), /belongs to the server/],
    ['deleting /zookeeper', (zk) => zk.deleteRecursive('/zookeeper/quota'), /belongs to/],
    ['maxNodes', (zk) => zk.deleteRecursive('/a', { maxNodes: 0 }), /maxNodes/],
    ['credentials', (zk) => zk.addAuth('digest', undefined), /credentials/],
    ['listener', async (zk) => zk.onState('x'), /function/],
  ])('%s', async (_, act, why) => {
    const zk = client();
    const result = Promise.resolve().then(() => act(zk));
    await expect(result).rejects.toThrow(InvalidArgumentError);
    await expect(result).rejects.toThrow(why);
    expect(zk.counters).toMatchObject({ bytesSent: 0, outstanding: 0, queued: 0 });
  });
});

describe('use after close', () => {
  it.each<[string, (zk: ZooKeeper) => unknown]>([
    ['create', (zk) => zk.create('/a')],
    ['protected create', (zk) => zk.create('/a', null, { protected: true })],
    ['get', (zk) => zk.get('/a')],
    ['exists', (zk) => zk.exists('/a')],
    ['watch', (zk) => zk.watch('/a')],
    ['addWatch', (zk) => zk.addWatch('/a')],
    ['commit', (zk) => zk.transaction().check('/a').commit()],
    ['confirm', (zk) => zk.confirm(['/a'])],
    ['addAuth', (zk) => zk.addAuth('digest', 'a:b')],
    ['ensurePath', (zk) => zk.ensurePath('/a')],
    ['deleteRecursive', (zk) => zk.deleteRecursive('/a')],
    ['connected', (zk) => zk.connected()],
    ['follow', (zk) => zk.follow('/a').next()],
  ])('%s rejects ClosedError', async (_, act) => {
    const zk = client();
    await zk.close();
    await expect(act(zk)).rejects.toThrow(ClosedError);
  });

  it('is idempotent, and ends what waits', async () => {
    const zk = client();
    const call = zk.get('/a');
    const states = zk.states();
    await states.next();
    await Promise.all([zk.close(), zk.close(), expect(call).rejects.toThrow(ClosedError)]);
    expect(zk.state).toBe('closed');
    expect((await states.next()).value).toMatchObject({ state: 'closed' });
    expect((await states.next()).done).toBe(true);
    expect(zk.counters).toMatchObject({ requests: 1, failed: 1, outstanding: 0 });
  });
});

describe('callbacks that throw', () => {
  it('are reported, and disturb no other listener', async () => {
    const trouble: unknown[] = [];
    const onTrouble = (message: unknown) => trouble.push(message);
    subscribe('incumbent:zookeeper:trouble', onTrouble);
    const zk = client();
    const seen: string[] = [];
    zk.onState(() => {
      throw new Error('from a listener');
    });
    zk.onState(({ state }) => seen.push(state));
    await zk.close();
    unsubscribe('incumbent:zookeeper:trouble', onTrouble);
    expect(seen).toEqual(['closed']);
    expect(trouble).toMatchObject([{ error: { message: 'from a listener' } }]);
  });
});

describe('a malformed server', () => {
  it.each([
    ['an HTTP server', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['a short frame', Buffer.from([0, 0, 0, 1, 7])],
    ['an empty frame', Buffer.from([0, 0, 0, 0])],
    ['a negative length', Buffer.from([0xff, 0xff, 0xff, 0xff])],
  ])('%s is left, and says so in the end', async (_, bytes) => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.end(bytes);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    try {
      await expect(
        connect(`zk://127.0.0.1:${port}`, { connectTimeoutMs: 300 }),
      ).rejects.toMatchObject({ code: 'CONNECT_TIMEOUT' });
    } finally {
      server.close();
    }
  });
});
