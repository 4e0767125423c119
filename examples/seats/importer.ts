/**
 * At most three copies import at once.
 *
 *     node examples/dist/seats/importer.js      # as often as you like
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';

const election = createElection({ name: 'imports', backend: file('/var/tmp/incumbent'), seats: 3 });

await election.lead(async (term) => {
  console.log(`seat ${term.seat}, token ${term.token}`);
  while (!term.signal.aborted) {
    term.assertLeading();
    await importNext(term.signal);
  }
});

async function importNext(signal: AbortSignal): Promise<void> {
  await sleep(1_000, undefined, { signal });
}
