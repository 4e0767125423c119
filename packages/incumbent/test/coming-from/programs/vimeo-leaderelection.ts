/** The program that docs/coming-from/vimeo-leaderelection.md shows. */
import { setTimeout as sleep } from 'node:timers/promises';

import { Storage } from '@google-cloud/storage';
import { createElection, selfAddresses } from 'incumbent';
import { gcs } from 'incumbent/gcs';

const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());

const backend = gcs(new Storage(), { bucket: 'elections', maxClockSkew: '5s' });
const candidate = {
  id: 'node-7',
  addresses: selfAddresses(50_051),
  metadata: { connectionParameters: '{"loadBalancingConfig":[{"round_robin":{}}]}' },
};
const election = createElection({ name: 'billing', backend, lease: '45s', candidate });
await election.lead(work, { signal: stop.signal, onStatus: (status) => console.log(status) });

/** The reader's own. */
async function work({ signal }: { readonly signal: AbortSignal }): Promise<void> {
  while (!signal.aborted) await sleep(1_000, undefined, { signal });
}
