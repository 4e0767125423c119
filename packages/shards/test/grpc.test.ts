import { once } from 'node:events';
import * as grpc from '@grpc/grpc-js';
import { InvalidOptionError } from 'incumbent';
import { memory } from 'incumbent/memory';
import { afterEach, describe, expect, test } from 'vitest';
import type { CallOfShard, RequireOwnershipOptions } from '../src/grpc/index.ts';
import { callsEnded, requireOwnership, toOwner } from '../src/grpc/index.ts';
import type { Shards, ShardTerm } from '../src/index.ts';
import { createShards } from '../src/index.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const bytes = {
  requestSerialize: (text: string) => Buffer.from(text),
  requestDeserialize: (text: Buffer) => text.toString(),
  responseSerialize: (text: string) => Buffer.from(text),
  responseDeserialize: (text: Buffer) => text.toString(),
};
const service = {
  whoHas: { path: '/test.Shards/WhoHas', requestStream: false, responseStream: false, ...bytes },
} as const;

async function listen(server: grpc.Server): Promise<number> {
  closers.push(() => server.forceShutdown());
  return new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
}

/** A process that owns shards, and answers with its name and with the token that the call carried. */
async function serve(id: string, backend: ReturnType<typeof memory>): Promise<Shards<number>> {
  const server = new grpc.Server({ interceptors: [(method, call) => only(method, call)] });
  server.addService(service, {
    whoHas(call: grpc.ServerUnaryCall<string, string>, answer: grpc.sendUnaryData<string>) {
      const { token } = shards.term(Number(call.request))!;
      answer(null, `${id} ${call.metadata.get('incumbent-token')[0] === `${token}`}`);
    },
  });
  const port = await listen(server);
  const shards = createShards({
    name: 'queues',
    backend,
    shards: 8,
    lease: '1s',
    candidate: { id, addresses: [`127.0.0.1:${port}`] },
    own: async (_shard, term) => {
      await once(term.signal, 'abort');
    },
  });
  closers.push(() => shards.close());
  const only = requireOwnership(grpc, { shards });
  await shards.joined;
  return shards;
}

const Caller = grpc.makeGenericClientConstructor(service, 'Shards');
const retries = JSON.stringify({
  methodConfig: [
    {
      name: [{ service: 'test.Shards' }],
      waitForReady: true,
      timeout: '30s',
      retryPolicy: {
        ...{ maxAttempts: 5, initialBackoff: '0.02s', maxBackoff: '1s', backoffMultiplier: 3 },
        retryableStatusCodes: ['UNAVAILABLE'],
      },
    },
  ],
});

test('calls reach the owner of their shard with its token, also after it has moved', async () => {
  const backend = memory();
  const [a] = await Promise.all([serve('a', backend), serve('b', backend)]);
  const client = createShards({ name: 'queues', backend, shards: 8, lease: '1s' });
  const owners = toOwner(grpc, client, {
    client: (target, { interceptors }) =>
      new Caller(target, grpc.credentials.createInsecure(), {
        interceptors: [...interceptors],
        'grpc.service_config': retries,
      }),
  });
  closers.push(
    () => client.close(),
    () => owners.close(),
  );
  const ask = (shard: number) =>
    new Promise<string>((resolve, reject) => {
      const call = owners.of(shard)['whoHas'] as unknown as (
        shard: string,
        answer: (error: Error | null, text: string) => void,
      ) => void;
      call.call(owners.of(shard), `${shard}`, (error, text) =>
        error === null ? resolve(text) : reject(error),
      );
    });
  for await (const view of client.observe()) {
    if (view.unowned.length === 0 && view.members.every(({ owns }) => owns === 4)) break;
  }
  for (let shard = 0; shard < 8; shard += 1) {
    // The first call begins before the channel has met the owner, so it carries no token.
    await ask(shard);
    expect(await ask(shard)).toBe(`${a.owned().includes(shard) ? 'a' : 'b'} true`);
  }
  const [moving] = a.owned();
  await a.drain();
  expect((await ask(moving!)).split(' ')[0]).toBe('b');
  expect(owners.of(0)).toBe(owners.of(0));
  expect(() => owners.of(8)).toThrow(InvalidOptionError);
  owners.close();
  expect(() => owners.of(0)).toThrow('closed');
});

