/** The program that docs/coming-from/hadoop.md shows. */

import { connect } from '@incumbent/zookeeper';
import type { UncleanLeader } from 'incumbent';
import { createElection } from 'incumbent';
import { activeStandby, zookeeper } from 'incumbent/zookeeper';

const stop = new AbortController();
const client = await connect('zk://h1:2181,h2:2181,h3:2181', { sessionTimeoutMs: 10_000 });
const activeData = 'host-7:8020';
const backend = zookeeper(client, { layout: 'hadoop', root: '/hadoop-ha', activeData });
const election = createElection({ name: 'ns1', backend });
const member = { becomeActive, becomeStandby, enterNeutralMode };
await activeStandby(election, member, {
  signal: stop.signal,
  health: { check: isHealthy },
  onUnclean: fence,
});

/** The reader's own. */
function becomeActive(): void {}
function becomeStandby(): void {}
function enterNeutralMode(): void {}
function isHealthy(): boolean {
  return true;
}
async function fence({ id }: UncleanLeader): Promise<void> {
  console.log(`${id} is switched off`);
}
