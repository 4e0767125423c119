/** The program that docs/coming-from/zkelection.md shows. */
import { setTimeout as sleep } from 'node:timers/promises';

import { connect } from '@incumbent/zookeeper';
import { createElection } from 'incumbent';
import { zookeeper } from 'incumbent/zookeeper';

const client = await connect('zk://zk1:2181,zk2:2181,zk3:2181');
const backend = zookeeper(client, { layout: 'recipe', root: '/', tickTime: '2s' });
const election = createElection({ name: 'election', backend, candidate: { id: 'node-7' } });
await election.lead(work, { onStatus: ({ role }) => console.log(role === 'leader') });

/** The reader's own. */
async function work({ signal }: { readonly signal: AbortSignal }): Promise<void> {
  while (!signal.aborted) await sleep(1_000, undefined, { signal });
}
