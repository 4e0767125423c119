/**
 * Express 5, Fastify 5 and plain node:http as leader and as followers. The test says
 * which one leads.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { request as requestHttp } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import express from 'express';
import type { onRequestHookHandler } from 'fastify';
import fastify from 'fastify';
import { request } from 'undici';
import type { TestContext } from 'vitest';
import { describe, expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import type { LeaderOnlyOptions } from '../src/following/http/index.ts';
import {
  electionHeader,
  leaderOnly,
  proxiedHeader,
  refusedHeader,
  requireToken,
  tokenHeader,
} from '../src/following/http/index.ts';
import type { Term } from '../src/index.ts';
import { createElection, MisuseError } from '../src/index.ts';
import { candidate, FakeElection, ledBy, vacant } from '../test/support/fake-election.ts';
import { serveBehind, servers } from './support/http-servers.ts';
import type { Echo, Handler } from './support/http-stage.ts';
import { echo, FakeTerm, HttpStage } from './support/http-stage.ts';

const kinds = Object.entries(servers);

async function problemIn(answer: { body: { json(): Promise<unknown> } }) {
  return (await answer.body.json()) as { type: string; status: number; token?: string };
}

const stageOf = (context: TestContext) => new HttpStage(context);

describe.for(kinds)('behind leaderOnly on %s', ([, serve]) => {
  test.concurrent('the leader serves, and says by which token', async (context) => {
    const stage = stageOf(context);
    const term = new FakeTerm(12n);
    const { origin } = await serve(stage, stage.only({ term: () => term.term }), echo);
    const answer = await request(`${origin}/a?b=c`, { method: 'POST', body: 'text' });
    expect(answer.headers).toMatchObject({ [electionHeader]: 'billing', [tokenHeader]: '12' });
    expect(answer.headers).not.toHaveProperty(refusedHeader);
    expect(await answer.body.json()).toMatchObject({ url: '/a?b=c', body: 'text' });
  });

  test.concurrent('a follower redirects to the leader, path and query kept', async (context) => {
    const stage = stageOf(context);
    await stage.lead('127.0.0.1:9', 12n);
    const { origin } = await serve(stage, stage.only({}), echo);
    for (const path of ['/a%0d%0ab/c?x=//evil&y=%2F', '//evil.example/x', '/mounted/x?y']) {
      const answer = await request(`${origin}${path}`, { method: 'POST', body: 'text' });
      expect(answer.statusCode).toBe(307);
      expect(answer.headers).toMatchObject({
        location: `http://127.0.0.1:9${path}`,
        'cache-control': 'no-store',
        'content-type': 'application/problem+json',
        [electionHeader]: 'billing',
        [tokenHeader]: '12',
        [refusedHeader]: 'not-leading',
      });
      const problem = { type: 'urn:incumbent:problem:not-leading', status: 307, token: '12' };
      expect(await problemIn(answer)).toMatchObject(problem);
    }
    const head = await request(`${origin}/x`, { method: 'HEAD' });
    expect([head.statusCode, await head.body.text()]).toEqual([307, '']);
  });

  test.concurrent('a follower passes requests on, and answers back', async (context) => {
    const stage = stageOf(context);
    const term = new FakeTerm(12n);
    const leader = await serve(stage, stage.only({ term: () => term.term }), echo);
    await stage.lead(leader.origin, 12n);
    const { origin } = await serve(stage, stage.only({ followers: 'proxy' }), echo);
    for (const body of ['text', Readable.from(['te', 'xt'])]) {
      const answer = await request(`${origin}/mounted/a%20?b=c`, { method: 'PUT', body });
      expect(answer.statusCode).toBe(200);
      expect(answer.headers).toMatchObject({ [electionHeader]: 'billing', [tokenHeader]: '12' });
      const came = (await answer.body.json()) as Echo;
      expect(came).toMatchObject({ method: 'PUT', url: '/mounted/a%20?b=c', body: 'text' });
      expect(came.headers).toMatchObject({
        [proxiedHeader]: 'billing',
        [tokenHeader]: '12',
        host: origin.slice('http://'.length),
        'x-forwarded-for': '127.0.0.1',
        'x-forwarded-host': origin.slice('http://'.length),
        'x-forwarded-proto': 'http',
      });
    }
    for (const method of ['GET', 'DELETE', 'POST'] as const) {
      const answer = await request(`${origin}/x`, { method });
      expect(await answer.body.json()).toMatchObject({ method, body: '' });
    }
  });

  test.concurrent('nobody leads: 503, after a wait', async (context) => {
    const stage = stageOf(context);
    await stage.show(vacant(12n));
    const only = stage.only({ waitTimeout: 10, retryAfter: '2.5s' });
    const { origin } = await serve(stage, only, echo);
    const answer = await request(`${origin}/`);
    expect(answer.statusCode).toBe(503);
    expect(answer.headers).toMatchObject({ 'retry-after': '3', [refusedHeader]: 'no-leader' });
    expect(await problemIn(answer)).toMatchObject({ type: 'urn:incumbent:problem:no-leader' });
    expect((await request(origin, { headers: { [tokenHeader]: 'x' } })).statusCode).toBe(400);
  });
});

describe.concurrent('leaderOnly', () => {
  const gate = async (
    context: TestContext,
    options: Partial<LeaderOnlyOptions>,
    handler = echo,
  ) => {
    const stage = stageOf(context);
    const only = stage.only(options);
    return { stage, only, ...(await serveBehind(stage, only, handler as Handler)) };
  };

  test('serves nobody by a term that is over, of which little is left, or of another', async (context) => {
    const term = new FakeTerm(12n);
    const options = { term: () => term.term, waitTimeout: 0, minRemaining: '9s' };
    const { origin, stage } = await gate(context, options);
    expect((await request(origin)).statusCode).toBe(200);
    term.remaining = () => 9000;
    expect((await request(origin)).statusCode).toBe(503);
    term.remaining = () => 9001;
    expect((await request(origin)).statusCode).toBe(200);
    term.leads = false;
    // The record may show it for a while.
    await stage.lead('127.0.0.1:9', 12n);
    const answer = await request(origin);
    expect([answer.statusCode, answer.headers[refusedHeader]]).toEqual([503, 'no-leader']);
    await stage.lead('127.0.0.1:9', 13n);
    expect((await request(origin)).statusCode).toBe(307);

    const other = new FakeTerm(1n, 'storage');
    const wrong = await gate(context, { term: () => other.term });
    const error = await request(wrong.origin);
    expect(error.statusCode).toBe(599);
    expect(await error.body.text()).toContain(MisuseError.name);
  });

  test('serves nobody before its work is ready, and then those that wait', async (context) => {
    const stage = stageOf(context);
    const term = new FakeTerm(5n);
    term.isReady = false;
    let served = 0;
    const handler: Handler = (_request, response) => {
      served += 1;
      response.end('mine');
    };
    const self = candidate('self', { addresses: ['127.0.0.1:9'] });
    const preparing = { ...ledBy(self, 5n), ready: false };
    await stage.show(preparing);
    const hasty = stage.only({ term: () => term.term, waitTimeout: 0 });
    const refused = await request((await serveBehind(stage, hasty, handler)).origin);
    expect([refused.statusCode, refused.headers[refusedHeader]]).toEqual([503, 'no-leader']);
    expect(await refused.body.json()).toMatchObject({
      detail: 'The leader of election "billing" is not ready yet; try again.',
    });
    // Another process waits, too, for a leader that it knows and that is not ready.
    const other = await request(
      (await serveBehind(stage, stage.only({ waitTimeout: 0 }), handler)).origin,
    );
    expect(other.statusCode).toBe(503);
    await other.body.dump();
    const patient = stage.only({ term: () => term.term, waitTimeout: '1m' });
    const waiting = request((await serveBehind(stage, patient, handler)).origin);
    await delay(1);
    expect(served).toBe(0);
    term.isReady = true;
    const answer = await waiting;
    expect([answer.statusCode, await answer.body.text(), served]).toEqual([200, 'mine', 1]);
  });

  test('a newer token than its own tells a leader that it is none', async (context) => {
    const term = new FakeTerm(12n);
    const options = { term: () => term.term, waitTimeout: '20s' };
    const { origin, stage } = await gate(context, options);
    const send = (token: string, election = 'billing') =>
      request(origin, { headers: { [electionHeader]: election, [tokenHeader]: token } });
    for (const [token, election] of [
      ['12', 'billing'],
      ['3', 'billing'],
      ['99', 'storage'],
    ] as const) {
      expect((await send(token, election)).statusCode).toBe(200);
    }
    const waiting = send('13');
    await stage.lead('127.0.0.1:9', 12n);
    await stage.lead('127.0.0.1:9', 13n);
    const answer = await waiting;
    expect([answer.statusCode, answer.headers[tokenHeader]]).toEqual([307, '13']);
    for (const [token, election] of [
      ['-1', 'billing'],
      ['', 'billing'],
      ['1'.repeat(40), 'billing'],
      ['12, 13', 'billing'],
      ['12, 13', 'billing, billing'],
      ['12', '%zz'],
    ] as const) {
      const garbage = await send(token, election);
      expect([garbage.statusCode, garbage.headers[refusedHeader]], token).toEqual([
        400,
        'bad-token',
      ]);
    }
    const follower = await gate(context, { waitTimeout: 0 });
    await follower.stage.lead('127.0.0.1:9', 12n);
    const ahead = await request(follower.origin, {
      headers: { [electionHeader]: 'billing', [tokenHeader]: '13' },
    });
    // Not to a leader of whom the client knows that it is none.
    expect([ahead.statusCode, ahead.headers[tokenHeader]]).toEqual([503, '13']);
    const impatient = await gate(context, { term: () => term.term, waitTimeout: 0 });
    const headers = { [electionHeader]: 'billing', [tokenHeader]: '14' };
    const refused = await request(impatient.origin, { headers });
    expect(refused.headers[refusedHeader]).toBe('newer-token');
  });

  test('holds requests until a candidate leads, be it this process', async (context) => {
    let term: FakeTerm | undefined;
    const { origin, stage, server } = await gate(context, {
      term: () => term?.term,
      waitTimeout: '20s',
    });
    const one = request(`${origin}/1`, { method: 'POST', body: 'held' });
    await once(server, 'request');
    term = new FakeTerm(1n);
    await stage.lead('127.0.0.1:9', 1n);
    expect((await (await one).body.json()) as Echo).toMatchObject({ body: 'held' });
    // Its term comes after the news of it, of which there is but one.
    term = undefined;
    const early = request(`${origin}/1`);
    await once(server, 'request');
    await stage.lead(new URL(origin).host, 2n);
    await delay(30);
    term = new FakeTerm(2n);
    expect((await early).statusCode).toBe(200);
    term = undefined;
    await stage.show(vacant(2n));
    const gone = requestHttp(`${origin}/2`);
    gone.on('error', () => {});
    gone.end();
    const [incoming] = (await once(server, 'request')) as [IncomingMessage];
    gone.destroy();
    await once(incoming.socket, 'close');
    const two = request(`${origin}/3`);
    await once(server, 'request');
    await stage.lead('127.0.0.1:9', 3n);
    expect((await two).statusCode).toBe(307);
  });

  test('refuses in the way that was asked for', async (context) => {
    for (const refuseWith of [421, 503] as const) {
      const { origin, stage } = await gate(context, { followers: 'refuse', refuseWith });
      await stage.lead('127.0.0.1:9', 1n);
      const answer = await request(origin);
      expect([answer.statusCode, answer.headers[refusedHeader]]).toEqual([
        refuseWith,
        'not-leading',
      ]);
      expect(answer.headers).not.toHaveProperty('location');
    }
  });

  test('redirects nowhere but to an address of the record, and never to itself', async (context) => {
    const { origin, address, stage } = await gate(context, { waitTimeout: 0 });
    const { port } = new URL(origin);
    const send = async (path: string, host = address) => {
      const socket = connect(Number(port), '127.0.0.1');
      socket.end(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`, 'latin1');
      const answer = await text(socket);
      return /^location: (.*)\r$/im.exec(answer)?.[1] ?? answer.split('\r\n')[0];
    };
    await stage.lead('leader.example:81', 1n);
    expect(await send('http://evil.example/x?y')).toBe('http://leader.example:81/x?y');
    expect(await send('http://evil.example')).toBe('http://leader.example:81/');
    expect(await send('/\\evil.example')).toBe('http://leader.example:81/\\evil.example');
    expect(await send('/%0d%0aSet-Cookie:x')).toBe('http://leader.example:81/%0d%0aSet-Cookie:x');
    expect(await send('*')).toContain('503');
    for (const [i, bad] of [
      'leader.example:81\r\nx: y',
      'javascript://leader.example:81',
      'http://a@leader.example:81',
      'leader.example',
      'leader.example:99999',
      'leader.example:81/path',
      '[::zz]:81',
      address,
      `http://${address}/`,
    ].entries()) {
      await stage.show(ledBy(candidate(`${i}`, { addresses: [bad] }), BigInt(i + 2)));
      expect(await send('/'), bad).toContain('503');
    }
    await stage.lead('leader.example:81', 20n);
    expect(await send('/', 'leader.example:81'), 'as a name of ours').toContain('503');
    await stage.lead('[2001:DB8::7]:81', 21n);
    expect(await send('/')).toBe('http://[2001:db8::7]:81/');
    await stage.lead('https://leader.example', 22n);
    expect(await send('/')).toBe('https://leader.example/');
  });

  test('of a term that ends before the answer no success is claimed', async (context) => {
    let term = new FakeTerm(1n);
    let answerWith: Handler = () => {};
    const handler: Handler = async (incoming, response) => {
      await text(incoming);
      term.end();
      answerWith(incoming, response);
    };
    const { origin, only } = await gate(context, { term: () => term.term }, handler as typeof echo);
    const kept = await gate(
      context,
      { term: () => term.term, lateAnswers: 'keep' },
      handler as typeof echo,
    );
    const ways: Handler[] = [
      (_incoming, response) => response.end('paid'),
      (_incoming, response) => {
        response.setHeader('set-cookie', 'paid=1');
        response.writeHead(201, { 'content-length': '4', etag: 'x' });
        response.write('pa');
        response.end('id');
      },
      (_incoming, response) => {
        response.statusCode = 302;
        response.setHeader('location', '/paid');
        response.flushHeaders();
        response.end();
      },
      (_incoming, response) => Readable.from(['pa', 'id']).pipe(response),
    ];
    for (answerWith of ways) {
      for (const method of ['GET', 'POST'] as const) {
        term = new FakeTerm(term.token + 1n);
        const answer = await request(origin, { method });
        const ours = await problemIn(answer);
        if (method === 'GET') {
          expect(answer.statusCode).toBe(503);
          expect(answer.headers[refusedHeader]).toBe('term-ended');
        } else {
          expect(answer.statusCode).toBe(500);
          expect(answer.headers).not.toHaveProperty(refusedHeader);
          expect(answer.headers[tokenHeader]).toBe(String(term.token));
          expect(ours.type).toBe('urn:incumbent:problem:outcome-unknown');
        }
        expect(answer.headers).not.toHaveProperty('set-cookie');
        expect(answer.headers).not.toHaveProperty('location');
        await only.drained();
        term = new FakeTerm(term.token + 1n);
        const asItIs = await request(kept.origin, { method });
        expect(asItIs.statusCode).toBeLessThan(400);
        await asItIs.body.dump();
      }
    }
    answerWith = (_incoming, response) => {
      response.writeHead(409);
      response.end('conflict');
    };
    term = new FakeTerm(term.token + 1n);
    const refused = await request(origin, { method: 'POST' });
    expect([refused.statusCode, await refused.body.text()]).toEqual([409, 'conflict']);
  });

  test('of frameworks that answer by themselves, too', async (context) => {
    const stage = stageOf(context);
    const term = new FakeTerm(1n);
    const only = stage.only({ term: () => term.term });
    const app = express();
    app.use(only);
    app.post('/', (_incoming, response) => {
      term.leads = false;
      response.cookie('paid', '1').json({ paid: true });
    });
    const { origin } = await stage.listen(app as unknown as Handler);
    const other = fastify({ forceCloseConnections: true });
    other.addHook('onRequest', only.fastify);
    other.post('/', async (_request, reply) => {
      term.leads = false;
      reply.header('set-cookie', 'paid=1');
      return { paid: true };
    });
    stage.keep(() => other.close());
    const fastifyOrigin = await other.listen({ port: 0, host: '127.0.0.1' });
    for (const where of [origin, fastifyOrigin]) {
      term.leads = true;
      const answer = await request(where, { method: 'POST' });
      expect(answer.statusCode).toBe(500);
      expect(answer.headers).not.toHaveProperty('set-cookie');
      expect((await problemIn(answer)).type).toBe('urn:incumbent:problem:outcome-unknown');
    }
  });

  test('of HTTP/2, too, and an answer that is cut off there does not look whole', async (context) => {
    const stage = stageOf(context);
    let term = new FakeTerm(1n);
    const only = stage.only({ term: () => term.term });
    const server = createHttp2Server((incoming, response) => {
      const raw = response as unknown as ServerResponse;
      only(incoming as unknown as IncomingMessage, raw, () => {
        if (incoming.url === '/stream') {
          response.write('first');
        } else {
          term.leads = false;
          response.end('paid');
        }
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    stage.keep(() => {
      client.destroy();
      server.close();
    });
    const late = client.request({ ':method': 'POST', ':path': '/' });
    const [headers] = await once(late, 'response');
    expect(headers[':status']).toBe(500);
    expect(JSON.parse(await text(late)).type).toBe('urn:incumbent:problem:outcome-unknown');
    term = new FakeTerm(2n);
    const stream = client.request({ ':path': '/stream' });
    stream.once('data', () => setImmediate(() => term.end()));
    await expect(text(stream)).rejects.toThrow();
  });

  test('says so when the leader publishes no address that it can send to', async (context) => {
    const { origin, stage } = await gate(context, { waitTimeout: 0 });
    const ask = async (addresses: string[], token: bigint) => {
      await stage.show(ledBy(candidate('vm-1', { addresses }), token));
      const answer = await request(origin);
      expect(answer.headers[refusedHeader]).toBe('not-leading');
      return { headers: answer.headers, ...((await answer.body.json()) as object) };
    };
    expect(await ask(['127.0.0.1:9/path', 'grpc://a:1'], 4n)).toMatchObject({
      status: 503,
      title: 'This process does not lead',
      token: '4',
      detail: expect.stringContaining(
        '"vm-1" leads and publishes no address that can be used: ' +
          'not "127.0.0.1:9/path", "grpc://a:1", but host:port',
      ),
    });
    expect(await ask([], 5n)).toMatchObject({
      detail: expect.stringContaining('give its candidate `addresses`'),
      headers: { 'retry-after': '1' },
    });
  });

  test('goes as a hook of Fastify, too, where its own form is forgotten', async (context) => {
    const stage = stageOf(context);
    let term: FakeTerm | undefined = new FakeTerm(3n);
    const only = stage.only({ term: () => term?.term });
    const required = requireToken({ election: 'storage' });
    const app = fastify({ forceCloseConnections: true });
    app.addHook('onRequest', only as unknown as onRequestHookHandler);
    app.get('/', async () => 'served');
    app.get(
      '/storage',
      { onRequest: required as unknown as onRequestHookHandler },
      async () => 'stored',
    );
    stage.keep(() => app.close());
    const origin = await app.listen({ port: 0, host: '127.0.0.1' });
    const served = await request(origin);
    expect([served.headers[tokenHeader], await served.body.text()]).toEqual(['3', 'served']);
    expect((await request(`${origin}/storage`)).statusCode).toBe(428);
    term = undefined;
    await stage.lead('127.0.0.1:9', 4n);
    expect((await request(origin)).headers).toMatchObject({ location: 'http://127.0.0.1:9/' });
  });

  test('an error of the user is told to the framework, and to nobody else', async (context) => {
    const fail = () => {
      throw new Error('no idea');
    };
    const { origin } = await gate(context, { term: fail });
    expect(await (await request(origin)).body.text()).toContain('no idea');
    const other = await gate(context, { addressOf: fail, waitTimeout: '20s' });
    const asked = request(other.origin);
    await once(other.server, 'request');
    await other.stage.lead('127.0.0.1:9', 1n);
    expect(await (await asked).body.text()).toContain('no idea');
    expect(other.stage.fake.begun, 'whoever else follows goes on').toBe(1);
  });

  test('an error of a handler is not answered by running the handler again', async (context) => {
    const stage = stageOf(context);
    let term: FakeTerm | undefined = new FakeTerm(1n);
    const only = stage.only({ term: () => term?.term, waitTimeout: '20s' });
    const required = requireToken({ election: 'billing' });
    const calls: unknown[] = [];
    const fail = (error?: unknown) => {
      calls.push(error);
      throw new Error('of the handler');
    };
    const uncaught: unknown[] = [];
    const { origin, server } = await stage.listen((incoming, response) => {
      try {
        if (incoming.url === '/required') required(incoming, response, fail);
        else only(incoming, response, fail);
      } catch (error) {
        uncaught.push(error);
        response.writeHead(500).end();
      }
    });
    expect((await request(origin, { method: 'POST' })).statusCode).toBe(500);
    expect([calls, uncaught.length]).toEqual([[undefined], 1]);
    // From a promise it ends where an error of the handler itself would have.
    const others = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    context.onTestFinished(() => {
      for (const listener of others) process.on('uncaughtException', listener);
    });
    term = undefined;
    const waiting = request(origin, { method: 'POST' });
    waiting.catch(() => {});
    await once(server, 'request');
    term = new FakeTerm(2n);
    const thrown = once(process, 'uncaughtException');
    await stage.lead('127.0.0.1:9', 2n);
    expect(String(await thrown)).toContain('of the handler');
    const again = once(process, 'uncaughtException');
    const headers = { [electionHeader]: 'billing', [tokenHeader]: '1' };
    request(`${origin}/required`, { headers }).catch(() => {});
    expect(String(await again)).toContain('of the handler');
    for (const listener of others) process.on('uncaughtException', listener);
    expect(calls).toEqual([undefined, undefined, undefined]);
  });

  test('a request whose client has gone before is neither waited for nor tracked', async (context) => {
    const stage = stageOf(context);
    let term: FakeTerm | undefined = new FakeTerm(1n);
    const only = stage.only({ term: () => term?.term, waitTimeout: '20s' });
    let goOn = () => {};
    const seen: string[] = [];
    const { origin, server } = await stage.listen((raw, response) => {
      const reply = { raw: response, hijack: () => seen.push('hijacked') };
      goOn = () => only.fastify({ raw }, reply, () => seen.push('served'));
    });
    for (const path of ['/leading', '/following']) {
      const asked = requestHttp(origin + path);
      asked.on('error', () => {});
      asked.end();
      const [incoming] = (await once(server, 'request')) as [IncomingMessage];
      asked.destroy();
      await once(incoming.socket, 'close');
      goOn();
      expect(await only.drained()).toBe(true);
      term = undefined;
    }
    expect(seen).toEqual(['served', 'hijacked']);
  });

  test('streams do not keep the work from ending: they are cut when draining takes too long', async (context) => {
    const stage = stageOf(context);
    const election = createElection({ name: 'billing', backend: memory(), lease: '20s' });
    stage.keep(() => election.close());
    let leading: Term | undefined;
    const only = leaderOnly({ election, term: () => leading });
    stage.keep(() => only.close());
    const { origin } = await serveBehind(stage, only, (_incoming, response) => {
      response.write('data: first\n\n');
    });
    const outcomes: boolean[] = [];
    const stop = new AbortController();
    const led = election.lead(
      async (term) => {
        leading = term;
        stage.fake.show(vacant());
        await once(term.signal, 'abort');
        leading = undefined;
        outcomes.push(await only.drained({ timeout: 50 }));
      },
      { signal: stop.signal },
    );
    led.catch(() => {});
    while (leading === undefined) await new Promise((resolve) => setImmediate(resolve));
    const { body } = await request(origin);
    await once(body, 'data');
    const cut = text(body);
    cut.catch(() => {});
    stop.abort(new Error('enough'));
    await expect(led).rejects.toThrow('enough');
    expect(outcomes).toEqual([false]);
    await expect(cut).rejects.toThrow();
    const { history } = await election.inspect();
    expect(history.at(-1)?.why).not.toBe('unclean');
  });

  test('streams of events are cut as soon as it drains, answers that end by themselves are not', async (context) => {
    const term = new FakeTerm(1n);
    let leading: FakeTerm | undefined = term;
    const open = new Map<string | undefined, ServerResponse>();
    const handler: Handler = ({ url }, response) => {
      open.set(url, response);
      const type = url === '/download' ? 'text/plain' : 'Text/Event-Stream; charset=utf-8';
      response.writeHead(200, { 'content-type': type });
      response.write('first, ');
    };
    const { origin, only } = await gate(
      context,
      { term: () => leading?.term },
      handler as typeof echo,
    );
    const begin = async (path: string) => {
      const { body } = await request(origin + path);
      return { all: text(body).then(null, String) };
    };
    const ended = await begin('/ended');
    const events = await begin('/events');
    const download = await begin('/download');
    term.signal.addEventListener('abort', () => open.get('/ended')?.end('last'));
    term.stop();
    leading = undefined;
    const drained = only.drained({ timeout: '20s' });
    expect(await events.all).toMatch(/Error/);
    expect(await ended.all, 'by the application').toBe('first, last');
    open.get('/download')?.end('last');
    expect(await download.all).toBe('first, last');
    expect(await drained).toBe(true);

    leading = new FakeTerm(2n);
    const kept = await gate(
      context,
      { term: () => leading?.term, lateAnswers: 'keep' },
      handler as typeof echo,
    );
    const { body } = await request(`${kept.origin}/events`);
    await once(body, 'data');
    expect(await kept.only.drained({ timeout: 10 })).toBe(false);
    open.get('/events')?.end('last');
    expect(await text(body)).toBe('last');
  });

  test('stands several times before one handler, for one election or more', async (context) => {
    const stage = stageOf(context);
    const storage = new FakeElection('storage');
    let terms: FakeTerm[] = [];
    const one = stage.only({ term: () => terms[0]?.term });
    const same = stage.only({ term: () => terms[0]?.term });
    const other = stage.only({
      election: storage.election,
      term: () => terms[1]?.term,
      waitTimeout: 0,
    });
    let lost: FakeTerm[] = [];
    const handler: Handler = (_incoming, response) => {
      for (const term of lost) term.leads = false;
      response.end('done');
    };
    const { origin } = await stage.listen((incoming, response) =>
      one(incoming, response, () =>
        same(incoming, response, () =>
          other(incoming, response, () => void handler(incoming, response)),
        ),
      ),
    );
    const send = async (method: 'GET' | 'POST', losing: readonly number[]) => {
      terms = [new FakeTerm(12n), new FakeTerm(7n, 'storage')];
      lost = losing.map((i) => terms[i] as FakeTerm);
      const { statusCode, headers, body } = await request(origin, { method });
      const drained = [one, same, other].map((only) => only.drained());
      expect(await Promise.all(drained)).toEqual([true, true, true]);
      const words = await body.text();
      const why = words === 'done' ? words : (JSON.parse(words) as { type: string }).type;
      return [statusCode, headers[electionHeader], headers[tokenHeader], why.split(':').at(-1)];
    };
    expect(await send('POST', [])).toEqual([200, 'billing, storage', '12, 7', 'done']);
    expect(await send('POST', [0])).toEqual([500, 'billing', '12', 'outcome-unknown']);
    expect(await send('POST', [1])).toEqual([500, 'storage', '7', 'outcome-unknown']);
    expect(await send('GET', [0])).toEqual([503, 'billing', undefined, 'term-ended']);
    expect(await send('GET', [1])).toEqual([503, 'storage', undefined, 'term-ended']);
    expect(await send('GET', [0, 1])).toEqual([503, 'billing', undefined, 'term-ended']);
    terms = [new FakeTerm(13n)];
    const refused = await request(origin, { method: 'POST' });
    expect([refused.statusCode, refused.headers[electionHeader]]).toEqual([503, 'storage']);
    expect(refused.headers[refusedHeader]).toBe('no-leader');
    await refused.body.dump();
  });

  test('streams are cut when the belief is over, whatever the work does', async (context) => {
    const term = new FakeTerm(1n);
    let leftMs = 30;
    term.remaining = () => {
      const left = leftMs;
      leftMs -= 10;
      if (left <= 0) term.leads = false;
      return left;
    };
    const { origin, only } = await gate(context, { term: () => term.term }, (async (
      _incoming,
      response,
    ) => {
      response.write('first');
    }) as typeof echo);
    const { body } = await request(origin);
    await once(body, 'data');
    const cut = text(body);
    cut.catch(() => {});
    const again = await request(origin);
    await once(again.body, 'data');
    const drained = text(again.body);
    drained.catch(() => {});
    term.stop();
    await expect(cut).rejects.toThrow();
    await expect(drained).rejects.toThrow();
    expect(await only.drained()).toBe(true);
    const long = new FakeTerm(2n);
    const other = await gate(context, { term: () => long.term }, (async (_incoming, response) => {
      response.write('first');
    }) as typeof echo);
    const stream = await request(other.origin);
    expect(await other.only.drained({ timeout: 10 })).toBe(false);
    await expect(text(stream.body)).rejects.toThrow();
    expect(await other.only.drained()).toBe(true);
    const abort = AbortSignal.abort(new Error('no time'));
    await expect(only.drained({ signal: abort })).rejects.toThrow('no time');
    await expect(only.drained({ timeout: -1 })).rejects.toThrow('timeout must not be negative');
  });

  test('an answer that is still being sent is cut off when the term is over', async (context) => {
    let term = new FakeTerm(1n);
    let goOn = () => {};
    const { origin, only } = await gate(context, { term: () => term.term }, (async (
      _incoming,
      response,
    ) => {
      response.write('first');
      goOn = () => response.write('second');
    }) as typeof echo);
    for (const end of [
      () => term.end(),
      () => {
        term.leads = false;
        goOn();
      },
    ]) {
      term = new FakeTerm(term.token + 1n);
      const { body } = await request(origin);
      body.once('data', () => setImmediate(end));
      await expect(text(body)).rejects.toThrow();
      await only.drained();
    }
  });

  test('waits for requests that are being served', async (context) => {
    const term = new FakeTerm(1n);
    let finish = () => {};
    const { origin, only, server } = await gate(context, { term: () => term.term }, (async (
      _incoming,
      response,
    ) => {
      finish = () => response.end('done');
    }) as typeof echo);
    await only.drained();
    const asked = request(origin);
    await once(server, 'request');
    const order: string[] = [];
    const drained = only.drained().then(() => order.push('drained'));
    order.push('finish');
    finish();
    await drained;
    expect(order).toEqual(['finish', 'drained']);
    expect(await (await asked).body.text()).toBe('done');
  });

  test('knows nobody when it is closed', async (context) => {
    const { origin, stage, only } = await gate(context, { waitTimeout: '20s' });
    await stage.lead('127.0.0.1:9', 1n);
    expect((await request(origin)).statusCode).toBe(307);
    only.close();
    only.close();
    const answer = await request(origin);
    expect([answer.statusCode, answer.headers[refusedHeader]]).toEqual([503, 'no-leader']);
    expect(stage.fake.open).toBe(0);
  });
});
