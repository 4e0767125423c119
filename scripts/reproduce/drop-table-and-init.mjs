// A leader on a real PostgreSQL server believes while its table is dropped and made anew, and hears
// nothing of it. A process that starts then knows nothing of that leader. It must not lead before
// the old belief is over, nor with a token that was given before.

import { postgresAvailable, startPostgres } from '@incumbent/servers';
import { startProxy } from '@incumbent/zookeeper-testing';
import { createElection } from 'incumbent';
import { postgres } from 'incumbent/postgres';
import pg from 'pg';

const cleanUps = [];
const overdue = setTimeout(() => end('FAILED: not done within a minute'), 60_000);
let verdict;
try {
  verdict = await reproduce();
} finally {
  clearTimeout(overdue);
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
}
end(verdict);

async function reproduce() {
  const missing = postgresAvailable();
  if (missing !== undefined) return `FAILED: ${missing}`;
  const server = await startPostgres();
  cleanUps.push(() => server.close());

  const proxy = await startProxy({ host: '127.0.0.1', port: server.port });
  cleanUps.push(() => proxy.close());

  const old = candidate('old', server.url.replace(`:${server.port}`, `:${proxy.port}`));
  await old.election.init();
  const first = await old.election.campaign();
  console.log(`the old leader has token ${first.token}`);
  // As if a fail-over had cut it off.
  proxy.silence();
  await server.sql('drop table incumbent_election');
  const droppedAtMs = performance.now();
  let believedUntilMs = 0;
  const sampling = setInterval(() => {
    if (first.isLeading()) believedUntilMs = performance.now() - droppedAtMs;
  }, 1);

  const fresh = candidate('new', server.url);
  await fresh.election.init();
  const second = await fresh.election.campaign();
  const wonAtMs = performance.now() - droppedAtMs;
  const both = first.isLeading();
  while (first.isLeading()) await new Promise((resolve) => setTimeout(resolve, 10));
  clearInterval(sampling);
  console.log(`the old leader believed until ${believedUntilMs.toFixed(0)} ms after the drop`);
  console.log(`the new one led at ${wonAtMs.toFixed(0)} ms, with token ${second.token}`);
  if (both) return 'FAILED: two led at the same time';
  if (second.token <= first.token) return 'FAILED: a token was given again';
  return 'ok: the new one led after the belief of the old one was over, with a higher token';
}

function candidate(id, url) {
  const pool = new pg.Pool({ connectionString: url });
  pool.on('error', () => {});
  const backend = postgres(pool);
  const election = createElection({ name: 'job', backend, lease: '4s', candidate: { id } });
  return { pool, election };
}

function end(text) {
  console.log(text);
  process.exit(text.startsWith('ok') ? 0 : 1);
}