describe('a server with requireOwnership', () => {
  /** One process that owns all shards, and a client for a plain channel to it. */
  async function own(
    names: number | readonly string[],
    settings: {
      readonly ready?: 'manual';
      readonly work?: (term: ShardTerm) => Promise<unknown>;
      readonly handle?: (answer: () => void) => void;
      readonly shardOf?: (call: CallOfShard<typeof grpc>) => string;
    } = {},
  ) {
    const { ready, work = ({ signal }) => once(signal, 'abort'), handle, shardOf } = settings;
    const shards = createShards({
      ...{ name: 'queues', backend: memory(), shards: names as never, lease: '1s' },
      ...(ready && { ready }),
      own: async (_shard, term) => work(term),
    }) as Shards<string | number>;
    closers.push(() => shards.close());
    const server = new grpc.Server({
      interceptors: [
        requireOwnership(grpc, { shards, ...(shardOf && { shardOf }) } as RequireOwnershipOptions<
          typeof grpc,
          string | number
        >),
      ],
    });
    server.addService(service, {
      whoHas(_call: grpc.ServerUnaryCall<string, string>, answer: grpc.sendUnaryData<string>) {
        const done = () => answer(null, 'served');
        if (handle === undefined) done();
        else handle(done);
      },
    });
    const port = await listen(server);
    const client = new Caller(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
    closers.push(() => client.close());
    const ask = (shard?: string) =>
      new Promise<string>((resolve) => {
        const metadata = new grpc.Metadata();
        if (shard !== undefined) metadata.set('incumbent-shard', shard);
        client.makeUnaryRequest(
          service.whoHas.path,
          bytes.requestSerialize,
          bytes.responseDeserialize,
          'ask',
          metadata,
          (error, text) =>
            resolve(error === null ? `${text}` : `${grpc.status[error.code]}: ${error.details}`),
        );
      });
    const owned = async () => {
      for await (const view of shards.observe()) if (view.unowned.length === 0) return;
    };
    return { shards, ask, owned };
  }

  test('serves the shards that it owns, and no others', async () => {
    const { shards, ask, owned } = await own(8);
    const [early, nothing, beyond, word] = await Promise.all([ask('3'), ask(), ask('8'), ask('x')]);
    expect([early, nothing, beyond, word]).toEqual([
      'UNAVAILABLE: this server does not lead election "queues, shard 3"',
      'INVALID_ARGUMENT: the call names no shard of "queues": send it in "incumbent-shard"',
      expect.stringMatching(/^INVALID_ARGUMENT: there is no shard 8/),
      expect.stringMatching(/^INVALID_ARGUMENT: there is no shard "x"/),
    ]);
    await owned();
    expect(await ask('3')).toBe('served');
    const { signal } = shards.term(3)!;
    await shards.close();
    expect(signal.aborted).toBe(true);
    expect(await ask('3')).toMatch(/^UNAVAILABLE/);
  });

  test('knows shards by names of any letters, and asks a function of the user', async () => {
    const { ask, owned } = await own(['Zürich, CH', 'acme']);
    await owned();
    expect(await ask(encodeURIComponent('Zürich, CH'))).toBe('served');
    expect(await ask('initech')).toMatch(/^INVALID_ARGUMENT/);
    const other = await own(['acme'], {
      shardOf: ({ path, metadata }) => {
        const [tenant] = metadata.get('incumbent-shard');
        if (path !== '/test.Shards/WhoHas' || tenant === undefined) throw new Error('no tenant');
        return `${tenant}`.toLowerCase();
      },
    });
    await other.owned();
    expect([await other.ask('ACME'), await other.ask()]).toEqual([
      'served',
      'INVALID_ARGUMENT: no tenant',
    ]);
  });

  test('refuses a shard that it is about to give up, and one that is not ready', async () => {
    let settle = () => {};
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const { shards, ask, owned } = await own(8, { ready: 'manual', work: () => settled });
    await owned();
    expect(await ask('3')).toMatch(/^UNAVAILABLE: .* is not ready yet$/);
    const term = shards.term(3)!;
    await term.ready();
    expect(await ask('3')).toBe('served');
    term.resign();
    expect(await ask('3')).toMatch(/^UNAVAILABLE: .* about to stop/);
    expect(await ask('4')).toMatch(/not ready yet$/);
    settle();
  });

  test('lets the work wait for the calls under way before the shard moves', async () => {
    const answers: (() => void)[] = [];
    let arrived = () => {};
    const arrives = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const { shards, ask, owned } = await own(8, {
      work: async (term) => {
        await once(term.signal, 'abort');
        await callsEnded(term);
      },
      handle: (answer) => {
        answers.push(answer);
        arrived();
      },
    });
    await owned();
    const asked = ask('3');
    await arrives;
    const term = shards.term(3)!;
    let isOver = false;
    void term.ended.then(() => {
      isOver = true;
    });
    term.resign();
    await shards.view();
    expect(isOver).toBe(false);
    for (const answer of answers) answer();
    expect(await asked).toBe('served');
    await term.ended;
  });
});

test('bad options are refused', async () => {
  const shards = createShards({ name: 'queues', backend: memory(), shards: 8 });
  closers.push(() => shards.close());
  expect(() => toOwner(grpc, shards, {} as never)).toThrow('client must be a function');
  expect(() => requireOwnership(grpc, { shards, shardOf: 3 as never })).toThrow(
    'shardOf must be a function, not 3',
  );
  expect(() => requireOwnership(grpc, { shards, exempt: 'x' as never })).toThrow(
    'exempt is a list',
  );
  expect(() => requireOwnership(grpc, { shards, term: 1 } as never)).toThrow('term');
});
