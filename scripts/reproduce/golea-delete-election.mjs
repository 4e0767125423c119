// Comcast's go-leaderelection ends an election by `DeleteElection`. One of ours leads, and its work
// goes on; one of theirs waits. Their library's part is played step by step, with its own patience.
// It waits ten times 10 ms for the candidates to go, and ten times 10 ms for the election itself.

import { connect } from '@incumbent/zookeeper';
import { startServer } from '@incumbent/zookeeper-testing';
import { createElection } from 'incumbent';
import { zookeeper } from 'incumbent/zookeeper';

const rounds = 15;
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
  const client = async () => {
    const made = await connect(server.connectionString, { sessionTimeoutMs: 10_000 });
    cleanUps.push(() => made.close());
    return made;
  };
  const [ours, theirs, admin] = [await client(), await client(), await client()];
  const backend = zookeeper(ours, { layout: 'golea', root: '/', predecessorWait: 'off' });

  let failed = 0;
  for (let round = 1; round <= rounds; round += 1) {
    const name = `jobs-${round}`;
    await admin.create(`/${name}`);
    const election = createElection({ name, backend, candidate: { id: 'ours' } });
    const term = await election.campaign();
    await follow(theirs, `/${name}`);
    try {
      await deleteElection(admin, `/${name}`);
    } catch (error) {
      failed += 1;
      console.log(`round ${round}: ${error.message}`);
    }
    await term[Symbol.asyncDispose]();
    await election.close();
  }
  console.log(`DeleteElection failed in ${failed} of ${rounds} rounds`);

  await admin.create('/marked');
  const election = createElection({ name: 'marked', backend, candidate: { id: 'ours' } });
  const term = await election.campaign();
  const markedAtMs = performance.now();
  await admin.create('/marked/DONE', 'done');
  const noticed = await Promise.race([
    new Promise((resolve) => term.signal.addEventListener('abort', () => resolve(true))),
    pause(10_000).then(() => false),
  ]);
  const ms = (performance.now() - markedAtMs).toFixed(0);
  console.log(
    noticed ? `the leader heard of DONE after ${ms} ms` : 'the leader did not hear of DONE',
  );
  await term[Symbol.asyncDispose]();
  await election.close();

  if (!noticed) return 'FAILED: our leader does not hear of DONE within 10 s';
  if (failed > 0) return `FAILED: DeleteElection found children of ours ${failed} times`;
  return 'ok: DeleteElection finds no children of ours, and our leader hears of DONE';
}

/** A member of theirs: it watches DONE, its own place and the one before, and resigns at DONE. */
async function follow(client, resource) {
  const done = await client.watch(`${resource}/DONE`);
  const { path } = await client.create(`${resource}/le_`, 'theirs', {
    ephemeral: true,
    sequential: true,
  });
  void done.changed.then(() => client.delete(path).catch(() => {}));
}

async function deleteElection(client, resource) {
  await client.create(`${resource}/DONE`, 'done');
  const candidates = (await childrenOf(client, resource)).filter((name) => name !== 'DONE');
  for (let tries = 0; tries < 10; tries += 1) {
    const transaction = client.transaction();
    for (const name of candidates.sort().reverse()) transaction.delete(`${resource}/${name}`, 0);
    if (await succeeds(transaction.commit())) break;
    if ((await childrenOf(client, resource)).length === 1) break;
    await pause(10);
  }
  for (let tries = 0; tries < 10; tries += 1) {
    const transaction = client.transaction().delete(`${resource}/DONE`).delete(resource);
    if (await succeeds(transaction.commit())) return;
    if (!(await client.exists(resource))) return;
    await pause(10);
  }
  throw new Error(`node has children: ${(await childrenOf(client, resource)).join(', ')}`);
}

async function childrenOf(client, path) {
  return [...(await client.getChildren(path)).children];
}

function succeeds(promise) {
  return promise.then(
    () => true,
    () => false,
  );
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
