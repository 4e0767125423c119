/**
 * Orders something ten times a second, from whoever leads.
 *
 *     ELECTIONS=/var/lib/orders node examples/dist/http/client.js
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { toLeader } from 'incumbent/http';
import { Agent, request } from 'undici';

const { ELECTIONS = '.', LEASE = '15s' } = process.env;
const election = createElection({ name: 'orders', backend: file(ELECTIONS), lease: LEASE });
const dispatcher = new Agent().compose(toLeader(election)); // also for undici's fetch: { dispatcher }

let running = true;
process.once('SIGTERM', () => {
  running = false;
});
while (running) {
  console.log(await order('tea'));
  await sleep(100);
}
await election.close();
await dispatcher.close();

async function order(item: string): Promise<number | string> {
  try {
    // PUT, with an id of ours: may be sent to the next leader when the present one does not answer.
    const { statusCode, body } = await request(`http://orders/orders/${randomUUID()}`, {
      dispatcher,
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ item }),
    });
    await body.dump();
    return statusCode;
  } catch (error) {
    return (error as { code?: string }).code ?? String(error); // NO_LEADER: for two leases
  }
}
