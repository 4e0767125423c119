// A client that is closed while its only host says nothing. Nothing keeps this process but the client.
// Says how long after close() it ended.
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '../../dist/index.js';

const client = createClient(process.argv[2], { sessionTimeout: 20_000 });
const call = client.get('/').catch(({ code }) => code);
await delay(100);
const startMs = performance.now();
process.on('exit', () => {
  process.stdout.write(`${JSON.stringify({ endedAfterMs: performance.now() - startMs })}\n`);
});
await client.close();
process.stdout.write(`${JSON.stringify({ call: await call })}\n`);
