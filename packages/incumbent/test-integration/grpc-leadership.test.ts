/** Servers of both versions of grpc-js that lead, and cease to. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { EventEmitter } from 'node:events';
import { getEventListeners, once } from 'node:events';
import type {
  Client,
  ClientWritableStream,
  Interceptor,
  ServerDuplexStream,
  ServerInterceptor,
  ServerReadableStream,
  ServerWritableStream,
  StatusObject,
  sendUnaryData,
} from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import { Deferred } from '../src/base/wait.ts';
import type { RequireLeadershipOptions } from '../src/following/grpc/index.ts';
import { callsEnded, carryKnownToken, requireLeadership } from '../src/following/grpc/index.ts';
import type { Term } from '../src/index.ts';
import { candidate, FakeElection, ledBy } from '../test/support/fake-election.ts';
import { FakeTerm } from '../test/support/fake-term.ts';
import { ledger, read, serve, versions } from './support/grpc-ledger.ts';
import type { Read } from './support/grpc-stage.ts';
import { eventually, GrpcStage } from './support/grpc-stage.ts';

type Stream = ServerDuplexStream<unknown, unknown>;

/** The handlers of a test. Each call of one tells the test. */
interface Handlers {
  readonly Read?: Read;
  readonly Follow?: (call: ServerWritableStream<unknown, unknown>) => void;
  readonly Collect?: (
    call: ServerReadableStream<unknown, unknown>,
    reply: sendUnaryData<unknown>,
  ) => void;
  readonly Talk?: (call: Stream) => void;
}

