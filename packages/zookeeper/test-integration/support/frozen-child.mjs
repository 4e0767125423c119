// A client in a process that a test can stop and continue. It prints every event as a line of JSON,
// in the order in which it hears of them.
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
  // When this line is printed the request has left.
  setImmediate(() => say({ sent: true }));
});
