/**
 * Invoice numbers without gaps: every copy can be called, one hands them out.
 *
 *     REDIS_URL=redis://… node examples/dist/grpc/service.js      # as often as you like
 */
import { once } from 'node:events';
import type { handleUnaryCall } from '@grpc/grpc-js';
import * as grpc from '@grpc/grpc-js';
import type { Term } from 'incumbent';
import { createElection } from 'incumbent';
import { callsEnded, requireLeadership } from 'incumbent/grpc';
import type { RedisGuard } from 'incumbent/redis';
import { redis } from 'incumbent/redis';
import { Redis } from 'ioredis';
import { numbers } from './numbers.ts';

const { REDIS_URL = 'redis://localhost', LEASE = '15s', HOST = '127.0.0.1' } = process.env;

const connection = new Redis(REDIS_URL, { maxRetriesPerRequest: null });
const election = createElection({
  name: 'invoice-numbers',
  backend: redis(connection),
  lease: LEASE,
});

let term: Term<RedisGuard> | undefined;
const server = new grpc.Server({
  interceptors: [requireLeadership(grpc, { election, term: () => term })],
});
server.addService(numbers, { next: answer });
const port = await new Promise<number>((resolve, reject) => {
  server.bindAsync(`${HOST}:0`, grpc.ServerCredentials.createInsecure(), (error, bound) =>
    error === null ? resolve(bound) : reject(error),
  );
});

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());

// Clients read this of the leader. They may repeat a call that was refused, and they wait while
// nobody leads, as long as their deadlines allow.
const connectionParameters = JSON.stringify({
  methodConfig: [
    {
      name: [{ service: 'invoices.Numbers' }],
      waitForReady: true,
      retryPolicy: {
        maxAttempts: 5,
        initialBackoff: '0.02s',
        maxBackoff: '1s',
        backoffMultiplier: 3,
        retryableStatusCodes: ['UNAVAILABLE'],
      },
    },
  ],
});
const candidate = { addresses: [`${HOST}:${port}`], metadata: { connectionParameters } };

await election.lead(serve, { candidate, signal: stop.signal }).catch((error: unknown) => {
  if (!stop.signal.aborted) throw error;
});
await election.close();
server.forceShutdown();
connection.disconnect();

/** While this copy leads. */
async function serve(mine: Term<RedisGuard>): Promise<void> {
  term = mine;
  await once(mine.signal, 'abort'); // no call is taken any more
  await callsEnded(mine); // those that were begun have their answer before the next one leads
}

/** Called only while this copy leads. */
function answer(...[call, reply]: Parameters<handleUnaryCall<unknown, unknown>>): void {
  nextNumber(String(call.request)).then(
    (number) => reply(null, number),
    (error: Error) => reply({ code: grpc.status.INTERNAL, details: error.message }),
  );
}

async function nextNumber(series: string): Promise<unknown> {
  if (term === undefined) throw new Error('nobody leads here');
  // Redis refuses this to an older term, so no number is given twice, however late it comes.
  const take = `
    local number = redis.call('INCR', KEYS[2])
    redis.call('RPUSH', KEYS[3], number .. ' ' .. ARGV[1])
    return number`;
  return term.guard.run(take, [`number:${series}`, `given:${series}`]);
}
