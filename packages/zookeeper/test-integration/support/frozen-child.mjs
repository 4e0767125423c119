// A client in a process that a test can stop and continue. Says all that it is told, a line of JSON
// each, in the order in which it is told it.
import { createInterface } from 'node:readline';
import { connect } from '../../dist/index.js';

const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
const [url, folder] = process.argv.slice(2);

const client = await connect(`${url}${folder}`, {
  sessionTimeoutMs: 1_000,
  requestTimeoutMs: 60_000,
});
client.onState(({ state }) => say({ state }));
await client.create('/held', null, { ephemeral: true });
const watch = await client.watch('/watched');
void watch.changed.then((event) => say({ watch: event.type }));
say({ ready: true });

createInterface({ input: process.stdin }).on('line', (line) => {
  if (line !== 'get') return;
  client.get('/').then(
    () => say({ get: 'ok' }),
    ({ code }) => say({ get: code }),
  );
  // When this is said the request has left.
  setImmediate(() => say({ sent: true }));
});
