/** A candidate that serves over gRPC and HTTP while it leads. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as grpc from '@grpc/grpc-js';
import express from 'express';
import type { Election, Term } from 'incumbent';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { requireLeadership } from 'incumbent/grpc';
import { leaderOnly } from 'incumbent/http';
import { serve } from '../../calls/serve.ts';
import { monotonicMs } from '../../clock.ts';
import { calls } from '../call.ts';
import type { Ports, Served, ServiceMethods } from '../messages.ts';

let term: Term | undefined;
let candidacy: (() => Election) | undefined;
let candidate: Election | undefined;

const served = (): Served => ({ token: String(term?.token), servedMs: monotonicMs() });
const servedByAnybody = (): Served => ({ token: null, servedMs: monotonicMs() });

serve<ServiceMethods>({
  async open({ id, directory, election, leaseMs }) {
    const backend = file(directory);
    const options = { name: election, backend, lease: leaseMs };
    const follower = createElection(options);
    const ports = { grpc: await serveGrpc(follower), http: await serveHttp(follower) };
    const addresses = [`127.0.0.1:${ports.grpc}`, `http://127.0.0.1:${ports.http}`];
    candidacy = () => createElection({ ...options, candidate: { id, addresses } });
    return ports satisfies Ports;
  },
  async campaign() {
    // Another handle each time: one that has resigned stands aside for a second.
    candidate = candidacy?.();
    if (candidate === undefined) throw new Error('it is not open');
    term = await candidate.campaign();
    return { atMs: monotonicMs(), token: String(term.token) };
  },
  async resign() {
    const atMs = monotonicMs();
    await term?.[Symbol.asyncDispose]();
    await candidate?.close();
    return { atMs };
  },
});

async function serveGrpc(election: Election): Promise<number> {
  const guard = requireLeadership(grpc, {
    election,
    term: () => term,
    exempt: [calls.open.path],
  });
  const server = new grpc.Server({ interceptors: [guard] });
  type Callback = grpc.sendUnaryData<Served>;
  server.addService(calls, {
    led: (_call: unknown, callback: Callback) => callback(null, served()),
    open: (_call: unknown, callback: Callback) => callback(null, servedByAnybody()),
  });
  return new Promise((resolve, reject) => {
    const credentials = grpc.ServerCredentials.createInsecure();
    server.bindAsync('127.0.0.1:0', credentials, (error, port) =>
      error === null ? resolve(port) : reject(error),
    );
  });
}

async function serveHttp(election: Election): Promise<number> {
  const app = express();
  app.use('/led', leaderOnly({ election, term: () => term, followers: 'refuse' }));
  app.get('/led', (_request, response) => {
    response.json(served());
  });
  app.get('/open', (_request, response) => {
    response.json(servedByAnybody());
  });
  const server = createServer(app);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
