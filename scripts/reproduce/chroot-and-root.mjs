// Two candidates reach one node of a real ZooKeeper server by different paths. One client has the
// chroot /app and the root /inc, the other has no chroot and the root /app/inc. The leader falls
// silent and its place is deleted. The other one must still wait the leader's belief out.

import { connect } from '@incumbent/zookeeper';
import { startProxy, startServer } from '@incumbent/zookeeper-testing';
import { createElection } from 'incumbent';
import { zookeeper } from 'incumbent/zookeeper';

const sessionTimeout = 6_000;
const cleanUps = [];
let verdict;
try {
  verdict = await reproduce();
} finally {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
}
console.log(verdict);
process.exit(verdict.startsWith('ok') ? 0 : 1);

async function reproduce() {
  const server = await startServer();
  cleanUps.push(() => server.close());
  const proxy = await startProxy(server);
  cleanUps.push(() => proxy.close());
  const operator = await clientOf(server.connectionString);
  await operator.ensurePath('/app/inc/jobs');
  const inside = candidate('inside', await clientOf(`${proxy.connectionString}/app`), '/inc');
  const outside = candidate('outside', await clientOf(server.connectionString), '/app/inc');

  const first = await inside.campaign();
  const { beliefMs } = inside.timing;
  const record = JSON.parse((await operator.get('/app/inc/jobs')).text);
  const { children } = await operator.getChildren('/app/inc/jobs');
  console.log(
    `the record names ${record.leadership.place}; the node is /app/inc/jobs/${children[0]}`,
  );
  const seen = await outside.leader();
  console.log(`the other client says: ${seen.state}`);

  const next = outside.campaign();
  // A waiter that misses the leader from the start has nothing left to wait after this.
  await pause(1.5 * beliefMs);
  proxy.silence();
  const silentAtMs = performance.now();
  await operator.delete(`/app/inc/jobs/${children[0]}`);
  let believedUntilMs = 0;
  const sampling = setInterval(() => {
    if (first.isLeading()) believedUntilMs = performance.now() - silentAtMs;
  }, 1);
  const second = await next;
  const wonAtMs = performance.now() - silentAtMs;
  const both = first.isLeading() && second.isLeading();
  if (first.isLeading()) await pause(beliefMs);
  clearInterval(sampling);
  console.log(`the old leader believed until ${believedUntilMs.toFixed(0)} ms`);
  console.log(`the other one led at ${wonAtMs.toFixed(0)} ms`);
  if (both) return 'FAILED: two led at the same time';
  if (seen.state !== 'led') return `FAILED: leader() said "${seen.state}" while one led`;
  return 'ok: the other one led after the belief of the first was over';
}

function candidate(id, client, root) {
  const election = createElection({
    name: 'jobs',
    backend: zookeeper(client, { root }),
    candidate: { id },
    stopTimeout: '1s',
  });
  cleanUps.push(() => election.close());
  return election;
}

async function clientOf(connectionString) {
  const client = await connect(connectionString, { sessionTimeout });
  cleanUps.push(() => client.close());
  return client;
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
