/** Leaders' writes, and the resource that checks their tokens. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { request as requestHttp } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Dispatcher } from 'undici';
import { Agent, Pool, request } from 'undici';
import type { TestContext } from 'vitest';
import { describe, expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import type { TokenMemory } from '../src/following/http/index.ts';
import {
  carryToken,
  electionHeader,
  memoryOfTokens,
  refusedHeader,
  requireToken,
  tokenHeader,
  tokenOf,
  toLeader,
} from '../src/following/http/index.ts';
import { createElection, NotLeadingError } from '../src/index.ts';
import { serveBehind, servers } from './support/http-servers.ts';
import type { Echo, Handler } from './support/http-stage.ts';
import { echo, FakeTerm, HttpStage } from './support/http-stage.ts';

const carrying = (token: bigint | string, election = 'billing') => ({
  [electionHeader]: election,
  [tokenHeader]: String(token),
});

const ended = (_incoming: unknown, response: ServerResponse) => response.end('done');

describe.for(Object.entries(servers))('a resource on %s', ([, serve]) => {
  test.concurrent('lets in no older term than it has seen', async (context) => {
    const stage = new HttpStage(context);
    const { origin } = await serve(stage, requireToken({ election: stage.fake.election }), ended);
    const send = async (headers: Record<string, string>) => {
      const {
        statusCode,
        headers: answered,
        body,
      } = await request(origin, {
        method: 'PUT',
        headers,
        body: 'x',
      });
      const words = await body.text();
      return [
        statusCode,
        answered[refusedHeader],
        statusCode < 400 ? words : JSON.parse(words).type,
      ];
    };
    const problem = (status: number, type: string) => [
      status,
      type,
      `urn:incumbent:problem:${type}`,
    ];
    const done = [200, undefined, 'done'];
    expect(await send({})).toEqual(problem(428, 'token-required'));
    expect(await send(carrying(5n, 'storage'))).toEqual(problem(428, 'token-required'));
    expect(await send(carrying(5n))).toEqual(done);
    expect(await send(carrying(5n))).toEqual(done);
    expect(await send(carrying(4n))).toEqual(problem(412, 'stale-token'));
    expect(await send(carrying('99, 6', 'storage, billing'))).toEqual(done);
    expect(await send(carrying(5n))).toEqual(problem(412, 'stale-token'));
    for (const garbage of ['x', '-1', '1.5', '0x10', '1'.repeat(40), '7, 7', '']) {
      expect(await send(carrying(garbage)), garbage).toEqual(problem(400, 'bad-token'));
    }
    expect(await send({ [tokenHeader]: '7' })).toEqual(problem(400, 'bad-token'));
    expect(await send(carrying('7, 7', 'billing, billing'))).toEqual(problem(400, 'bad-token'));
    expect(await send(carrying(6n))).toEqual(done);
  });
});

describe.concurrent('requireToken', () => {
  const serve = async (
    context: TestContext,
    options: Partial<Parameters<typeof requireToken>[0]> = {},
    handler: Handler = ended,
  ) => {
    const stage = new HttpStage(context);
    const required = requireToken({ election: 'billing', ...options });
    return { required, ...(await serveBehind(stage, required, handler)) };
  };

  test('names the token that it has seen', async (context) => {
    const { origin } = await serve(context);
    await request(origin, { headers: carrying(7n) });
    const { headers, body } = await request(origin, { headers: carrying(6n) });
    expect(headers[tokenHeader]).toBe('7');
    expect(await body.json()).toMatchObject({ status: 412, election: 'billing', token: '7' });
  });

  test('after one term was let in none before it is, whatever comes at once', async (context) => {
    // As a database: each step of a call takes a turn of its own, and calls overlap.
    const kept = new Map<string, bigint>();
    let queue: Promise<unknown> = Promise.resolve();
    const memoryInTurns: TokenMemory = {
      raise(election, token) {
        const turn = queue.then(async () => {
          await new Promise((resolve) => setImmediate(resolve));
          const before = kept.get(election) ?? -1n;
          if (token > before) kept.set(election, token);
          return token > before ? token : before;
        });
        queue = turn;
        return turn;
      },
    };
    for (const tokenMemory of [memoryInTurns, memoryOfTokens()]) {
      const order: bigint[] = [];
      const { origin } = await serve(context, { memory: tokenMemory }, (incoming, response) => {
        order.push(tokenOf(incoming, 'billing') ?? -1n);
        response.end();
      });
      const tokens = Array.from({ length: 60 }, (_, i) => BigInt((i * 37) % 60));
      const agent = new Agent({ connections: 20 });
      context.onTestFinished(() => agent.destroy());
      const statuses = await Promise.all(
        tokens.map(async (token) => {
          const headers = carrying(token);
          const { statusCode, body } = await request(origin, { dispatcher: agent, headers });
          await body.dump();
          return statusCode;
        }),
      );
      expect(new Set(statuses)).toEqual(new Set([200, 412]));
      expect(order.length).toBe(statuses.filter((status) => status === 200).length);
      expect(order, 'never back').toEqual(order.toSorted((a, b) => Number(a - b)));
      expect(order.at(-1)).toBe(59n);
    }
  });

  test('goes on where the memory was kept', async (context) => {
    const kept = memoryOfTokens();
    const before = await serve(context, { memory: kept });
    await (await request(before.origin, { headers: carrying(7n) })).body.dump();
    // As a process that begins anew on the same database.
    const reopened: TokenMemory = { raise: (election, token) => kept.raise(election, token) };
    const after = await serve(context, { memory: reopened });
    expect((await request(after.origin, { headers: carrying(6n) })).statusCode).toBe(412);
    expect((await request(after.origin, { headers: carrying(7n) })).statusCode).toBe(200);
  });

  test('lets none in whose token was read before and told after a newer one', async (context) => {
    // Its answers come in another order than they were made in.
    const answers: (() => void)[] = [];
    let asked = () => {};
    let kept = -1n;
    const late: TokenMemory = {
      raise(_election, token) {
        kept = kept > token ? kept : token;
        const found = kept;
        return new Promise((resolve) => {
          answers.push(() => resolve(found));
          asked();
        });
      },
    };
    const nextAsked = () =>
      new Promise<void>((resolve) => {
        asked = resolve;
      });
    const order: bigint[] = [];
    const { origin, required } = await serve(context, { memory: late }, (incoming, response) => {
      order.push(tokenOf(incoming, 'billing') ?? -1n);
      response.end();
    });
    const requests: Promise<Dispatcher.ResponseData>[] = [];
    for (const token of [5n, 6n]) {
      const wasAsked = nextAsked();
      requests.push(request(origin, { headers: carrying(token) }));
      await wasAsked;
    }
    answers[1]?.();
    expect((await requests[1])?.statusCode).toBe(200);
    answers[0]?.();
    expect((await requests[0])?.statusCode).toBe(412);
    expect(order).toEqual([6n]);
    const wasAsked = nextAsked();
    const current = required.isCurrent({ headers: carrying(5n) });
    await wasAsked;
    answers[2]?.();
    expect(await current).toBe(false);
    expect(await required.isCurrent({ headers: {} })).toBe(false);
  });

  test('tells after a slow body whether its term is still the newest', async (context) => {
    const seen: boolean[] = [];
    const { origin, required, server } = await serve(context, {}, async (incoming, response) => {
      await text(incoming);
      seen.push(await required.isCurrent(incoming));
      response.end();
    });
    const slow = requestHttp(origin, { method: 'PUT', headers: carrying(1n) });
    slow.write('half');
    await once(server, 'request');
    // Requests that come later are let in later.
    await (await request(origin, { headers: carrying(1n) })).body.dump();
    await (await request(origin, { headers: carrying(2n) })).body.dump();
    slow.end('half');
    const [answer] = await once(slow, 'response');
    answer.resume();
    expect(seen).toEqual([true, true, false]);
  });

  test('lets nobody in when the memory fails, or answers nonsense', async (context) => {
    for (const raise of [
      () => Promise.reject(new Error('no route')),
      () => {
        throw new Error('no route');
      },
      () => 3 as unknown as bigint,
      () => 3n,
      () => new Promise<never>(() => {}),
    ]) {
      const errors: Error[] = [];
      const onError = (error: Error) => errors.push(error);
      const { origin } = await serve(context, { memory: { raise }, onError, memoryTimeout: 500 });
      const answer = await request(origin, { headers: carrying(4n) });
      expect([answer.statusCode, answer.headers[refusedHeader]]).toEqual([503, 'token-memory']);
      expect(errors).toHaveLength(1);
      expect(await answer.body.text(), 'is told to nobody else').not.toContain('no route');
    }
  });
});

describe.concurrent('carryToken', () => {
  const agentOf = (context: TestContext, term: FakeTerm, minRemaining = 0): Dispatcher => {
    const agent = new Agent();
    context.onTestFinished(() => agent.destroy());
    return agent.compose(carryToken(term.term, { minRemaining }));
  };

  test('puts a term on every request, of undici and of fetch', async (context) => {
    const { origin } = await new HttpStage(context).listen(echo);
    const dispatcher = agentOf(context, new FakeTerm(7n, 'a, b'));
    const answers = [
      await (await request(origin, { dispatcher, method: 'POST', body: 'x' })).body.json(),
      await (await fetch(origin, { dispatcher } as object)).json(),
    ];
    for (const answer of answers) {
      expect((answer as Echo).headers).toMatchObject({
        [electionHeader]: 'a%2C%20b',
        [tokenHeader]: '7',
      });
    }
  });

  test('sends nothing by a term that is over, or of which too little is left', async (context) => {
    const { origin, connections } = await new HttpStage(context).listen(echo);
    const term = new FakeTerm(7n);
    const careful = agentOf(context, term, 10_000);
    await expect(request(origin, { dispatcher: careful })).rejects.toThrow(NotLeadingError);
    const dispatcher = agentOf(context, term);
    term.leads = false;
    await expect(request(origin, { dispatcher })).rejects.toThrow(NotLeadingError);
    const fetched = fetch(origin, { dispatcher } as object);
    await expect(fetched).rejects.toMatchObject({ cause: { code: 'NOT_LEADING' } });
    expect(connections).toHaveLength(0);
  });

  test('sends nothing that waited for a connection longer than the term lasts', async (context) => {
    const stage = new HttpStage(context);
    const seen: string[] = [];
    let finish = () => {};
    const { origin, server } = await stage.listen((incoming, response) => {
      seen.push(incoming.url ?? '');
      finish = () => response.end();
    });
    const term = new FakeTerm(7n);
    const pool = new Pool(origin, { connections: 1 });
    stage.keep(() => pool.destroy());
    const dispatcher = pool.compose(carryToken(term.term));
    const first = dispatcher.request({ path: '/1', method: 'GET' });
    const second = dispatcher.request({ path: '/2', method: 'POST', body: 'x' });
    second.catch(() => {});
    await once(server, 'request');
    term.leads = false;
    finish();
    await (await first).body.dump();
    await expect(second).rejects.toThrow(NotLeadingError);
    expect(seen).toEqual(['/1']);
  });

  test('goes with toLeader: a leader of one election writes to the leader of another', async (context) => {
    const stage = new HttpStage(context);
    const { address } = await stage.listen(echo);
    await stage.lead(address, 3n);
    const agent = new Agent();
    const follow = toLeader(stage.fake.election, { waitTimeout: '20s' });
    stage.keep(() => agent.destroy());
    stage.keep(() => follow.close());
    const dispatcher = agent.compose(follow, carryToken(new FakeTerm(7n, 'storage').term));
    const { body } = await request('http://billing/', { dispatcher });
    expect(((await body.json()) as Echo).headers).toMatchObject({
      [electionHeader]: 'storage, billing',
      [tokenHeader]: '7, 3',
    });
  });

  test('and requireToken refuse a real leader that was replaced', async (context) => {
    const stage = new HttpStage(context);
    const store = memory();
    const elections = ['a', 'b'].map((id) =>
      createElection({ name: 'billing', backend: store, lease: '20s', candidate: { id } }),
    );
    const [one, two] = elections as [(typeof elections)[0], (typeof elections)[0]];
    stage.keep(() => Promise.all(elections.map((election) => election.close())));
    const required = requireToken({ election: one });
    const { origin } = await serveBehind(stage, required, ended);
    const agent = new Agent();
    stage.keep(() => agent.destroy());
    const first = await one.campaign();
    const old = agent.compose(carryToken(first));
    expect((await request(origin, { dispatcher: old })).statusCode).toBe(200);
    await first[Symbol.asyncDispose]();
    const second = await two.campaign();
    const present = agent.compose(carryToken(second));
    expect((await request(origin, { dispatcher: present })).statusCode).toBe(200);
    await expect(request(origin, { dispatcher: old })).rejects.toThrow(NotLeadingError);
    expect((await request(origin, { headers: carrying(first.token) })).statusCode).toBe(412);
    await second[Symbol.asyncDispose]();
  });
});
