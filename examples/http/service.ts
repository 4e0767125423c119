/**
 * A service of which one copy serves: the others send their requests to it.
 *
 *     PORT=8081 STORAGE=http://127.0.0.1:8090 ELECTIONS=/var/lib/orders node examples/dist/http/service.js
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import type { Term } from 'incumbent';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { carryToken, leaderOnly } from 'incumbent/http';
import type { Dispatcher } from 'undici';
import { Agent, request } from 'undici';

const {
  PORT = '0',
  STORAGE = 'http://127.0.0.1:8090',
  ELECTIONS = '.',
  LEASE = '15s',
} = process.env;
const agent = new Agent();
const election = createElection({ name: 'orders', backend: file(ELECTIONS), lease: LEASE });

/** The term of this copy while it leads, and what it serves with. */
let leading: { readonly term: Term; readonly storage: Dispatcher } | undefined;

const only = leaderOnly({
  election,
  term: () => (leading?.term.signal.aborted === false ? leading.term : undefined),
  followers: 'proxy', // or 'redirect', for clients that follow a 307
});
const app = express();
app.use(only); // before whatever reads bodies
app.put('/orders/:id', express.json(), async (incoming, response) => {
  const { term, storage } = leading as NonNullable<typeof leading>;
  term.assertLeading(500); // throws unless half a second of belief is left for the next step
  const { statusCode, body } = await request(`${STORAGE}${incoming.path}`, {
    dispatcher: storage,
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(incoming.body),
  });
  await body.dump();
  response.status(statusCode === 204 ? 201 : 502).end();
});
const server = app.listen(Number(PORT), '127.0.0.1');
await once(server, 'listening');

const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort());
const { port } = server.address() as AddressInfo;
const candidate = { addresses: [`127.0.0.1:${port}`] }; // where the others reach this copy
await election.lead(serve, { candidate, signal: stop.signal }).catch((error: unknown) => {
  if (!stop.signal.aborted) throw error;
});
only.close();
await election.close();
server.close();
await agent.close();

/** While this copy leads. */
async function serve(term: Term): Promise<void> {
  leading = { term, storage: agent.compose(carryToken(term)) };
  await once(term.signal, 'abort'); // until this copy must lead no more: requests go to the next leader
  await only.drained(); // the seat is given back when those that were begun are answered
  leading = undefined;
}
