import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { ProtocolName } from '../src/index.ts';
import { protocols, RoundTrips, startMeter } from '../src/index.ts';

const startup = Buffer.from('\0\0\0\x10\0\x03\0\0user\0a\0\0', 'latin1');
const message = (type: string, body: string) => {
  const head = Buffer.alloc(5, type);
  head.writeUInt32BE(4 + body.length, 1);
  return Buffer.concat([head, Buffer.from(body)]);
};
const frame = (type: number, stream: number, payload: string) => {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, Buffer.from(payload)]);
};

const talks: readonly (readonly [ProtocolName, Buffer, readonly string[]])[] = [
  [
    'redis',
    Buffer.from('*2\r\n$3\r\nget\r\n$1\r\nk\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\n\r\n*1\r\n'),
    ['GET', 'SET'],
  ],
  [
    'postgres',
    Buffer.concat([
      startup,
      message('Q', 'select 1\0'),
      message('P', '\0select\0\0\0'),
      message('B', 'EEEEE'),
      message('E', '\0\0\0\0\0'),
      message('S', ''),
    ]),
    ['Q', 'E'],
  ],
  [
    'http',
    Buffer.from(
      'GET /a HTTP/1.1\r\nhost: b\r\n\r\nPUT /a HTTP/1.1\r\nContent-Length: 4\r\n\r\n\r\n\r\n' +
        'GET /a?watch=1 HTTP/1.1\r\nhost: b\r\n\r\n',
    ),
    ['GET', 'PUT', 'WATCH'],
  ],
  [
    'grpc',
    Buffer.concat([
      Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
      frame(4, 0, ''),
      frame(1, 1, 'path'),
      frame(0, 1, 'watch this'),
      frame(6, 0, '12345678'),
      frame(1, 3, 'path'),
      frame(0, 3, 'range'),
      frame(0, 3, ''),
      frame(0, 1, 'and that'),
    ]),
    ['call', 'call', 'message'],
  ],
];

describe('a reader of requests', () => {
  test.each(talks)('of %s finds them, wherever the bytes are parted', (name, bytes, expected) => {
    for (let at = 0; at <= bytes.length; at += 1) {
      const reader = protocols[name].toServer();
      const found = [bytes.subarray(0, at), bytes.subarray(at)].flatMap(
        (chunk) => reader.read(chunk).requests,
      );
      expect(found).toEqual(expected);
    }
    const reader = protocols[name].toServer();
    const found = [...bytes].flatMap((byte) => reader.read(Buffer.from([byte])).requests);
    expect(found).toEqual(expected);
  });

  test.each(talks)('of %s refuses another protocol', (name) => {
    const stranger = Buffer.from(`\x16\x03\x01\x02\0${'hello '.repeat(10)}\r\n\r\n`, 'latin1');
    expect(() => protocols[name].toServer().read(stranger)).toThrow();
  });

  test('of gRPC takes pings and windows for nothing', () => {
    const reader = protocols.grpc.toClient();
    expect(reader.read(frame(6, 0, '12345678')).speaks).toBe(false);
    expect(reader.read(frame(8, 0, '1234')).speaks).toBe(false);
    expect(reader.read(frame(0, 1, 'event')).speaks).toBe(true);
  });
});

describe('round trips', () => {
  test('a request and its answer are one, and two of them one behind the other are two', () => {
    const trips = new RoundTrips();
    const client = trips.traveller();
    for (const taken of [1, 2]) {
      client.sent();
      client.received();
      expect(client.taken).toBe(taken);
    }
    trips.restart();
    expect(client.taken).toBe(0);
  });

  test('requests that are sent together are one', () => {
    const client = new RoundTrips().traveller();
    for (let i = 0; i < 3; i += 1) client.sent();
    for (let i = 0; i < 3; i += 1) client.received();
    expect(client.taken).toBe(1);
  });

  test('the news of a write by another client is one round trip, and later trips come on top', () => {
    const trips = new RoundTrips();
    const leader = trips.traveller();
    const follower = trips.traveller();
    leader.sent();
    follower.received();
    expect(follower.taken).toBe(1);
    follower.sent();
    leader.received();
    follower.received();
    expect(follower.taken).toBe(2);
  });

  test('a new connection is one more', () => {
    const client = new RoundTrips().traveller();
    client.connected();
    client.sent();
    client.received();
    expect(client.taken).toBe(2);
  });
});

describe('a meter', () => {
  test('passes everything on, and counts requests, round trips and connections', async () => {
    const server = createServer();
    const asked = new Promise<Socket>((resolve) => {
      server.on('connection', (socket) => socket.on('data', () => resolve(socket)));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const traveller = new RoundTrips().traveller();
    const meter = await startMeter({ port, protocol: 'redis', traveller });
    const client = connect(meter.port, '127.0.0.1');
    const heard = once(client, 'data');
    client.write('*1\r\n$4\r\nPING\r\n');
    await meter.until(({ isAnswered }) => !isAnswered);
    (await asked).write('+OK\r\n');
    await meter.until(({ isAnswered }) => isAnswered);
    expect(String(await heard)).toBe('+OK\r\n');
    expect([...meter.requests]).toEqual([['PING', 1]]);
    expect([meter.open, meter.opened, traveller.taken]).toEqual([1, 1, 2]);
    client.end();
    await meter.until(({ open }) => open === 0);
    expect(meter.trouble).toBeUndefined();
    await meter.close();
    server.close();
  });

  test('says when it cannot read what passes', async () => {
    const server = createServer((socket) => socket.resume());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const meter = await startMeter({ port, protocol: 'redis' });
    const client = connect(meter.port, '127.0.0.1');
    client.write('GET / HTTP/1.1\r\n\r\n');
    await meter.until(({ trouble }) => trouble !== undefined);
    client.destroy();
    await meter.close();
    server.close();
  });
});
