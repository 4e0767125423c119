// A client whose credentials are refused. Only the client keeps this process running, so it ends
// when the client has really stopped. It prints its states.
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