describe.concurrent.each(versions)('a server of grpc-js %s', (version, grpc) => {
  const { ABORTED, NOT_FOUND, OK, UNAVAILABLE } = grpc.status;
  const election = { name: 'billing/é' };
  const named = 'election "billing/é"';

  /** A server that leads while `lead.term` does, and a client of it. */
  async function start(
    stage: GrpcStage,
    handlers: Handlers,
    options: Partial<RequireLeadershipOptions> = {},
  ): Promise<{
    client: Client;
    lead: { term: Term | undefined };
    first: FakeTerm;
    address: string;
  }> {
    const first = new FakeTerm(7n, (options.election ?? election).name);
    const lead: { term: Term | undefined } = { term: first.term };
    const interceptor = requireLeadership(grpc, { election, term: () => lead.term, ...options });
    const server = await serve(grpc, { ...handlers }, [interceptor]);
    stage.keep(() => server.close());
    const { address } = server;
    return { client: stage.client(address), lead, first, address };
  }

  /** `once` would reject: a stream that fails has an `error` besides its `status`. */
  const ends = (call: EventEmitter) =>
    new Promise<StatusObject>((resolve) => {
      call.on('status', resolve);
      call.on('error', () => {});
    });

  /** A handler that answers when it is told to. */
  function slow(): { handler: Read; begun: Promise<void>; answer: () => void } {
    const begun = new Deferred<void>();
    const answered = new Deferred<void>();
    const handler: Read = (_call, reply) => {
      begun.resolve(undefined);
      void answered.promise.then(() => reply(null, 'done'));
    };
    return { handler, begun: begun.promise, answer: () => answered.resolve(undefined) };
  }

  test('serves in its term, and says which one', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const { client } = await start(stage, { Read: (_call, reply) => reply(null, 'mine') });
    const { value, metadata } = await read(grpc, client);
    expect(value).toBe('mine');
    expect(metadata?.get('incumbent-token')).toEqual(['7']);
    expect(metadata?.get('incumbent-election')).toEqual(['billing%2F%C3%A9']);
  });

  test('refuses while it does not lead, or is about to stop', async (context) => {
    const stage = new GrpcStage(context, grpc);
    let served = 0;
    const { client, lead, first } = await start(stage, {
      Read: (_call, reply) => {
        served += 1;
        reply(null, 'mine');
      },
    });
    const refused = async (details: string) => {
      const { status, metadata } = await read(grpc, client);
      expect(status).toMatchObject({ code: UNAVAILABLE, details });
      expect(status.metadata.get('incumbent-election')).toEqual(['billing%2F%C3%A9']);
      expect(metadata?.get('incumbent-token') ?? []).toEqual([]);
      expect(status.metadata.get('incumbent-token')).toEqual([]);
      expect(status.metadata.get('incumbent-refused')).toEqual(['not-leading']);
    };
    first.stop();
    await refused(`this server is about to stop leading ${named}`);
    // The clocks say so before any event does: the event loop stood still.
    const stalled = new FakeTerm(8n, election.name);
    stalled.isBelieved = false;
    lead.term = stalled.term;
    await refused(`this server does not lead ${named}`);
    const preparing = new FakeTerm(8n, election.name);
    preparing.isReady = false;
    lead.term = preparing.term;
    await refused(`this server leads ${named} and is not ready yet`);
    lead.term = undefined;
    await refused(`this server does not lead ${named}`);
    expect(served).toBe(0);
    lead.term = new FakeTerm(9n, election.name).term;
    expect((await read(grpc, client)).metadata?.get('incumbent-token')).toEqual(['9']);
  });

  /** A unary call of which the request comes in two steps later: the message, and that it is all. */
  async function stepwise(stage: GrpcStage): Promise<{
    readonly first: FakeTerm;
    readonly arrived: Promise<void>;
    readonly received: Promise<void>;
    readonly call: ClientWritableStream<unknown>;
    /** Messages that the guard has let through, and calls that were begun. */
    readonly seen: () => number;
    readonly served: () => number;
  }> {
    let [seen, served] = [0, 0];
    const [arrived, received] = [new Deferred<void>(), new Deferred<void>()];
    const first = new FakeTerm(7n, election.name);
    const guard = requireLeadership(grpc, { election, term: () => first.term });
    // Further in than the guard: sees what that lets through.
    const witness: ServerInterceptor = (_method, call) =>
      new grpc.ServerInterceptingCall(call, {
        start: (next) =>
          next({
            onReceiveMetadata: (metadata, pass) => {
              arrived.resolve(undefined);
              pass(metadata);
            },
            onReceiveMessage: (message, pass) => {
              seen += 1;
              received.resolve(undefined);
              pass(message);
            },
          }),
      });
    const server = await serve(grpc, { Read: () => (served += 1) }, [guard, witness]);
    stage.keep(() => server.close());
    const { path, requestSerialize, responseDeserialize } = ledger.Read;
    const call = stage
      .client(server.address)
      .makeClientStreamRequest(path, requestSerialize, responseDeserialize, () => {});
    return {
      first,
      arrived: arrived.promise,
      received: received.promise,
      call,
      seen: () => seen,
      served: () => served,
    };
  }

  test('begins no call whose request comes after the term', async (context) => {
    const { first, arrived, call, seen, served } = await stepwise(new GrpcStage(context, grpc));
    await arrived;
    first.isBelieved = false;
    const ended = ends(call);
    call.write({});
    expect(await ended).toMatchObject({
      code: UNAVAILABLE,
      details: `term 7 of ${named} ended before the call was begun`,
    });
    expect(seen()).toBe(0);
    expect(served()).toBe(0);
  });

  test('begins no call whose request is whole after the term', async (context) => {
    const { first, received, call, served } = await stepwise(new GrpcStage(context, grpc));
    call.write({});
    await received;
    first.isBelieved = false;
    const ended = ends(call);
    call.end();
    expect((await ended).code).toBe(UNAVAILABLE);
    expect(served()).toBe(0);
  });

  test('lets no message out of a stream, and no token, after the term', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const goOn = new Deferred<void>();
    const { client, first } = await start(stage, {
      Follow: (call) => {
        call.write('one');
        void goOn.promise.then(() => call.write('two'));
      },
      Talk: (call) => {
        void goOn.promise.then(() => call.sendMetadata(new grpc.Metadata()));
      },
    });
    const { Follow, Talk } = ledger;
    const follow = client.makeServerStreamRequest(
      Follow.path,
      Follow.requestSerialize,
      Follow.responseDeserialize,
      {},
    );
    const talk = client.makeBidiStreamRequest(
      Talk.path,
      Talk.requestSerialize,
      Talk.responseDeserialize,
    );
    const messages: unknown[] = [];
    follow.on('data', (message) => messages.push(message));
    const tokens: unknown[] = [];
    talk.on('metadata', (metadata) => tokens.push(...metadata.get('incumbent-token')));
    await once(follow, 'data');
    const statuses = Promise.all([ends(follow), ends(talk)]);
    talk.resume();
    // No event comes: the event loop stood still, or will do so.
    first.isBelieved = false;
    goOn.resolve(undefined);
    for (const { code } of await statuses) expect(code).toBe(ABORTED);
    expect(messages).toEqual(['one']);
    expect(tokens).toEqual([]);
  });

  test('withholds its answer when the term is over meanwhile', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const { handler, begun, answer } = slow();
    const { client, first, lead } = await start(stage, { Read: handler });
    const answered = read(grpc, client);
    await begun;
    // No event has come, and another process may lead already: only the clocks know.
    first.isBelieved = false;
    // That this process leads again does not matter: its handler began in an older term.
    lead.term = new FakeTerm(9n, election.name).term;
    answer();
    const { value, status } = await answered;
    expect(value).toBeUndefined();
    expect(status.metadata.get('incumbent-refused')).toEqual([]);
    expect(status).toMatchObject({
      code: ABORTED,
      details: `term 7 of ${named} ended while the call was served: whether it took effect is not known`,
    });
  });

  test('says UNAVAILABLE for methods that may be repeated', async (context) => {
    const stage = new GrpcStage(context, grpc);
    for (const repeatable of [
      ['/test.Ledger/Read'],
      ['test.Ledger'],
      (path: string) => path.endsWith('Read'),
    ]) {
      const { handler, begun, answer } = slow();
      const { client, first } = await start(stage, { Read: handler }, { repeatable });
      const answered = read(grpc, client);
      await begun;
      first.isBelieved = false;
      answer();
      const { status } = await answered;
      expect(status.code).toBe(UNAVAILABLE);
      expect(status.metadata.get('incumbent-refused'), 'it may have been done').toEqual([]);
    }
  });

  test('passes errors of its handlers on in its term, and not after it', async (context) => {
    const stage = new GrpcStage(context, grpc);
    let atAnswer = () => {};
    const { client, first } = await start(stage, {
      Read: (_call, reply) => {
        atAnswer();
        reply({ code: NOT_FOUND, details: 'no such invoice' });
      },
    });
    const { status } = await read(grpc, client);
    expect(status).toMatchObject({ code: NOT_FOUND, details: 'no such invoice' });
    expect(status.metadata.get('incumbent-token')).toEqual(['7']);
    // Not found by whom? A newer leader may know it.
    atAnswer = () => {
      first.isBelieved = false;
    };
    expect((await read(grpc, client)).status.code).toBe(ABORTED);
  });

  test('ends streams when the term is told to stop, and lets calls finish', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const cancelled: string[] = [];
    const { handler, begun, answer } = slow();
    const { client, first } = await start(stage, {
      Read: handler,
      Follow: (call) => {
        call.on('cancelled', () => cancelled.push('Follow'));
        call.write('one');
      },
      Collect: (call) => {
        call.on('cancelled', () => cancelled.push('Collect'));
        call.resume();
      },
      Talk: (call) => {
        call.on('cancelled', () => cancelled.push('Talk'));
        call.on('data', (message) => call.write(message));
      },
    });
    const unary = read(grpc, client);
    const { Follow, Collect, Talk } = ledger;
    const follow = client.makeServerStreamRequest(
      Follow.path,
      Follow.requestSerialize,
      Follow.responseDeserialize,
      {},
    );
    const talk = client.makeBidiStreamRequest(
      Talk.path,
      Talk.requestSerialize,
      Talk.responseDeserialize,
    );
    const collect = client.makeClientStreamRequest(
      Collect.path,
      Collect.requestSerialize,
      Collect.responseDeserialize,
      () => {},
    );
    talk.write('hello');
    collect.write('first');
    const [followed, [metadata]] = await Promise.all([
      once(follow, 'data'),
      once(follow, 'metadata'),
      once(talk, 'data'),
      begun,
    ]);
    expect(followed).toEqual(['one']);
    expect(metadata.get('incumbent-token')).toEqual(['7']);
    const statuses = Promise.all([follow, talk, collect].map((call) => ends(call)));
    first.stop();
    for (const { code } of await statuses) expect(code).toBe(ABORTED);
    let settled = false;
    const settling = callsEnded(first.term).then(() => {
      settled = true;
    });
    await eventually(() => expect(cancelled.toSorted()).toEqual(['Collect', 'Follow', 'Talk']));
    // Calls that have begun may finish as long as the term is believed.
    expect(settled, 'one call has no answer yet').toBe(false);
    answer();
    expect((await unary).value).toBe('done');
    await settling;
    await callsEnded(new FakeTerm(9n, election.name).term);
  });

  test('ends calls that nobody answers when the belief is over, though the work goes on', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const { handler, begun } = slow();
    const { client, first } = await start(stage, { Read: handler });
    const unary = read(grpc, client);
    await begun;
    first.stop();
    first.isBelieved = false;
    expect((await unary).status.code).toBe(ABORTED);
  });

  test('keeps no call, and one listener, of a term', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const { client, first } = await start(stage, { Read: (_call, reply) => reply(null, 'mine') });
    await Promise.all(Array.from({ length: 50 }, () => read(grpc, client)));
    expect(getEventListeners(first.signal, 'abort')).toHaveLength(1);
    first.end();
    expect((await read(grpc, client)).status.code).toBe(UNAVAILABLE);
    expect(getEventListeners(first.signal, 'abort')).toHaveLength(0);
  });

  test('every process serves exempt methods', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const handlers: Handlers = { Read: (_call, reply) => reply(null, 'mine') };
    for (const exempt of [['/test.Ledger/Read'], ['test.Ledger'], () => true]) {
      const { client, lead } = await start(stage, handlers, { exempt });
      lead.term = undefined;
      expect((await read(grpc, client)).value).toBe('mine');
    }
    const health = {
      Check: { ...ledger.Read, path: '/grpc.health.v1.Health/Check' },
    };
    const server = new grpc.Server({
      interceptors: [requireLeadership(grpc, { election, term: () => undefined })],
    });
    server.addService(health, {
      Check: (_call: unknown, reply: sendUnaryData<unknown>) => reply(null, 'serving'),
    });
    stage.keep(() => server.forceShutdown());
    const port = await new Promise<number>((resolve) => {
      server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (_error, bound) =>
        resolve(bound),
      );
    });
    const { path, requestSerialize, responseDeserialize } = health.Check;
    const client = stage.client(`127.0.0.1:${port}`);
    const answer = await new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, {}, (error, value) =>
        error === null ? resolve(value) : reject(error),
      );
    });
    expect(answer).toBe('serving');
  });

  test('refuses when the given function throws', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const told: unknown[] = [];
    const why: unknown[] = [];
    const trouble = (message: unknown) => {
      const {
        election: name,
        what,
        error,
      } = message as {
        election: string;
        what: string;
        error: Error;
      };
      if (name !== throwing.election.name) return;
      told.push(what);
      why.push(error.message);
    };
    subscribe('incumbent:trouble', trouble);
    stage.keep(() => unsubscribe('incumbent:trouble', trouble));
    const fail = () => {
      throw new Error('not ready');
    };
    const { handler, begun, answer } = slow();
    const throwing = { election: { name: `throwing ${version}` }, repeatable: fail, exempt: fail };
    const { client, lead, first } = await start(stage, { Read: handler }, throwing);
    const answered = read(grpc, client);
    await begun;
    first.isBelieved = false;
    answer();
    expect((await answered).status.code).toBe(ABORTED);
    expect(told).toEqual(['selecting /test.Ledger/Read', 'selecting /test.Ledger/Read']);
    lead.term = new FakeTerm(8n, 'another').term;
    expect((await read(grpc, client)).status).toMatchObject({
      code: UNAVAILABLE,
      details: `this server does not lead election "${throwing.election.name}"`,
    });
    expect(told.at(-1)).toBe('asking for the present term');
    expect(why.at(-1)).toBe(
      `term() gave a term of election "another", this is about "${throwing.election.name}"`,
    );
    Object.defineProperty(lead, 'term', { get: fail });
    expect((await read(grpc, client)).status.code).toBe(UNAVAILABLE);
    expect(told.at(-1)).toBe('asking for the present term');
    expect(why.at(-1)).toBe('not ready');
  });

  test('refuses a caller that knows a newer leader', async (context) => {
    const stage = new GrpcStage(context, grpc);
    let served = 0;
    const { client } = await start(stage, {
      Read: (_call, reply) => {
        served += 1;
        reply(null, 'mine');
      },
    });
    const knowing = (token: string, name = 'billing%2F%C3%A9') => {
      const metadata = new grpc.Metadata();
      metadata.set('incumbent-token', token);
      metadata.set('incumbent-election', name);
      return read(grpc, client, { metadata });
    };
    for (const known of ['7', '6', '-8', '8n', '', '9'.repeat(100)]) {
      expect((await knowing(known)).value).toBe('mine');
    }
    expect((await knowing('8', 'other')).value).toBe('mine');
    const { count } = { count: served };
    const { status } = await knowing('8');
    expect(status.metadata.get('incumbent-refused')).toEqual(['newer-token']);
    expect(status).toMatchObject({
      code: UNAVAILABLE,
      details: `the caller knows term 8 of ${named}, here is 7`,
    });
    expect(served).toBe(count);
  });

  test('is told by channels that follow the leader which term they know', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('carried');
    const tokens: unknown[] = [];
    const server = await stage.server('a', (call, reply) => {
      tokens.push([call.metadata.get('incumbent-token'), call.metadata.get('incumbent-election')]);
      reply(null, 'a');
    });
    stage.resolve(fake.election);
    const interceptors = [carryKnownToken(grpc, fake.election)];
    const client = stage.client(`incumbent:///${fake.name}`, { interceptors });
    const direct = stage.client(server.address, { interceptors });
    const metadata = new grpc.Metadata();
    await read(grpc, direct, { metadata });
    fake.show(ledBy(candidate('a', { addresses: [server.address] }), 5n));
    await read(grpc, client, { waitForReady: true });
    await read(grpc, direct, { metadata });
    expect(tokens.at(0)).toEqual([[], []]);
    expect(tokens.at(-1)).toEqual([['5'], ['carried']]);
    expect(metadata.getMap(), 'the own metadata of the caller is left alone').toEqual({});
  });

  test('is told of several elections by one client', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const carried: unknown[] = [];
    const server = await stage.server('a', ({ metadata }, reply) => {
      carried.push([metadata.get('incumbent-election'), metadata.get('incumbent-token')]);
      reply(null, 'a');
    });
    const leader = candidate('a', { addresses: [server.address] });
    const [storage, billing] = [new FakeElection('cold, dark'), new FakeElection(election.name)];
    storage.show(ledBy(leader, 5n));
    billing.show(ledBy(leader, 8n));
    stage.resolve({ storage: storage.election, billing: billing.election });
    for (const name of ['storage', 'billing']) {
      expect((await read(grpc, stage.client(`incumbent:///${name}`))).value).toBe('a');
    }
    const [first, second] = [storage, billing].map((each) => carryKnownToken(grpc, each.election));
    const guarded = await start(stage, { Read: (_call, reply) => reply(null, 'mine') });
    for (const interceptors of [
      [first, second],
      [second, first],
      [first, second, first],
    ] as Interceptor[][]) {
      const { value } = await read(grpc, stage.client(server.address, { interceptors }));
      expect(value).toBe('a');
      const { status } = await read(grpc, stage.client(guarded.address, { interceptors }));
      expect(status.metadata.get('incumbent-refused')).toEqual(['newer-token']);
    }
    const both = [['cold%2C%20dark, billing%2F%C3%A9'], ['5, 8']];
    const reversed = [['billing%2F%C3%A9, cold%2C%20dark'], ['8, 5']];
    expect(carried.slice(-3)).toEqual([both, reversed, both]);
  });

  test('a retry policy moves refused calls to the next leader', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const name = 'moving';
    const backend = memory();
    const retryPolicy = {
      maxAttempts: 5,
      initialBackoff: '0.1s',
      maxBackoff: '1s',
      backoffMultiplier: 2,
      retryableStatusCodes: ['UNAVAILABLE'],
    };
    const members = await Promise.all(
      ['a', 'b'].map(async (id) => {
        const own: { term?: Term } = {};
        const interceptor = requireLeadership(grpc, { election: { name }, term: () => own.term });
        const server = await serve(
          grpc,
          { Read: (_call: unknown, reply: sendUnaryData<unknown>) => reply(null, id) },
          [interceptor],
        );
        stage.keep(() => server.close());
        const mine = stage.election({
          name,
          backend,
          candidate: { id, addresses: [server.address] },
        });
        return { own, mine };
      }),
    );
    const [a, b] = members as [(typeof members)[0], (typeof members)[0]];
    stage.resolve(stage.election({ name, backend }));
    const client = stage.client(`incumbent:///${name}`, {
      'grpc.service_config': JSON.stringify({
        methodConfig: [{ name: [{}], waitForReady: true, retryPolicy }],
      }),
    });
    a.own.term = await a.mine.campaign();
    const next = b.mine.campaign().then((term) => {
      b.own.term = term;
      return term;
    });
    const answers: unknown[] = [];
    const codes = new Set<number>();
    const calling = (async () => {
      while (answers.at(-1) !== 'b') {
        const { value, status } = await read(grpc, client);
        codes.add(status.code);
        answers.push(value);
      }
    })();
    await eventually(() => expect(answers).toContain('a'));
    await a.own.term[Symbol.asyncDispose]();
    await calling;
    expect([...codes], 'no call has failed').toEqual([OK]);
    const term = await next;
    await term[Symbol.asyncDispose]();
  });
});
