import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { TestProxy } from '../src/index.ts';
import { startProxy, startServer } from '../src/index.ts';
import { BareSession, closing, needServers, until } from './server-support.ts';

const open = closing();

/** Sends back what it gets. */
class Echo implements AsyncDisposable {
  readonly sockets: Socket[] = [];
  readonly #prefix: string;
  readonly #server: Server;

  constructor(prefix: string) {
    this.#prefix = prefix;
    this.#server = createServer((socket) => {
      this.sockets.push(socket);
      socket.on('error', () => {});
      socket.on('data', (chunk) => socket.write(Buffer.concat([Buffer.from(this.#prefix), chunk])));
    });
  }

  static async start(prefix = ''): Promise<Echo> {
    const echo = new Echo(prefix);
    echo.#server.listen(0, '127.0.0.1');
    await once(echo.#server, 'listening');
    return echo;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** A client that records its events. */
class Probe implements AsyncDisposable {
  readonly socket: Socket;
  received = '';
  /** `connected`, then how it ended: `end` or the error's code. */
  readonly events: string[] = [];

  constructor(port: number) {
    this.socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    this.socket.setEncoding('latin1');
    this.socket.on('connect', () => this.events.push('connected'));
    this.socket.on('data', (text: string) => {
      this.received += text;
    });
    this.socket.on('end', () => this.events.push('end'));
    this.socket.on('error', (error: NodeJS.ErrnoException) => this.events.push(error.code ?? ''));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
  }

  says(text: string): Promise<void> {
    return until(`the reply ${text}`, () => this.received === text);
  }

  sees(event: string): Promise<void> {
    return until(`the event ${event}`, () => this.events.at(-1) === event);
  }
}

async function setUp(): Promise<{ echo: Echo; proxy: TestProxy; probe: () => Probe }> {
  const echo = open(await Echo.start());
  const proxy = open(await startProxy(echo));
  return { echo, proxy, probe: () => open(new Probe(proxy.port)) };
}

describe('a proxy', () => {
  it('passes bytes and ends of connections both ways, and counts', async () => {
    const { echo, proxy, probe } = await setUp();
    expect(proxy.connectionString).toBe(`zk://127.0.0.1:${proxy.port}`);
    const client = probe();
    client.socket.write('hello');
    await client.says('hello');
    expect(proxy.counters).toEqual({
      connections: 1,
      attempts: 0,
      open: 1,
      bytesToServer: 5,
      bytesToClient: 5,
      bytesDropped: 0,
      bytesHeld: 0,
    });
    client.socket.end();
    await client.sees('end');
    await until('the proxy has closed both halves', () => proxy.counters.open === 0);

    const other = probe();
    await until('the server has it', () => echo.sockets.length === 2);
    echo.sockets[1]!.resetAndDestroy();
    await other.sees('ECONNRESET');
  });

  it('carries more than its buffers hold to a reader that is slow', async () => {
    const { probe } = await setUp();
    const client = probe();
    await client.sees('connected');
    client.socket.pause();
    const text = 'x'.repeat(4 << 20);
    client.socket.write(text);
    await new Promise((resolve) => setImmediate(resolve));
    client.socket.resume();
    await until('all is back', () => client.received.length === text.length);
  });

  it('cut: resets what is open, and counts and resets each attempt', async () => {
    const { proxy, probe } = await setUp();
    const client = probe();
    client.socket.write('a');
    await client.says('a');
    proxy.cut();
    await client.sees('ECONNRESET');
    await probe().sees('ECONNRESET');
    await probe().sees('ECONNRESET');
    expect(proxy.counters).toMatchObject({ connections: 1, attempts: 2, open: 0 });
    await proxy.pass();
    const again = probe();
    again.socket.write('b');
    await again.says('b');
  });

  it('refuse: resets what is open and closes the port; pass opens the same one', async () => {
    const { proxy, probe } = await setUp();
    const client = probe();
    client.socket.write('a');
    await client.says('a');
    proxy.refuse();
    await client.sees('ECONNRESET');
    await probe().sees('ECONNREFUSED');
    await proxy.pass();
    const again = probe();
    again.socket.write('b');
    await again.says('b');
    expect(proxy.counters.attempts).toBe(0);
  });

  it('silence: nothing comes through, no end either, and pass resets what lost bytes', async () => {
    const { echo, proxy, probe } = await setUp();
    const losing = probe();
    const idle = probe();
    const leaving = probe();
    for (const client of [losing, idle, leaving]) client.socket.write('a');
    for (const client of [losing, idle, leaving]) await client.says('a');
    proxy.silence();
    const before = proxy.counters;
    const late = probe();
    await late.sees('connected');
    losing.socket.write('lost');
    late.socket.write('lost');
    leaving.socket.destroy();
    // The server's bytes are lost as well, and the client does not learn of its end.
    const [toLosing] = echo.sockets;
    toLosing!.write('lost');
    toLosing!.end();
    await until('the late one is accepted', () => proxy.counters.connections === 4);
    // A second exchange that does pass proves that the proxy has had its turn.
    const witness = open(await startProxy(echo));
    const through = open(new Probe(witness.port));
    through.socket.write('b');
    await through.says('b');
    expect(proxy.counters).toMatchObject({
      bytesToServer: before.bytesToServer,
      bytesToClient: before.bytesToClient,
      attempts: 0,
    });
    expect(losing.events).toEqual(['connected']);
    expect(late.events).toEqual(['connected']);
    expect(losing.received).toBe('a');
    expect(echo.sockets.slice(1, 3).every((socket) => !socket.closed)).toBe(true);

    await proxy.pass();
    await losing.sees('ECONNRESET');
    await late.sees('ECONNRESET');
    await until(
      'the server is told',
      () => echo.sockets.filter(({ closed }) => closed).length >= 2,
    );
    idle.socket.write('c');
    await idle.says('ac');
  });

  it('dropReplies: requests go through, replies do not, and pass resets connections that missed one', async () => {
    const { echo, proxy, probe } = await setUp();
    const asking = probe();
    const idle = probe();
    for (const client of [asking, idle]) client.socket.write('a');
    for (const client of [asking, idle]) await client.says('a');
    proxy.dropReplies();
    asking.socket.write('request');
    await until('it arrives', () => echo.sockets.some(({ bytesRead }) => bytesRead === 8));
    await until('the reply is on its way', () => echo.sockets.some((s) => s.bytesWritten === 8));
    const late = probe();
    late.socket.write('late');
    await until('that arrives too', () => echo.sockets[2]?.bytesRead === 4);
    // Its reply comes after the earlier ones. Once it has been dropped, they have been, too.
    echo.sockets[2]!.end();
    expect(asking.received).toBe('a');
    expect(late.received).toBe('');
    await proxy.pass();
    idle.socket.write('b');
    await idle.says('ab');
    expect(late.received).toBe('');
  });

  it('cutAfterBytes: the client gets that many bytes, then a reset, and then all passes', async () => {
    const { proxy, probe } = await setUp();
    for (const [count, first, second] of [
      [0, '', 'abcdef'],
      [3, '', 'abcdef'],
      [6, '', 'abcdef'],
      [7, 'abcdef', 'gh'],
    ] as const) {
      const client = probe();
      await client.sees('connected');
      proxy.cutAfterBytes(count);
      if (first !== '') client.socket.write(first);
      await client.says(first);
      client.socket.write(second);
      // Bytes and a reset that arrive together may look like an end to a process.
      await until('it is cut', () => /ECONNRESET|end/.test(client.events.at(-1) ?? ''));
      expect(client.received).toBe('abcdefgh'.slice(0, count));
      const next = probe();
      next.socket.write('abcdefghij');
      await next.says('abcdefghij');
    }
    expect(() => proxy.cutAfterBytes(-1)).toThrow(TypeError);
  });

  it('cutAfterBytes towards the server: half a request, then a reset, and then all passes', async () => {
    const { echo, proxy, probe } = await setUp();
    const client = probe();
    client.socket.write('a');
    await client.says('a');
    proxy.cutAfterBytes(3, 'server');
    client.socket.write('bcdef');
    await until('it is cut', () => /ECONNRESET|end/.test(client.events.at(-1) ?? ''));
    await until('the server is told', () => echo.sockets[0]!.closed);
    expect(echo.sockets[0]!.bytesRead).toBe(4);
    expect(proxy.counters.bytesToServer).toBe(4);
    const next = probe();
    next.socket.write('bcdef');
    await next.says('bcdef');
  });

  it('holdRequests: the server hears nothing, not even of the end, until letGo', async () => {
    const { echo, proxy, probe } = await setUp();
    const [staying, leaving] = [probe(), probe()];
    for (const client of [staying, leaving]) client.socket.write('a');
    for (const client of [staying, leaving]) await client.says('a');
    proxy.holdRequests();
    const late = probe();
    for (const client of [staying, leaving, late]) client.socket.write('b');
    await until('all is held', () => proxy.counters.bytesHeld === 3);
    leaving.socket.resetAndDestroy();
    staying.socket.write('c');
    await until('that too', () => proxy.counters.bytesHeld === 4);
    // Replies do come through.
    await until('the server has all three', () => echo.sockets.length === 3);
    for (const socket of echo.sockets) socket.write('d');
    await staying.says('ad');
    expect(echo.sockets.map(({ bytesRead }) => bytesRead).sort()).toEqual([0, 1, 1]);
    expect(echo.sockets.every(({ closed }) => !closed)).toBe(true);

    proxy.letGo();
    await staying.says('adbc');
    await late.says('db');
    const bytesRead = () => echo.sockets.map((socket) => socket.bytesRead).sort();
    await until('who has left is heard as well', () => bytesRead().join() === '1,2,3');
    expect(proxy.counters).toMatchObject({ bytesHeld: 0, bytesToServer: 6, open: 3 });
    staying.socket.write('e');
    await staying.says('adbce');
    await proxy.pass();
    await until('the server is told', () => echo.sockets.filter((s) => s.closed).length === 1);
    staying.socket.write('f');
    await staying.says('adbcef');
  });

  it('what was held before a silence can be let go, and nothing that came after it', async () => {
    const { echo, proxy, probe } = await setUp();
    const client = probe();
    client.socket.write('a');
    await client.says('a');
    proxy.holdRequests();
    client.socket.write('b');
    await until('it is held', () => proxy.counters.bytesHeld === 1);
    proxy.silence();
    client.socket.write('c');
    client.socket.end();
    await until('the end was read', () => client.socket.writableFinished);
    proxy.letGo();
    await until('the server has it', () => echo.sockets[0]!.bytesRead === 2);
    const other = probe();
    other.socket.write('d');
    await other.says('d');
    expect([client.received, echo.sockets[0]!.bytesRead]).toEqual(['a', 2]);
    await proxy.pass();
    await client.sees('ECONNRESET');
    await until('the server is told', () => echo.sockets[0]!.closed);
    expect(() => proxy.letGo()).toThrow('holds nothing');
  });

  it('holdReplies: the client waits until letGo', async () => {
    const { echo, proxy, probe } = await setUp();
    const client = probe();
    client.socket.write('a');
    await client.says('a');
    proxy.holdReplies();
    client.socket.write('b');
    await until('the reply is held', () => proxy.counters.bytesHeld === 1);
    echo.sockets[0]!.write('c');
    echo.sockets[0]!.end();
    await until('that too', () => proxy.counters.bytesHeld === 2);
    expect([client.received, client.events]).toEqual(['a', ['connected']]);
    proxy.letGo();
    await client.says('abc');
    await client.sees('end');
  });

  it('throws away what is held when another fault follows', async () => {
    const { echo, proxy, probe } = await setUp();
    for (const next of ['pass', 'dropReplies', 'holdReplies'] as const) {
      const client = probe();
      client.socket.write('a');
      await client.says('a');
      proxy.holdRequests();
      client.socket.write('b');
      await until('it is held', () => proxy.counters.bytesHeld === 1);
      await proxy[next]();
      await client.sees('ECONNRESET');
      expect(proxy.counters.bytesHeld).toBe(0);
      await proxy.pass();
    }
    expect(echo.sockets.map(({ bytesRead }) => bytesRead)).toEqual([1, 1, 1]);
  });

  it('onRequest: a fault can be aimed at a request', async () => {
    const { echo, proxy, probe } = await setUp();
    const client = probe();
    const seen: string[] = [];
    const stop = proxy.onRequest((chunk) => {
      const text = Buffer.from(chunk).toString();
      seen.push(text);
      if (text === 'write') proxy.dropReplies();
    });
    client.socket.write('read');
    await client.says('read');
    client.socket.write('write');
    await until('its reply is dropped', () => proxy.counters.bytesDropped === 5);
    expect(echo.sockets[0]!.bytesRead).toBe(9);
    stop();
    await proxy.pass();
    const next = probe();
    next.socket.write('write');
    await next.says('write');
    expect(seen).toEqual(['read', 'write']);
  });

  it('switchTo: new connections lead there, old ones stay', async () => {
    const { proxy, probe } = await setUp();
    const old = probe();
    old.socket.write('a');
    await old.says('a');
    proxy.switchTo(open(await Echo.start('other:')));
    const young = probe();
    young.socket.write('b');
    await young.says('other:b');
    old.socket.write('c');
    await old.says('ac');
  });

  it('resets the client when nothing listens behind it', async () => {
    const { echo, proxy, probe } = await setUp();
    const { port } = echo;
    await echo[Symbol.asyncDispose]().then(() => proxy.switchTo({ port }));
    await probe().sees('ECONNRESET');
  });

  it('ends everything when it is closed, and refuses to be used after', async () => {
    const { proxy, probe } = await setUp();
    const client = probe();
    client.socket.write('a');
    await client.says('a');
    await Promise.all([proxy.close(), proxy.close()]);
    await client.sees('ECONNRESET');
    await probe().sees('ECONNREFUSED');
    await expect(proxy.pass()).rejects.toThrow('closed');
    expect(() => proxy.cut()).toThrow('closed');
  });
});

describe('a proxy before a real server', () => {
  needServers();

  it('lets a session live through it, and takes its replies away', async () => {
    const server = open(await startServer());
    const proxy = open(await startProxy(server));
    const session = open(await BareSession.open(proxy));
    await session.create('/node', 'first');
    proxy.dropReplies();
    const lost = session.create('/applied', 'though nobody was told');
    lost.catch(() => {});
    const direct = open(await BareSession.open(server));
    // A server may tell another client of the node before it has sent the reply to this one.
    await until('its reply is dropped', () => proxy.counters.bytesDropped > 0);
    expect(await direct.get('/applied')).toBe('though nobody was told');
    await proxy.pass();
    await expect(lost).rejects.toThrow();
    proxy.cutAfterBytes(10);
    await expect(BareSession.open(proxy)).rejects.toThrow(/ECONNRESET|closed/);
    expect(await open(await BareSession.open(proxy)).get('/node')).toBe('first');
  });
});
