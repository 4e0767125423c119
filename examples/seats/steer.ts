/** Shows the leaders of all seats, and asks them to go. */
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';

const election = createElection({ name: 'imports', backend: file('/var/tmp/incumbent'), seats: 3 });
for (const [index, view] of (await election.leaders()).entries()) {
  console.log(index + 1, view.leader?.id ?? 'vacant');
}
await election.vacate({ seat: 2 });
await election.transfer('host-7', { seat: 2 });
await election.drain('host-7', new Date(Date.now() + 3_600_000)); // from all seats
await election.close();
