// A client that is closed while its only host is silent. Only the client keeps this process
// running. It prints how its call ended, and how many timers are left when it is closed.
import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '../../dist/index.js';

const client = createClient(process.argv[2], { sessionTimeoutMs: 20_000 });
const call = client.get('/').catch(({ code }) => code);
await delay(100);
await client.close();
process.stdout.write(`${JSON.stringify({ call: await call })}\n`);
const timers = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
process.stdout.write(`${JSON.stringify({ timers })}\n`);
