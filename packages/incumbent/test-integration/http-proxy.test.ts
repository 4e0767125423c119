/**
 * Followers that pass requests on: what they pass on, what they keep back, and failures on the way.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { request as requestHttp } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { createCertificates } from '@incumbent/zookeeper-testing';
import { request } from 'undici';
import type { TestContext } from 'vitest';
import { describe, expect, test } from 'vitest';
import type { ProxyOptions } from '../src/following/http/index.ts';
import {
  electionHeader,
  proxiedHeader,
  refusedHeader,
  tokenHeader,
} from '../src/following/http/index.ts';
import { candidate, ledBy, unknown } from '../test/support/fake-election.ts';
import { temporaryDirectory } from './support/file-build.ts';
import type { Echo, Handler, Listening } from './support/http-stage.ts';
import { echo, FakeTerm, HttpStage } from './support/http-stage.ts';

interface Pair {
  readonly stage: HttpStage;
  readonly follower: Listening;
  readonly leader: Listening;
}

/** A follower that passes on to a leader, whose handler is the test's. */
async function pair(
  context: TestContext,
  handler: Handler,
  proxy: ProxyOptions = {},
): Promise<Pair> {
  const stage = new HttpStage(context);
  const leader = await stage.listen(handler);
  await stage.lead(leader.address, 1n);
  const only = stage.only({ followers: 'proxy', proxy });
  const follower = await stage.listen((incoming, response) => {
    only(incoming, response, (error) => response.writeHead(599).end(String(error)));
  });
  return { stage, follower, leader };
}

async function typeOf(answer: { body: { json(): Promise<unknown> } }): Promise<string> {
  const { type } = (await answer.body.json()) as { type: string };
  return type.slice('urn:incumbent:problem:'.length);
}

