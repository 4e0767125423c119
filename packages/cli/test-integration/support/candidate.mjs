// candidate.mjs DIRECTORY ELECTION ID: leads until it is told to stop.
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';

const [directory, name, id] = process.argv.slice(2);
const election = createElection({
  name,
  backend: file(directory),
  // Tests prove deaths here, so no test waits for a lease to run out. A busy machine is never late
  // for it.
  lease: '20s',
  candidate: { id, addresses: [`${id}.example:80`] },
});
for await (const term of election.terms()) {
  console.log(`leading ${term.token}`);
  if (!term.signal.aborted) {
    await new Promise((resolve) => {
      term.signal.addEventListener('abort', resolve, { once: true });
    });
  }
  console.log(`stopped ${term.token}`);
}
