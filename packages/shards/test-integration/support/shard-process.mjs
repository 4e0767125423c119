// One process that shares shards:
//
//   node shard-process.mjs <file | postgres | redis | etcd | zookeeper> <where> <id> <shards> <lease>
//
// It says on standard output when the work of a shard begins and ends, by the clock that all processes
// of one machine share. On standard input it is told to `drain` or to `close`.
import { createInterface } from 'node:readline';
import { createShards } from '@incumbent/shards';
import { hasSessions, openBackend } from './open-backend.mjs';

const [kind, where, id, shards, lease] = process.argv.slice(2);
const { backend, close } = await openBackend(kind, where, lease);
const say = (...words) => process.stdout.write(`${words.join(' ')}\n`);
const now = () => process.hrtime.bigint();

const handle = createShards({
  name: 'queues',
  backend,
  shards: Number(shards),
  ...(hasSessions(kind) ? {} : { lease }),
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
