/** undici 7 and this Node's own fetch against real servers. The test says which one leads. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import { buildConnector, request } from 'undici';
import type { TestContext } from 'vitest';
import { describe, expect, test } from 'vitest';
import {
  electionHeader,
  NoLeaderError,
  refusedHeader,
  tokenHeader,
  toLeader,
} from '../src/following/http/index.ts';
import { ClosedError, InvalidOptionError } from '../src/index.ts';
import { candidate, ledBy, unknown, vacant } from '../test/support/fake-election.ts';
import type { Echo } from './support/http-stage.ts';
import { echo, FakeTerm, HttpStage } from './support/http-stage.ts';

const stageOf = (context: TestContext) => new HttpStage(context);

/** Node's own, whose type of a dispatcher is not undici's. */
const fetchBy = (url: string, options: object): Promise<Response> =>
  fetch(url, options as RequestInit);

/** As a follower's `leaderOnly`. */
function refuse(response: ServerResponse, status: number, headers: Record<string, string> = {}) {
  const ours = { [electionHeader]: 'billing', [refusedHeader]: 'not-leading' };
  response.writeHead(status, { ...ours, ...headers });
  response.end('not me');
}

describe.concurrent('requests to the leader', () => {
  test('go to its address with the token, path, query and body kept', async (context) => {
    const stage = stageOf(context);
    const leader = await stage.listen(echo);
    await stage.lead(leader.address, 12n);
    const dispatcher = stage.agent();
    const url = 'http://billing.example/a%20b/c?x=1&y=%2F';
    const bodies = ['text', Readable.from(['te', 'xt']), Buffer.from('text')];
    for (const body of bodies) {
      const answer = await request(url, { dispatcher, method: 'POST', body });
      const came = (await answer.body.json()) as Echo;
      expect(came).toMatchObject({ method: 'POST', url: '/a%20b/c?x=1&y=%2F', body: 'text' });
      expect(came.headers).toMatchObject({
        host: leader.address,
        [electionHeader]: 'billing',
        [tokenHeader]: '12',
      });
    }
    const answer = await fetchBy(url, { dispatcher, method: 'POST', body: 'text' });
    expect(await answer.json()).toMatchObject({ url: '/a%20b/c?x=1&y=%2F', body: 'text' });
  });

  test('wait until a candidate leads, and give up in time', async (context) => {
    const stage = stageOf(context);
    const leader = await stage.listen(echo);
    await stage.show(vacant(3n));
    const dispatcher = stage.agent();
    const waiting = request('http://billing/', { dispatcher });
    const fetching = fetchBy('http://billing/', { dispatcher });
    await stage.lead(leader.address, 4n);
    expect((await waiting).statusCode).toBe(200);
    expect((await fetching).status).toBe(200);

    await stage.show(vacant(4n));
    const impatient = stage.agent({ waitTimeout: 0 });
    await expect(request('http://billing/', { dispatcher: impatient })).rejects.toThrow(
      NoLeaderError,
    );
    const failed = fetchBy('http://billing/', { dispatcher: stage.agent({ waitTimeout: 20 }) });
    await expect(failed).rejects.toMatchObject({ cause: { code: 'NO_LEADER', retryable: true } });
  });

  test('are aborted by their own signal while they wait', async (context) => {
    const stage = stageOf(context);
    const dispatcher = stage.agent();
    const abort = new AbortController();
    const body = Readable.from(['x']);
    const { signal } = abort;
    const asked = request('http://billing/', { dispatcher, method: 'POST', body, signal });
    const fetched = fetchBy('http://billing/', { dispatcher, signal });
    await delay(1);
    abort.abort(new Error('changed my mind'));
    await expect(asked).rejects.toThrow('changed my mind');
    await expect(fetched).rejects.toThrow('changed my mind');
    expect(body.destroyed).toBe(true);
    await expect(request('http://billing/', { dispatcher, signal })).rejects.toThrow('changed');
    await expect(fetchBy('http://billing/', { dispatcher, signal })).rejects.toThrow('changed');
  });

  test('are aborted by their own signal while they are answered', async (context) => {
    const stage = stageOf(context);
    const closed: Promise<unknown>[] = [];
    const leader = await stage.listen((incoming, response) => {
      closed.push(once(response, 'close'));
      if (incoming.url === '/head') response.write('the first half');
    });
    await stage.lead(leader.address, 1n);
    const dispatcher = stage.agent();
    for (const path of ['/head', '/nothing']) {
      const abort = new AbortController();
      const { signal } = abort;
      const asked = request(`http://billing${path}`, { dispatcher, signal }).then(({ body }) =>
        body.text(),
      );
      await once(leader.server, 'request');
      abort.abort(new Error('enough'));
      await expect(asked).rejects.toThrow('enough');
    }
    await Promise.all(closed);
    expect(closed).toHaveLength(2);
  });

  test.for([307, 421, 503])(
    'go on to the next leader after a refusal with %i',
    async (status, context) => {
      const stage = stageOf(context);
      const next = await stage.listen(echo);
      const before = await stage.listen(async (_incoming, response) => {
        refuse(response, status, { location: 'http://127.0.0.1:1/elsewhere' });
        await stage.lead(next.address, 2n);
      });
      await stage.lead(before.address, 1n);
      const dispatcher = stage.agent();
      const post = { dispatcher, method: 'POST' as const, body: 'pay' };
      const answer = (await (await request('http://billing/x', post)).body.json()) as Echo;
      expect(answer).toMatchObject({ url: '/x', body: 'pay' });
      expect(answer.headers[tokenHeader]).toBe('2');
    },
  );

  test('are repeated with what fetch and streams have sent, up to the limit', async (context) => {
    const stage = stageOf(context);
    const next = await stage.listen(echo);
    const before = await stage.listen(async (incoming, response) => {
      await text(incoming);
      refuse(response, 503);
      await stage.lead(next.address, 2n);
    });
    const dispatcher = stage.agent({ replayLimit: 1000 });
    const small = 'x'.repeat(999);
    await stage.lead(before.address, 1n);
    const fetched = await fetchBy('http://billing/', { dispatcher, method: 'POST', body: small });
    expect(await fetched.json()).toMatchObject({ body: small });
    await stage.lead(before.address, 1n);
    const pieces = Readable.from(
      [small.slice(0, 500), small.slice(500, 900), small.slice(900)].map(Buffer.from),
    );
    const asked = await request('http://billing/', { dispatcher, method: 'POST', body: pieces });
    expect(await asked.body.json()).toMatchObject({ body: small });

    await stage.lead(before.address, 1n);
    const large = Readable.from([Buffer.alloc(600, 'x'), Buffer.alloc(600, 'y')]);
    const answer = await request('http://billing/', { dispatcher, method: 'POST', body: large });
    expect(answer.statusCode, 'the refusal itself').toBe(503);
    await answer.body.dump();
  });

  test('are refused in the middle of their body, and begin anew', async (context) => {
    const stage = stageOf(context);
    const next = await stage.listen(echo);
    const before = await stage.listen(async (_incoming, response) => {
      refuse(response, 503);
      await stage.lead(next.address, 2n);
    });
    await stage.lead(before.address, 1n);
    let goOn = () => {};
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    next.server.once('request', () => goOn());
    async function* pieces() {
      yield Buffer.from('first ');
      await gate;
      yield Buffer.from('second');
    }
    const dispatcher = stage.agent();
    const body = Readable.from(pieces());
    const answer = await request('http://billing/', { dispatcher, method: 'POST', body });
    expect(await answer.body.json()).toMatchObject({ body: 'first second' });
  });

  test('that may have been applied are not repeated, unless their method bears it', async (context) => {
    const stage = stageOf(context);
    const seen: string[] = [];
    const next = await stage.listen((incoming, response) => {
      seen.push(`${incoming.method} at next`);
      response.end('next');
    });
    const before = await stage.listen(async (incoming) => {
      seen.push(`${incoming.method}`);
      // It is dead as soon as it has the request.
      incoming.socket.destroy();
      await stage.lead(next.address, 2n);
    });
    const dispatcher = stage.agent();
    const send = async (method: 'GET' | 'POST' | 'PUT' | 'PATCH', more = {}) => {
      seen.length = 0;
      await stage.lead(before.address, 1n);
      const answer = await request('http://billing/', { dispatcher, method, ...more }).catch(
        (error: Error) => error,
      );
      return answer instanceof Error ? answer : answer.body.text();
    };
    expect(await send('GET')).toBe('next');
    expect(await send('PUT', { body: 'x' })).toBe('next');
    for (const method of ['POST', 'PATCH'] as const) {
      expect(await send(method, { body: 'x' })).toMatchObject({ code: 'UND_ERR_SOCKET' });
      expect(seen).toEqual([method]);
    }
    expect(await send('POST', { body: 'x', idempotent: true })).toBe('next');
    expect(await send('GET', { idempotent: false })).toBeInstanceOf(Error);
    await stage.lead(before.address, 1n);
    const fetched = fetchBy('http://billing/', { dispatcher, method: 'POST', body: 'x' });
    await expect(fetched).rejects.toThrow();
  });

  test('that a handler has seen are not repeated where they must not be, even when it was late', async (context) => {
    const stage = stageOf(context);
    const seen: string[] = [];
    const next = await stage.listen((_incoming, response) => {
      seen.push('next');
      response.end('next');
    });
    let term = new FakeTerm(0n);
    const only = stage.only({ term: () => term.term });
    const answer = async (response: ServerResponse) => {
      seen.push('late');
      await stage.lead(next.address, term.token + 1n);
      term.end();
      response.end('done');
    };
    const late = await stage.listen((incoming, response) =>
      only(incoming, response, () => void answer(response)),
    );
    const dispatcher = stage.agent();
    const send = async (more: { idempotent?: boolean }) => {
      seen.length = 0;
      term = new FakeTerm(term.token + 2n);
      await stage.lead(late.address, term.token);
      return request('http://billing/', { dispatcher, ...more });
    };
    expect(await (await send({})).body.text()).toBe('next');
    expect(seen).toEqual(['late', 'next']);
    const { statusCode, headers, body } = await send({ idempotent: false });
    await body.dump();
    expect([statusCode, headers[refusedHeader], seen]).toEqual([503, 'term-ended', ['late']]);
  });

  test('are repeated by any method where no connection could be made', async (context) => {
    const stage = stageOf(context);
    const next = await stage.listen(echo);
    await stage.lead(await stage.deadAddress(), 1n);
    const dispatcher = stage.agent();
    const post = { dispatcher, method: 'POST' as const };
    const waiting = [
      request('http://billing/', { ...post, body: 'pay' }).then(({ body }) => body.json()),
      request('http://billing/', { ...post, body: Readable.from(['pay']) }).then(({ body }) =>
        body.json(),
      ),
      fetchBy('http://billing/', { ...post, body: 'pay' }).then((answer) => answer.json()),
    ];
    // Long enough for the connection to have failed at least once. Otherwise this shows less,
    // but nothing wrong.
    await delay(50);
    await stage.lead(next.address, 2n);
    for (const answer of await Promise.all(waiting)) expect(answer).toMatchObject({ body: 'pay' });
  });

  test('leave a leader that hangs when it is replaced, where that does no harm', async (context) => {
    const stage = stageOf(context);
    const next = await stage.listen(echo);
    const hung: string[] = [];
    const answers: ServerResponse[] = [];
    const before = await stage.listen((incoming, response) => {
      hung.push(incoming.method ?? '');
      answers.push(response);
    });
    await stage.lead(before.address, 1n);
    const dispatcher = stage.agent();
    const get = request('http://billing/', { dispatcher });
    const post = request('http://billing/', { dispatcher, method: 'POST', body: 'pay' });
    while (hung.length < 2) await once(before.server, 'request');
    await stage.lead(next.address, 2n);
    expect((await (await get).body.json()) as Echo).toMatchObject({ method: 'GET' });
    for (const answer of answers) answer.end('late');
    expect(await (await post).body.text(), 'only the one that was asked may answer').toBe('late');
  });

  test('are not sent by a connection that comes about when they have gone elsewhere', async (context) => {
    const stage = stageOf(context);
    const seen: string[] = [];
    const before = await stage.listen((incoming, response) => {
      seen.push(incoming.url ?? '');
      response.end('too late');
    });
    const next = await stage.listen(echo);
    const held: (() => void)[] = [];
    const connector = buildConnector({});
    let arrive = () => {};
    const slowly: buildConnector.connector = (options, callback) => {
      const go = () => connector(options, callback);
      if (options.port !== new URL(before.origin).port || held.length === 2) go();
      else if (held.push(go) === 2) arrive();
    };
    await stage.lead(before.address, 1n);
    const dispatcher = stage.agent({}, { connect: slowly });
    const asked = [
      request('http://billing/text', { dispatcher, method: 'POST', body: 'pay' }),
      request('http://billing/stream', {
        dispatcher,
        method: 'POST',
        body: Readable.from(['pay']),
      }),
    ];
    await new Promise<void>((resolve) => {
      arrive = resolve;
      if (held.length === 2) resolve();
    });
    await stage.lead(next.address, 2n);
    for (const answer of asked) {
      expect(await (await answer).body.json()).toMatchObject({ body: 'pay' });
    }
    // Now the first leader can be reached. The connections serve the next requests to it.
    for (const go of held) go();
    expect((await request(before.origin)).statusCode).toBe(200);
    await stage.lead(before.address, 3n);
    expect(await (await request('http://billing/new', { dispatcher })).body.text()).toBe(
      'too late',
    );
    expect(seen).toEqual(['/', '/new']);
  });

  test('send a body to its end though the answer has begun', async (context) => {
    const stage = stageOf(context);
    const leader = await stage.listen((incoming, response) => {
      response.flushHeaders();
      incoming.pipe(response);
    });
    await stage.lead(leader.address, 1n);
    const body = new PassThrough();
    body.write('one');
    const dispatcher = stage.agent();
    const answer = await request('http://billing/', { dispatcher, method: 'POST', body });
    const pieces: string[] = [];
    for await (const piece of answer.body) {
      pieces.push(String(piece));
      if (pieces.length === 1) body.write('two');
      if (pieces.length === 2) body.end('three');
    }
    expect(pieces.join('')).toBe('onetwothree');
  });

  test('let go of a body that nobody wants to the end', async (context) => {
    const stage = stageOf(context);
    const leader = await stage.listen((_incoming, response) => {
      response.writeHead(413);
      response.end('too large');
    });
    await stage.lead(leader.address, 1n);
    let letGo = () => {};
    const isGone = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    async function* endless() {
      try {
        for (;;) {
          yield Buffer.alloc(1000);
          await setImmediate();
        }
      } finally {
        letGo();
      }
    }
    const dispatcher = stage.agent();
    const body = endless();
    const answer = await request('http://billing/', {
      dispatcher,
      method: 'POST',
      body: body as unknown as Readable,
    });
    expect([answer.statusCode, await answer.body.text()]).toEqual([413, 'too large']);
    await isGone;
  });

  test('fail, and are not repeated, when the answer breaks off', async (context) => {
    const stage = stageOf(context);
    let served = 0;
    const leader = await stage.listen((_incoming, response) => {
      served += 1;
      response.writeHead(200, { 'content-length': '100' });
      response.write('half', () => response.destroy());
    });
    await stage.lead(leader.address, 1n);
    const dispatcher = stage.agent();
    const answer = await request('http://billing/', { dispatcher });
    await expect(answer.body.text()).rejects.toThrow();
    const fetched = await fetchBy('http://billing/', { dispatcher });
    await expect(fetched.text()).rejects.toThrow();
    expect(served).toBe(2);
  });

  test('end after their attempts, with the last answer or error', async (context) => {
    const stage = stageOf(context);
    let served = 0;
    const leader = await stage.listen((_incoming, response) => {
      served += 1;
      refuse(response, 503);
    });
    await stage.lead(leader.address, 1n);
    const answer = await request('http://billing/', { dispatcher: stage.agent({ attempts: 3 }) });
    expect(answer.statusCode).toBe(503);
    expect(served).toBe(3);
    const bounded = stage.agent({ waitTimeout: 10 });
    const error = await request('http://billing/', { dispatcher: bounded }).catch((e: Error) => e);
    expect(error).toBeInstanceOf(NoLeaderError);
    expect((error as Error).message).toContain('answered 503 (not-leading)');
    await stage.lead(await stage.deadAddress(), 2n);
    const dead = request('http://billing/', { dispatcher: stage.agent({ attempts: 2 }) });
    await expect(dead).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('follow a redirect to a newer leader than is known, and no other', async (context) => {
    const stage = stageOf(context);
    const next = await stage.listen(echo);
    let location = '';
    let token = '2';
    const before = await stage.listen((_incoming, response) => {
      refuse(response, 307, { location, [tokenHeader]: token });
    });
    await stage.lead(before.address, 1n);
    const dispatcher = stage.agent({ attempts: 2 });
    location = `${next.origin}/somewhere/else?really`;
    const answer = await request('http://billing/x?y', { dispatcher });
    const came = (await answer.body.json()) as Echo;
    // The host is the leader's, and the path is ours.
    expect(came).toMatchObject({ url: '/x?y' });
    expect(came.headers[tokenHeader]).toBe('2');
    for (const [where, told] of [
      [location, '1'],
      ['ftp://example.org/', '2'],
      ['//example.org/', '2'],
      [location, '2, 3'],
    ] as const) {
      location = where;
      token = told;
      const refused = await request('http://billing/x', { dispatcher });
      expect(refused.statusCode, where).toBe(307);
      await refused.body.dump();
    }
  });

  test('pass on answers of the application, whatever their status', async (context) => {
    const stage = stageOf(context);
    let status = 503;
    const leader = await stage.listen((_incoming, response) => {
      // Of another election.
      response.setHeader(electionHeader, 'storage');
      response.setHeader(refusedHeader, 'not-leading');
      response.writeHead(status, { location: '/there' });
      response.end('mine');
    });
    await stage.lead(leader.address, 1n);
    const dispatcher = stage.agent();
    for (status of [503, 421, 307, 404]) {
      const answer = await request('http://billing/', { dispatcher });
      expect([answer.statusCode, await answer.body.text()]).toEqual([status, 'mine']);
    }
    const bad = await stage.listen((_incoming, response) => {
      refuse(response, 400, { [refusedHeader]: 'bad-token' });
      served += 1;
    });
    let served = 0;
    await stage.lead(bad.address, 2n);
    expect((await request('http://billing/', { dispatcher })).statusCode).toBe(400);
    expect(served, 'it would be so again').toBe(1);
  });

  test('go on to the leader that led last while the store cannot be read', async (context) => {
    const stage = stageOf(context);
    const leader = await stage.listen(echo);
    await stage.lead(leader.address, 1n);
    const dispatcher = stage.agent();
    await (await request('http://billing/', { dispatcher })).body.dump();
    await stage.show(unknown);
    expect((await request('http://billing/', { dispatcher })).statusCode).toBe(200);
  });

  test('say when it is the store that tells of no leader', async (context) => {
    const stage = stageOf(context);
    const dispatcher = stage.agent({ waitTimeout: 0 });
    const send = () => request('http://billing/', { dispatcher });
    await expect(send()).rejects.toThrow('nothing was read in 0 ms');
    await stage.show(unknown);
    await expect(send()).rejects.toMatchObject({
      code: 'NO_LEADER',
      message: expect.stringContaining('who leads cannot be read (no route)'),
      cause: unknown.error,
    });
    await stage.lead(await stage.deadAddress(), 1n);
    await stage.show(unknown);
    await expect(send()).rejects.toMatchObject({
      message: expect.stringContaining('who else leads cannot be read (no route)'),
      cause: { code: 'ECONNREFUSED' },
    });
    await stage.show(vacant(1n));
    await expect(send()).rejects.toThrow('nobody has led for 0 ms');
  });

  test('use the address that is meant for them', async (context) => {
    const stage = stageOf(context);
    const leader = await stage.listen(echo);
    const led = (addresses: string[]) => stage.show(ledBy(candidate('l', { addresses }), 1n));
    const dispatcher = stage.agent({ waitTimeout: 50 });
    for (const addresses of [
      ['grpc://127.0.0.1:1', '127.0.0.1:1', leader.origin],
      ['not an address', leader.address],
      [`http://user:password@127.0.0.1:1`, `http://127.0.0.1:1/path`, `${leader.origin}/`],
    ]) {
      await led(addresses);
      expect((await request('http://billing/', { dispatcher })).statusCode).toBe(200);
    }
    await led([]);
    await expect(request('http://billing/', { dispatcher })).rejects.toThrow(
      'publishes no address',
    );
    await led(['grpc://127.0.0.1:1', '127.0.0.1:1/path']);
    await expect(request('http://billing/', { dispatcher })).rejects.toThrow(
      'not "grpc://127.0.0.1:1", "127.0.0.1:1/path", but host:port',
    );
    await led([leader.origin]);
    await expect(request('https://billing/', { dispatcher })).rejects.toThrow('with https');
    await led(['127.0.0.1:1', leader.address]);
    const picking = stage.agent({ addressOf: ({ addresses }) => addresses[1] });
    expect((await request('http://billing/', { dispatcher: picking })).statusCode).toBe(200);
    const failing = stage.agent({
      addressOf: () => {
        throw new Error('no idea');
      },
    });
    await expect(request('http://billing/', { dispatcher: failing })).rejects.toThrow('no idea');
  });

  test('end with the election that they follow', async (context) => {
    const stage = stageOf(context);
    const interceptor = toLeader(stage.fake.election, { waitTimeout: '20s' });
    const { Agent } = await import('undici');
    const agent = new Agent();
    stage.keep(() => agent.destroy());
    const dispatcher = agent.compose(interceptor);
    const waiting = request('http://billing/', { dispatcher });
    await delay(1);
    interceptor.close();
    interceptor.close();
    await expect(waiting).rejects.toThrow(ClosedError);
    await expect(request('http://billing/', { dispatcher })).rejects.toThrow(ClosedError);
    expect(stage.fake.open).toBe(0);
    const other = stage.agent();
    const left = request('http://billing/', { dispatcher: other });
    await delay(1);
    stage.fake.close();
    await expect(left).rejects.toThrow(ClosedError);
  });

  test('keep tokens that they have already', async (context) => {
    const stage = stageOf(context);
    const leader = await stage.listen(echo);
    await stage.lead(leader.address, 5n);
    const dispatcher = stage.agent();
    const send = async (
      headers: Record<string, string> | string[] | Iterable<[string, string]>,
    ) => {
      const answer = await request('http://billing/', { dispatcher, headers });
      const came = ((await answer.body.json()) as Echo).headers;
      return [came[electionHeader], came[tokenHeader]];
    };
    expect(await send({ [electionHeader]: 'a%2Cb', [tokenHeader]: '7' })).toEqual([
      'a%2Cb, billing',
      '7, 5',
    ]);
    expect(await send([electionHeader, 'billing', tokenHeader, '9'])).toEqual(['billing', '9']);
    expect(
      await send(
        new Map([
          [electionHeader, 'billing'],
          [tokenHeader, '4'],
        ]),
      ),
    ).toEqual(['billing', '5']);
    await expect(send({ [tokenHeader]: '9' })).rejects.toThrow(InvalidOptionError);
  });
});
