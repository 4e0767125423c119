// A candidate that leads as long as it can:
//
//   node candidate.mjs <kind> <where> <id> <election> <lease>
import { createElection } from 'incumbent';
import {
  hasSessions,
  openBackend,
} from '../../../shards/test-integration/support/open-backend.mjs';

const [kind, where, id, name, lease] = process.argv.slice(2);
const { backend } = await openBackend(kind, where, lease);
const timing = hasSessions(kind) ? {} : { lease };
const election = createElection({ name, backend, candidate: { id }, init: 'auto', ...timing });
process.stdout.write('waits\n');
await election.lead(
  ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
);
