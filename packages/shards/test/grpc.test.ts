import { once } from 'node:events';
import * as grpc from '@grpc/grpc-js';
import { InvalidOptionError } from 'incumbent';
import { memory } from 'incumbent/memory';
import { afterEach, expect, test } from 'vitest';
import { toOwner } from '../src/grpc/index.ts';
import type { Shards } from '../src/index.ts';
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

/** A process that owns shards, and answers with its name and with the token that the call carried. */
async function serve(id: string, backend: ReturnType<typeof memory>): Promise<Shards<number>> {
  const server = new grpc.Server();
  server.addService(service, {
    whoHas(call: grpc.ServerUnaryCall<string, string>, answer: grpc.sendUnaryData<string>) {
      const term = shards.term(Number(call.request));
      if (term?.isLeading() !== true) {
        answer({ code: grpc.status.UNAVAILABLE, details: 'not the owner' });
      } else answer(null, `${id} ${call.metadata.get('incumbent-token')[0] === `${term.token}`}`);
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
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
  closers.push(() => server.forceShutdown());
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

test('bad options are refused', async () => {
  const shards = createShards({ name: 'queues', backend: memory(), shards: 8 });
  closers.push(() => shards.close());
  expect(() => toOwner(grpc, shards, {} as never)).toThrow('client must be a function');
});
