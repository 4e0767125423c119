// A nightly job on a real Redis holds its seat for a minute. It is done, and its machine dies:
// runner, guard and all. The seat stays closed, and somebody wants to run the job again at once.
// `incumbent vacate` must not lift the hold while the holder may be alive, and must lift it when
// its lease is over. It must say whose the hold was, and then the job can be run.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { redisAvailable, startRedis } from '@incumbent/servers';

const bin = fileURLToPath(new URL('../../packages/cli/dist/bin.js', import.meta.url));
const cleanUps = [];
const overdue = setTimeout(() => end('FAILED: not done within two minutes'), 120_000);
let verdict;
try {
  verdict = await reproduce();
} finally {
  clearTimeout(overdue);
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
}
end(verdict);

async function reproduce() {
  const missing = redisAvailable();
  if (missing !== undefined) return `FAILED: ${missing}`;
  const server = await startRedis();
  cleanUps.push(() => server.close());

  const run = (id) => [
    ...['run', '-e', 'nightly', '--store', server.url, '--id', id, '--lease', '4s', '--json'],
    ...['--try', '--hold-at-least', '60s', '--', 'true'],
  ];
  // In a group of its own, so that it dies as a machine does: at once, with all that it has started.
  const holder = start(run('one'), { detached: true });
  await holder.says('"event":"exited"');
  await waitFor(async () => (await status(server.url)).reservedUntil !== null);
  process.kill(-holder.child.pid, 'SIGKILL');
  await holder.ended;

  const early = await start(['vacate', '-e', 'nightly', '--store', server.url]).ended;
  console.log(`at once: ${early.code}, ${early.text}`);
  if (early.code !== 1) return 'FAILED: the hold of a holder that may be alive was lifted';

  const again = await waitFor(async () => {
    const asked = await start(['vacate', '-e', 'nightly', '--store', server.url]).ended;
    return asked.code === 0 ? asked : undefined;
  });
  console.log(`when its lease is over: ${again.code}, ${again.text}`);
  if (!again.text.includes('"one"')) return 'FAILED: it does not say whose hold it was';

  const next = start(run('two'), { detached: true });
  const started = await Promise.race([next.says('"event":"started"'), next.ended]);
  if (next.child.exitCode === null) process.kill(-next.child.pid, 'SIGKILL');
  if (started?.code !== undefined) return `FAILED: the job cannot be run: ${started.text}`;
  return 'ok: the hold was lifted when its holder was surely dead, and the job ran again';
}

async function status(url) {
  const { text } = await start(['status', '-e', 'nightly', '--store', url, '--json']).ended;
  return JSON.parse(text);
}

/** Runs a command; `text` is all that it has said. */
function start(args, options = {}) {
  const child = spawn(process.execPath, [bin, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options,
  });
  const heard = new Set();
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (chunk) => {
      text += chunk;
      for (const listen of heard) listen();
    });
  }
  const ended = new Promise((resolve) => {
    child.once('close', (code) => resolve({ code, text: text.trim() }));
  });
  const says = (words) =>
    new Promise((resolve) => {
      const listen = () => {
        if (!text.includes(words)) return;
        heard.delete(listen);
        resolve();
      };
      heard.add(listen);
      listen();
    });
  return { child, ended, says };
}

async function waitFor(look) {
  for (;;) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function end(text) {
  console.log(text);
  process.exit(text.startsWith('ok') ? 0 : 1);
}
