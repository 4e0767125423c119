// A client whose credentials are refused. Nothing keeps this process but the client: it ends when the
// client has really stopped. Says what it saw.
import { createClient } from '../../dist/index.js';

const client = createClient(process.argv[2], {
  auth: [{ scheme: 'no-such-scheme', credentials: 'joe' }],
});
const states = [];
client.onState(({ state }) => states.push(state));
client.get('/').catch(() => {});

process.on('exit', () => {
  const { attempts } = client.counters;
  process.stdout.write(`${JSON.stringify({ ended: { states, attempts } })}\n`);
});
