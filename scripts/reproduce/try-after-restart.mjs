// Redis, and then PostgreSQL, is restarted and keeps its data. Three copies of a nightly job are
// started together with `incumbent run --try`. Nobody may be elected for a lease, for the server
// may have forgotten a leader. And yet the job must run, once. One copy runs it, the other two name
// that copy, and their exit codes tell that it is done.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { postgresAvailable, redisAvailable, startPostgres, startRedis } from '@incumbent/servers';

const bin = fileURLToPath(new URL('../../packages/cli/dist/bin.js', import.meta.url));
/** `incumbent: election "nightly" was not won: "two" was elected meanwhile with token 2`. */
const namesLeader = /was not won: "(one|two|three)" (leads|was elected meanwhile)/;
const cleanUps = [];
const overdue = setTimeout(() => end('FAILED: not done within four minutes'), 240_000);
let verdict;
try {
  verdict =
    (await reproduce('Redis', redisAvailable(), () => startRedis({ appendFsync: 'always' }))) ??
    (await reproduce('PostgreSQL', postgresAvailable(), () => startPostgres())) ??
    'ok: after each restart one copy ran the job, and the others said who';
} finally {
  clearTimeout(overdue);
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
}
end(verdict);

/** @returns what has failed */
async function reproduce(name, missing, start) {
  if (missing !== undefined) return `FAILED: ${missing}`;
  const server = await start();
  cleanUps.push(() => server.close());
  const run = (id, ...options) =>
    incumbent('run', '-e', 'nightly', '--store', server.url, '--id', id, ...options);
  const first = await run('before', '--lease', '4s', '--', 'true');
  if (first.code !== 0)
    return `FAILED: ${name}: the first run ended with ${first.code}: ${first.text}`;

  await server.kill();
  await server.start();
  const startedAtMs = performance.now();
  const copies = await Promise.all(
    ['one', 'two', 'three'].map((id) =>
      run(id, '--lease', '4s', '--try', '--', 'sh', '-c', 'echo "the job ran as $INCUMBENT_ID"'),
    ),
  );
  const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
  console.log(`${name}: three copies were done ${seconds} s after its restart`);
  for (const { code, text } of copies) console.log(`  ${code}: ${text.split('\n').at(-1)}`);
  const ran = copies.filter(({ text }) => text.includes('the job ran as'));
  if (ran.length !== 1) return `FAILED: ${name}: the job ran ${ran.length} times`;
  if (ran[0].code !== 0) return `FAILED: ${name}: who ran it ended with ${ran[0].code}`;
  const others = copies.filter((copy) => copy !== ran[0]);
  const who = others.map(({ code, text }) =>
    code === 1 ? namesLeader.exec(text)?.[1] : undefined,
  );
  if (who.some((id) => id !== ran[0].id))
    return `FAILED: ${name}: the others say ${who.join(', ')}`;
}

function incumbent(...args) {
  const child = spawn(process.execPath, [bin, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (chunk) => {
      text += chunk;
    });
  }
  const id = args[args.indexOf('--id') + 1];
  return new Promise((resolve) => {
    child.once('close', (code) => resolve({ id, code, text: text.trim() }));
  });
}

function end(text) {
  console.log(text);
  process.exit(text.startsWith('ok') ? 0 : 1);
}
