// One process that shares shards:
//
//   node shard-process.mjs <file | postgres | redis> <where> <id> <shards> <lease>
//
// It says on standard output when the work of a shard begins and ends, by the clock that all processes
// of one machine share. On standard input it is told to `drain` or to `close`.
import { createInterface } from 'node:readline';
import { createShards } from '@incumbent/shards';

const [kind, where, id, shards, lease] = process.argv.slice(2);
const { backend, close } = await openBackend();
const say = (...words) => process.stdout.write(`${words.join(' ')}\n`);
const now = () => process.hrtime.bigint();

const handle = createShards({
  name: 'queues',
  backend,
  shards: Number(shards),
  // On etcd the lease is that of the session.
  ...(kind === 'etcd' ? {} : { lease }),
  candidate: { id, addresses: [`${id}:80`] },
  init: 'auto',
  onTrouble: ({ what, error }) => process.stderr.write(`${id}: ${what}: ${error}\n`),
  own: async (shard, term) => {
    say('begin', shard, term.token, now());
    await new Promise((resolve) => {
      term.signal.addEventListener('abort', resolve, { once: true });
    });
    say('end', shard, term.token, now());
  },
});
handle.joined.then(
  () => say('joined'),
  (error) => say('refused', error.message),
);
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'drain') await handle.drain();
  if (line === 'close') await handle.close();
  break;
}
await close();
say('left');

async function openBackend() {
  if (kind === 'file') {
    const { file } = await import('incumbent/file');
    return { backend: file(where), close: async () => {} };
  }
  if (kind === 'postgres') {
    const { postgres } = await import('incumbent/postgres');
    const { default: pg } = await import('pg');
    const client = new pg.Pool({ connectionString: where });
    return { backend: postgres(client, { clockStep: 0 }), close: () => client.end() };
  }
  if (kind === 'etcd') {
    const { etcd } = await import('incumbent/etcd');
    const { Client, credentials } = await import('@grpc/grpc-js');
    const client = new Client(where, credentials.createInsecure());
    return { backend: etcd(client, { ttl: lease }), close: async () => client.close() };
  }
  const { redis } = await import('incumbent/redis');
  const { createClient } = await import('redis');
  const client = createClient({ url: where });
  await client.connect();
  return { backend: redis(client), close: () => client.close() };
}