describe.concurrent('a follower that passes requests on', () => {
  test('keeps headers about the message, and drops those about a connection', async (context) => {
    const { follower } = await pair(context, (incoming, response) => {
      response.statusMessage = 'Fine indeed';
      response.setHeader('set-cookie', ['a=1', 'b=2']);
      response.setHeader('connection', 'x-mine, close');
      response.setHeader('x-mine', '1');
      response.setHeader('proxy-authenticate', 'Basic');
      response.setHeader('x-kept', 'yes');
      response.setHeader(electionHeader, 'billing');
      return echo(incoming, response);
    });
    const socket = connect(Number(new URL(follower.origin).port), '127.0.0.1');
    // Not ended: Node takes that for a client that has gone.
    socket.write(
      [
        'POST /x HTTP/1.1',
        'Host: billing.example',
        'Connection: close, X-Private, x-forwarded-for',
        'X-Private: 1',
        'Keep-Alive: timeout=9',
        'Proxy-Authorization: Basic eDp5',
        'TE: trailers',
        'Trailer: X-End',
        'Upgrade: h2c',
        'X-Forwarded-For: 10.9.9.9',
        'X-Forwarded-Proto: https',
        'X-Forwarded-Port: 443',
        'X-Real-IP: 10.9.9.9',
        'Forwarded: for=10.9.9.9',
        'Cookie: a=1',
        'X-Twice: 1',
        'X-Twice: 2',
        'Transfer-Encoding: chunked',
        '',
        '4\r\ntext\r\n0\r\nX-End: 1\r\n\r\n',
      ].join('\r\n'),
    );
    const answer = await text(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 200 Fine indeed\r\n/);
    expect(answer).toContain('set-cookie: a=1\r\nset-cookie: b=2\r\n');
    expect(answer).toContain('x-kept: yes\r\n');
    expect(answer).not.toMatch(/x-mine|proxy-authenticate/);
    const came = JSON.parse(/\{.*\}/s.exec(answer)?.[0] ?? '') as Echo;
    expect(came).toMatchObject({ method: 'POST', url: '/x', body: 'text' });
    const { headers } = came;
    expect(headers).toMatchObject({
      host: 'billing.example',
      cookie: 'a=1',
      'x-twice': '1, 2',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': 'billing.example',
      'x-forwarded-proto': 'http',
      'transfer-encoding': 'chunked',
    });
    for (const dropped of [
      'x-private',
      'proxy-authorization',
      'te',
      'trailer',
      'upgrade',
      'forwarded',
      'x-forwarded-port',
      'x-real-ip',
    ]) {
      expect(headers).not.toHaveProperty(dropped);
    }
  });

  test('adds to X-Forwarded-For where the one before it can be trusted', async (context) => {
    const { follower } = await pair(context, echo, { trustForwarded: true });
    const headers = { 'x-forwarded-for': '10.9.9.9', 'x-forwarded-proto': 'https', forwarded: 'f' };
    const answer = await request(follower.origin, { headers });
    expect(((await answer.body.json()) as Echo).headers).toMatchObject({
      'x-forwarded-for': '10.9.9.9, 127.0.0.1',
      'x-forwarded-proto': 'https',
      forwarded: 'f',
    });
  });

  test('carries uploads and downloads without keeping them', async (context) => {
    const chunk = Buffer.alloc(65_536, 'x');
    const chunks = 200;
    let arrived = 0;
    const { follower } = await pair(context, async (incoming, response) => {
      for await (const piece of incoming) arrived += (piece as Buffer).length;
      Readable.from(Array.from({ length: chunks }, () => chunk)).pipe(response);
    });
    const body = Readable.from(Array.from({ length: chunks }, () => chunk));
    const answer = await request(follower.origin, { method: 'PUT', body });
    let received = 0;
    for await (const piece of answer.body) received += (piece as Buffer).length;
    expect([arrived, received]).toEqual([chunks * chunk.length, chunks * chunk.length]);
  });

  test('passes on each piece as it comes, in both directions', async (context) => {
    const { follower } = await pair(context, (incoming, response) => {
      response.writeHead(200);
      response.flushHeaders();
      incoming.pipe(response);
    });
    const asked = requestHttp(follower.origin, { method: 'POST' });
    asked.flushHeaders();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    for (const piece of ['one', 'two']) {
      asked.write(piece);
      const [came] = (await once(answer, 'data')) as [Buffer];
      expect(String(came)).toBe(piece);
    }
    asked.end();
    answer.resume();
    await once(answer, 'end');
  });

  test('ends with a client that goes away, before its body is whole and before the answer is', async (context) => {
    const seen: Promise<unknown>[] = [];
    const { follower, leader } = await pair(context, (incoming, response) => {
      seen.push(once(response, 'close'));
      incoming.on('error', () => {});
      incoming.resume();
      if (incoming.method === 'GET') response.write('half');
    });
    for (const method of ['POST', 'GET']) {
      const asked = requestHttp(follower.origin, { method });
      asked.on('error', () => {});
      if (method === 'POST') asked.write('half');
      else asked.end();
      await once(leader.server, 'request');
      if (method === 'GET') await once(asked, 'response');
      asked.destroy();
      await seen.at(-1);
    }
    expect(seen).toHaveLength(2);
  });

  test('breaks an answer off where the leader does', async (context) => {
    const { follower } = await pair(context, (incoming, response) => {
      if (incoming.url === '/length') response.setHeader('content-length', '100');
      response.write('half', () => response.destroy());
    });
    for (const path of ['/length', '/chunked']) {
      const { body } = await request(follower.origin + path);
      await expect(text(body)).rejects.toThrow();
    }
  });

  test('says whether a request that failed may have been applied', async (context) => {
    const { stage, follower } = await pair(context, (incoming) => incoming.socket.destroy());
    const post = { method: 'POST' as const, body: 'pay' };
    const broken = await request(follower.origin, post);
    expect([broken.statusCode, broken.headers[refusedHeader]]).toEqual([502, undefined]);
    expect(await typeOf(broken)).toBe('bad-gateway');
    await stage.lead(await stage.deadAddress(), 2n);
    const unreachable = await request(follower.origin, post);
    expect([unreachable.statusCode, unreachable.headers[refusedHeader]]).toEqual([
      503,
      'unreachable',
    ]);
    expect(unreachable.headers).toHaveProperty('retry-after');
    await unreachable.body.dump();
  });

  test('does not answer before the whole body has been sent, if the leader does not', async (context) => {
    const { follower } = await pair(context, (_incoming, response) => {
      response.writeHead(413, { connection: 'close' });
      response.end('too large');
    });
    const asked = requestHttp(follower.origin, { method: 'POST' });
    asked.on('error', () => {});
    asked.write('the beginning');
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    expect([answer.statusCode, await text(answer)]).toEqual([413, 'too large']);
    asked.end();
  });

  test('keeps no connection over which half a request has passed', async (context) => {
    const { follower, leader } = await pair(context, (_incoming, response) => {
      response.writeHead(401);
      response.end('who are you?');
    });
    leader.server.keepAliveTimeout = 0;
    const asked = requestHttp(follower.origin, { method: 'POST' });
    asked.on('error', () => {});
    asked.write('the beginning');
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    expect(await text(answer)).toBe('who are you?');
    const [socket] = leader.connections as [Socket];
    // Not `once`: it breaks off in the middle, which is an error.
    if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
    asked.destroy();
  });

  test('gives up when nothing moves, on either side', async (context) => {
    const closed: Promise<unknown>[] = [];
    const { follower } = await pair(
      context,
      (incoming, response) => {
        closed.push(once(response, 'close'));
        incoming.on('error', () => {});
        incoming.resume();
        if (incoming.url === '/half') response.write('half');
      },
      { idleTimeout: 1000 },
    );
    const silent = await request(`${follower.origin}/`, { method: 'POST', body: 'whole' });
    expect([silent.statusCode, await typeOf(silent)]).toEqual([504, 'gateway-timeout']);
    const half = await request(`${follower.origin}/half`);
    await expect(text(half.body)).rejects.toThrow();
    const asked = requestHttp(follower.origin, { method: 'POST' });
    asked.on('error', () => {});
    asked.write('half');
    const [slow] = (await once(asked, 'response')) as [IncomingMessage];
    expect(slow.statusCode).toBe(408);
    slow.resume();
    asked.end();
    expect(await Promise.all(closed)).toHaveLength(3);
  });

  test('gives up a connection that does not come about', async (context) => {
    // Takes connections and never says hello, which https waits for.
    const sockets: Socket[] = [];
    const mute = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
    });
    mute.listen(0, '127.0.0.1');
    await once(mute, 'listening');
    const { stage, follower } = await pair(context, echo, { connectTimeout: 50 });
    stage.keep(() => {
      for (const socket of sockets) socket.destroy();
      mute.close();
    });
    const { port } = mute.address() as AddressInfo;
    await stage.lead(`https://127.0.0.1:${port}`, 2n);
    const answer = await request(follower.origin, { method: 'POST', body: 'x' });
    expect([answer.statusCode, answer.headers[refusedHeader]]).toEqual([503, 'unreachable']);
  });

  test('asks again where the leader had closed a connection that was kept', async (context) => {
    let served = 0;
    const { follower, leader } = await pair(context, (incoming, response) => {
      served += 1;
      // The second request on a connection finds it closed.
      if (leader.connections.length === 1 && served === 2) incoming.socket.destroy();
      else response.end(`${served}`);
    });
    expect(await (await request(follower.origin)).body.text()).toBe('1');
    expect(await (await request(follower.origin)).body.text()).toBe('3');
    expect(leader.connections).toHaveLength(2);

    served = 0;
    const careful = await pair(context, (incoming, response) => {
      served += 1;
      if (served === 2) incoming.socket.destroy();
      else response.end();
    });
    const post = { method: 'POST' as const };
    expect((await request(careful.follower.origin, post)).statusCode).toBe(200);
    expect((await request(careful.follower.origin, post)).statusCode, 'it has it').toBe(502);
    expect(served).toBe(2);
  });

  test('passes nothing on twice', async (context) => {
    const { stage: one, follower: first } = await pair(context, echo);
    // Each believes that the other one leads.
    const other = new HttpStage(context);
    const only = other.only({ followers: 'proxy' });
    const second = await other.listen((incoming, response) => only(incoming, response, () => {}));
    await one.lead(second.address, 3n);
    await other.lead(first.address, 3n);
    const seen: unknown[] = [];
    for (const { server } of [first, second]) {
      server.on('request', ({ headers }: IncomingMessage) => seen.push(headers[proxiedHeader]));
    }
    const answer = await request(first.origin);
    expect([answer.statusCode, answer.headers[refusedHeader]]).toEqual([503, 'not-leading']);
    expect(seen).toEqual([undefined, 'billing']);
  });

  test('refuses upgrades, of which the leader may know', async (context) => {
    const { follower } = await pair(context, echo);
    const socket = connect(Number(new URL(follower.origin).port), '127.0.0.1');
    socket.end(
      'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n',
    );
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 501 .*incumbent-refused: no-upgrade/s);
  });

  test('says so when a body has been read before', async (context) => {
    const { stage } = await pair(context, echo);
    const only = stage.only({ followers: 'proxy' });
    const late = await stage.listen(async (incoming, response) => {
      await text(incoming);
      only(incoming, response, () => {});
    });
    const answer = await request(late.origin, { method: 'POST', body: 'x' });
    expect([answer.statusCode, answer.headers[refusedHeader]]).toEqual([500, 'not-passed-on']);
    expect(await answer.body.text()).toContain('Put leaderOnly before');
  });

  test('passes on to a leader that has become none: the refusal comes back', async (context) => {
    const stage = new HttpStage(context);
    const term = new FakeTerm(1n);
    const leading = stage.only({ term: () => term.term, waitTimeout: 0 });
    const leader = await stage.listen((incoming, response) =>
      leading(incoming, response, () => response.end('served')),
    );
    const proxying = stage.only({ followers: 'proxy' });
    const follower = await stage.listen((incoming, response) =>
      proxying(incoming, response, () => {}),
    );
    await stage.lead(leader.address, 1n);
    expect(await (await request(follower.origin)).body.text()).toBe('served');
    // Its record says that it leads in a newer term than it knows of.
    await stage.lead(leader.address, 2n);
    const answer = await request(follower.origin);
    expect([answer.statusCode, answer.headers[refusedHeader], answer.headers[tokenHeader]]).toEqual(
      [503, 'not-leading', '2'],
    );
  });

  /** The answer of a server to raw bytes. */
  const raw = (origin: string, ...lines: string[]): Promise<string> => {
    const socket = connect(Number(new URL(origin).port), '127.0.0.1');
    socket.write(lines.join('\r\n'));
    return text(socket);
  };

  test('lets no body be taken for a request of its own', async (context) => {
    const seen: string[] = [];
    const { follower } = await pair(context, async (incoming, response) => {
      const body = await text(incoming);
      seen.push(`${incoming.method} ${incoming.url} ${body.length}`);
      response.end('answered');
    });
    const hidden = 'GET /admin HTTP/1.1\r\nHost: x\r\n\r\n';
    for (const named of ['content-length', 'host, incumbent-proxied, transfer-encoding']) {
      const answer = await raw(
        follower.origin,
        'POST / HTTP/1.1',
        'Host: x',
        `Connection: close, ${named}`,
        `Content-Length: ${hidden.length}`,
        '',
        hidden,
      );
      expect(answer).toContain('answered');
    }
    const chunked = await raw(
      follower.origin,
      'GET / HTTP/1.1',
      'Host: x',
      'Connection: close, transfer-encoding',
      'Transfer-Encoding: chunked',
      '',
      `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`,
    );
    expect(chunked).toContain('answered');
    expect(await (await request(follower.origin)).body.text()).toBe('answered');
    const { length } = hidden;
    expect(seen).toEqual([`POST / ${length}`, `POST / ${length}`, `GET / ${length}`, 'GET / 0']);
  });

  test('refuses requests that it could not pass on unchanged', async (context) => {
    const { follower } = await pair(context, echo);
    const twoHosts = await raw(
      follower.origin,
      'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n',
    );
    expect(twoHosts).toMatch(/^HTTP\/1\.1 400 .*incumbent-refused: not-passed-on/s);
    const gzip = await raw(
      follower.origin,
      'POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: gzip, chunked\r\n',
      '0\r\n\r\n',
    );
    expect(gzip).toMatch(/^HTTP\/1\.1 501 .*incumbent-refused: not-passed-on/s);
    const old = await raw(follower.origin, 'GET / HTTP/1.0\r\n\r\n');
    expect(old).toMatch(/^HTTP\/1\.1 200 .*"x-forwarded-host":"127\.0\.0\.1:/s);
  });

  test('bears that the application answers before the leader does', async (context) => {
    const { stage, leader } = await pair(context, () => {});
    const only = stage.only({ followers: 'proxy' });
    const answers: ServerResponse[] = [];
    leader.server.on('request', (_incoming, response: ServerResponse) => answers.push(response));
    const impatient = await stage.listen((incoming, response) => {
      only(incoming, response, () => {});
      leader.server.once('request', () => {
        response.statusCode = 504;
        response.end('that took too long');
      });
    });
    const answer = await request(impatient.origin);
    expect([answer.statusCode, await answer.body.text()]).toEqual([504, 'that took too long']);
    for (const late of answers) late.end('late');
    expect((await request(impatient.origin)).statusCode).toBe(504);

    // Or begins to, and goes on after the leader has answered.
    const eager = await stage.listen((incoming, response) => {
      only(incoming, response, () => {});
      leader.server.once('request', (_asked, late: ServerResponse) => {
        response.write('mine, ');
        // The request that is passed on ends with it. The application's answer does not.
        leader.connections.at(-1)?.once('close', () => response.end('all of it'));
        late.write('late');
      });
    });
    expect(await (await request(eager.origin)).body.text()).toBe('mine, all of it');
  });

  test('knows messages without a body', async (context) => {
    const { follower } = await pair(context, (incoming, response) => {
      response.statusCode = Number(incoming.url?.slice(1));
      if (response.statusCode === 200) response.setHeader('content-length', '7');
      response.setHeader('etag', 'x');
      response.end();
    });
    const head = await request(`${follower.origin}/200`, { method: 'HEAD' });
    expect([head.statusCode, head.headers['content-length'], head.headers['etag']]).toEqual([
      200,
      '7',
      'x',
    ]);
    await head.body.dump();
    for (const status of [204, 304]) {
      const answer = await request(`${follower.origin}/${status}`);
      expect([answer.statusCode, await answer.body.text()]).toEqual([status, '']);
    }
  });

  test('answers a client that waits for leave to send its body', async (context) => {
    const { follower } = await pair(context, echo);
    const asked = requestHttp(follower.origin, {
      method: 'POST',
      headers: { expect: '100-continue', 'content-length': '4' },
    });
    asked.flushHeaders();
    await once(asked, 'continue');
    asked.end('text');
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    const came = JSON.parse(await text(answer)) as Echo;
    expect(came.body).toBe('text');
    expect(came.headers).not.toHaveProperty('expect');
  });

  test('looks again when the server that it asks does not lead, or cannot be reached', async (context) => {
    const { stage, follower, leader } = await pair(context, (_incoming, response) => {
      response.writeHead(503, { [electionHeader]: 'billing', [refusedHeader]: 'not-leading' });
      response.end();
    });
    // The observation has not told it yet.
    stage.fake.look = async () => ledBy(candidate('next', { addresses: [next.address] }), 3n);
    const next = await stage.listen(echo);
    expect((await request(follower.origin)).statusCode).toBe(503);
    let answer = await request(follower.origin);
    while (answer.statusCode !== 200) {
      await answer.body.dump();
      answer = await request(follower.origin);
    }
    expect(stage.fake.looks).toBe(1);
    expect(leader.connections.length).toBeGreaterThan(0);

    const { stage: other, follower: lost } = await pair(context, echo);
    await other.lead(await other.deadAddress(), 2n);
    other.fake.look = async () => ledBy(candidate('next', { addresses: [next.address] }), 3n);
    expect((await request(lost.origin)).statusCode).toBe(503);
    while ((await request(lost.origin)).statusCode !== 200);
    expect(other.fake.looks).toBe(1);
  });

  test('leaves a leader that stands still when it is replaced, where that does no harm', async (context) => {
    const answers: ServerResponse[] = [];
    const { stage, follower, leader } = await pair(context, (incoming, response) => {
      answers.push(response);
      incoming.resume();
    });
    const next = await stage.listen(echo);
    const asked = [
      request(`${follower.origin}/x`),
      request(`${follower.origin}/x`, { method: 'POST' }),
      request(`${follower.origin}/x`, { method: 'PUT', body: 'x' }),
    ];
    while (answers.length < 3) await once(leader.server, 'request');
    await stage.lead(next.address, 2n);
    const came = (await (await asked[0])?.body.json()) as Echo;
    expect([came.method, came.headers[tokenHeader]]).toEqual(['GET', '2']);
    for (const answer of answers) answer.end('late');
    for (const other of asked.slice(1)) expect(await (await other).body.text()).toBe('late');
  });

  test('asks each leader once, whatever is seen of it later', async (context) => {
    const { stage, follower, leader } = await pair(context, (incoming) => incoming.resume());
    const answers: ServerResponse[] = [];
    const next = await stage.listen((_incoming, response) => answers.push(response));
    const asked = request(follower.origin);
    await once(leader.server, 'request');
    await stage.lead(next.address, 2n);
    while (answers.length === 0) await once(next.server, 'request');
    // Its store is away, and comes back. The leader gives its record another address.
    for (let i = 0; i < 3; i++) {
      await stage.show(unknown);
      await stage.lead(next.address, 2n);
      await stage.lead(`localhost:${new URL(next.origin).port}`, 2n);
    }
    const last = await stage.listen(echo);
    await stage.lead(last.address, 3n);
    const came = (await (await asked).body.json()) as Echo;
    expect(came.headers[tokenHeader]).toBe('3');
    expect(answers, 'the one between').toHaveLength(1);
  });

  test('waits at the leader for its term, under whatever name it is known', async (context) => {
    const stage = new HttpStage(context);
    let term: FakeTerm | undefined;
    const only = stage.only({ term: () => term?.term, followers: 'proxy', waitTimeout: '20s' });
    const leader = await stage.listen((incoming, response) =>
      only(incoming, response, () => response.end('served')),
    );
    // Not the address that requests come to, as behind a translation of addresses.
    await stage.lead(`localhost:${new URL(leader.origin).port}`, 2n);
    const headers = {
      [proxiedHeader]: 'billing',
      [electionHeader]: 'billing',
      [tokenHeader]: '2',
    };
    const asked = request(leader.origin, { headers });
    await once(leader.server, 'request');
    await stage.show(unknown);
    term = new FakeTerm(2n);
    expect(await (await asked).body.text()).toBe('served');

    // For a later term than the sender has seen, there is nothing to wait for.
    term = undefined;
    await stage.lead('127.0.0.1:9', 3n);
    const behind = await request(leader.origin, { headers });
    expect([behind.statusCode, behind.headers[refusedHeader], behind.headers[tokenHeader]]).toEqual(
      [503, 'not-leading', '3'],
    );
  });

  test('passes nothing on when it is closed, not even requests under way', async (context) => {
    const stage = new HttpStage(context);
    let served = 0;
    const leader = await stage.listen((incoming, response) => {
      served += 1;
      if (incoming.url === '/first') response.end();
      // The second one dies on the connection that was kept, and is sent again on its own.
      else if (served === 2) incoming.socket.destroy();
      else if (incoming.url === '/half') response.write('half');
    });
    await stage.lead(leader.address, 1n);
    const only = stage.only({ followers: 'proxy' });
    const follower = await stage.listen((incoming, response) => only(incoming, response, () => {}));
    await (await request(`${follower.origin}/first`)).body.dump();
    const silent = request(`${follower.origin}/silent`);
    while (served < 3) await once(leader.server, 'request');
    const half = await request(`${follower.origin}/half`);
    only.close();
    expect((await silent).statusCode).toBe(502);
    await expect(text(half.body)).rejects.toThrow();
  });

  test('asks the leader for the certificate of its address, whatever Host the client wrote', async (context) => {
    const directory = temporaryDirectory();
    const { ca, server } = await createCertificates(directory.path);
    const stage = new HttpStage(context);
    const leader = createSecureServer(
      { key: server.key.text, cert: server.certificate.text },
      (incoming, response) => void echo(incoming, response),
    );
    stage.keep(() => directory.remove());
    stage.keep(() => {
      leader.closeAllConnections();
      leader.close();
    });
    leader.listen(0, '127.0.0.1');
    await once(leader, 'listening');
    const { port } = leader.address() as AddressInfo;
    const behind = async (tls: Record<string, unknown>) => {
      const only = stage.only({ followers: 'proxy', proxy: { tls } });
      return stage.listen((incoming, response) => only(incoming, response, () => {}));
    };
    const trusting = await behind({ ca: ca.text });
    const strangers = await behind({});
    for (const [name, token] of [
      ['127.0.0.1', 1n],
      ['localhost', 2n],
    ] as const) {
      await stage.lead(`https://${name}:${port}`, token);
      for (const host of ['billing.example', 'localhost']) {
        const answer = await request(trusting.origin, { headers: { host } });
        expect(answer.statusCode).toBe(200);
        const { headers } = (await answer.body.json()) as Echo;
        expect(headers).toMatchObject({ host, 'x-forwarded-proto': 'http' });
        const refused = await request(strangers.origin, { headers: { host } });
        expect([refused.statusCode, refused.headers[refusedHeader]]).toEqual([503, 'unreachable']);
        await refused.body.dump();
      }
    }
    // A name that the certificate has not.
    const wrong = await behind({ ca: ca.text, servername: 'billing.example' });
    const answer = await request(wrong.origin, { headers: { host: 'localhost' } });
    expect(answer.statusCode).toBe(503);
  });
});
