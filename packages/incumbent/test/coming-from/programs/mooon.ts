/** The program that docs/coming-from/mooon.md shows. */
import { setTimeout as sleep } from 'node:timers/promises';

import { connect } from '@incumbent/zookeeper';
import { createElection } from 'incumbent';
import { zookeeper } from 'incumbent/zookeeper';

const client = await connect('zk://zk1:2181,zk2:2181,zk3:2181', { sessionTimeoutMs: 10_000 });
const backend = zookeeper(client, {
  layout: 'node',
  root: '/master',
  poll: '2s',
  delayAfterWin: '10s',
});
// The node is /master/test, and its data is the id.
const candidate = { id: '10.0.0.7:8080' };
await createElection({ name: 'test', backend, candidate }).lead(async (term) => {
  while (term.isLeading()) await step(term.signal);
});

/** The reader's own. */
async function step(signal: AbortSignal): Promise<void> {
  await sleep(1_000, undefined, { signal });
}
