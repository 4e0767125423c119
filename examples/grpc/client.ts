/**
 * Takes numbers from whoever leads.
 *
 *     REDIS_URL=redis://… EVERY_MS=1000 node examples/dist/grpc/client.js
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceError } from '@grpc/grpc-js';
import * as grpc from '@grpc/grpc-js';
import { createElection } from 'incumbent';
import { registerLeaderResolver } from 'incumbent/grpc';
import { redis } from 'incumbent/redis';
import { Redis } from 'ioredis';
import { numbers } from './numbers.ts';

const { REDIS_URL = 'redis://localhost', LEASE = '15s' } = process.env;
const everyMs = Number(process.env['EVERY_MS'] ?? 1000);
// Longer than it takes until somebody leads after a crash: a lease and a little.
const timeoutMs = Number(process.env['TIMEOUT_MS'] ?? 30_000);

const connection = new Redis(REDIS_URL, { maxRetriesPerRequest: null });
const election = createElection({
  name: 'invoice-numbers',
  backend: redis(connection),
  lease: LEASE,
});
const resolver = registerLeaderResolver(grpc, { elections: election });
const Numbers = grpc.makeGenericClientConstructor(numbers, 'Numbers');
const client = new Numbers('incumbent:///invoice-numbers', grpc.credentials.createInsecure());

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());

while (!stop.signal.aborted) {
  console.log(await next('2026').catch(explain));
  await sleep(everyMs, undefined, { signal: stop.signal }).catch(() => {});
}
client.close();
resolver.close();
await election.close();
connection.disconnect();

function next(series: string): Promise<unknown> {
  const { path, requestSerialize, responseDeserialize } = numbers.next;
  const deadline = Date.now() + timeoutMs; // also for a leader that is frozen and answers never
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      series,
      { deadline },
      (error, number) => (error === null ? resolve(number) : reject(error)),
    );
  });
}

/** Only of a call that was refused, or never sent, is it known that no number was taken. */
function explain({ details, metadata }: ServiceError): string {
  const isRefused = metadata.get('incumbent-refused').length > 0;
  // gRPC has repeated it, and what became of the tries before is not told.
  const wasRepeated = metadata.get('grpc-previous-rpc-attempts').length > 0;
  const isNothing = isRefused && !wasRepeated;
  return `${isNothing ? 'no number was taken' : 'one may be lost'}: ${details}`;
}
