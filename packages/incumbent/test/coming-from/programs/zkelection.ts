/** The program that docs/coming-from/zkelection.md shows. */
import { setTimeout as sleep } from 'node:timers/promises';

import { connect } from '@incumbent/zookeeper';
import { createElection } from 'incumbent';
import { zookeeper } from 'incumbent/zookeeper';

const client = await connect('zk://zk1:2181,zk2:2181,zk3:2181');
const backend = zookeeper(client, { layout: 'recipe', root: '/', tickTime: '2s' });
const election = createElection({ name: 'election', backend, candidate: { id: 'node-7' } });
await election.lead(work, { onStatus: ({ role }) => console.log(role === 'leader') });

import { BadVersionError, NodeExistsError } from '@incumbent/zookeeper';

await client.ensurePath('/app/limit'); // Put: the node, with those above it
await client.set('/app/limit', '10');
const { text, stat } = await client.get('/app/limit'); // Get; LastIndex is the version
console.log(text, stat.version); // 10 1

const version = stat.version;
await client.set('/app/limit', '11', { version }); // AtomicPut
const late = await client.set('/app/limit', '12', { version }).catch((error) => error);
console.log(late instanceof BadVersionError); // true: ErrKeyModified
await client.create('/app/owner', 'node-7'); // AtomicPut without a previous pair
const twice = await client.create('/app/owner', 'node-8').catch((error) => error);
console.log(twice instanceof NodeExistsError); // true: ErrKeyExists

// WatchTree: the children and their values, now and after each change of the list
for await (const list of client.followChildren('/app')) {
  const reads = (list?.children ?? []).map((name) => ({ get: `/app/${name}` }));
  const { results } = await client.multiRead(reads); // rejects for an empty list
  for (const read of results) if (read.type === 'get') console.log(read.path, read.value.text);
  break;
}

const lock = createElection({ name: 'nightly', backend: zookeeper(client) }); // NewLock
const held = await lock.campaign(); // Lock; `held.signal` aborts when the lock is lost
const { guard } = held; // a check of it refuses every other process
await client.transaction().check(guard.path, guard.version).set('/app/limit', '13').commit();
await held[Symbol.asyncDispose](); // Unlock

await client.delete('/app/owner', { version: 0 }); // AtomicDelete
const { deleted } = await client.deleteRecursive('/app'); // DeleteTree
console.log(deleted); // 2

/** The reader's own. */
async function work({ signal }: { readonly signal: AbortSignal }): Promise<void> {
  while (!signal.aborted) await sleep(1_000, undefined, { signal });
}
