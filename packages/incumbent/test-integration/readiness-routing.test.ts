/**
 * Requests during hand-overs in which each leader must prepare first: none may reach it before it
 * has said that it is ready. `READINESS=full` sends 1,000 requests during 20 hand-overs, with 0.3 to
 * 2 s to prepare.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type { TestContext } from 'vitest';
import { describe, expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import {
  callsEnded,
  registerLeaderResolver,
  requireLeadership,
} from '../src/following/grpc/index.ts';
import { leaderOnly, toLeader } from '../src/following/http/index.ts';
import type { Backend, Election, LeadOptions, Term } from '../src/index.ts';
import { createElection } from '../src/index.ts';
import type { Grpc } from './support/grpc-ledger.ts';
import { read, serve, versions } from './support/grpc-ledger.ts';

const isFull = process.env['READINESS'] === 'full';
const handOvers = isFull ? 20 : 6;
const requests = isFull ? 1_000 : 240;
const [leastMs, mostMs] = isFull ? [300, 2_000] : [20, 120];
const ids = ['a', 'b', 'c'];

/** Requests that were served, in all and by a leader that had not prepared yet. */
class Count {
  served = 0;
  early = 0;
  terms = 0;
}

/** A copy of a service: prepares when it leads, and passes the seat on after its share. */
class Copy {
  readonly election: Election;
  #term: Term | undefined;
  #isPrepared = false;
  #servedInTerm = 0;
  readonly #count: Count;

  constructor(backend: Backend, id: string, address: string, count: Count) {
    this.#count = count;
    const candidate = { id, addresses: [address] };
    this.election = createElection({ name: 'orders', backend, candidate, lease: '15s' });
  }

  get term(): Term | undefined {
    return this.#term?.signal.aborted === false ? this.#term : undefined;
  }

  serve(): void {
    this.#count.served += 1;
    if (!this.#isPrepared) this.#count.early += 1;
    this.#servedInTerm += 1;
    const share = requests / (handOvers + 1);
    if (this.#servedInTerm >= share && this.#count.terms <= handOvers) this.#term?.resign();
  }

  /** Leads again and again. @param says false: its work says nothing of being ready */
  async lead(says: boolean, drained: (term: Term) => Promise<unknown>, signal: AbortSignal) {
    const options: LeadOptions = says ? { ready: 'manual', signal } : { signal };
    const work = async (term: Term) => {
      this.#count.terms += 1;
      this.#servedInTerm = 0;
      this.#term = term;
      // The time that preparing takes.
      await sleep(leastMs + Math.random() * (mostMs - leastMs), undefined, { signal: term.signal });
      this.#isPrepared = true;
      if (says) await term.ready();
      if (!term.signal.aborted) await once(term.signal, 'abort');
      this.#term = undefined;
      await drained(term);
      this.#isPrepared = false;
    };
    await this.election.lead(work, options).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }
}

/** Several clients at once, each with one request after the other. */
async function ask(send: () => Promise<boolean>, count: Count): Promise<void> {
  const clients = Array.from({ length: 8 }, async () => {
    while (count.served < requests || count.terms <= handOvers) await send();
  });
  await Promise.all(clients);
}

async function overHttp(context: TestContext, says: boolean): Promise<Count> {
  const count = new Count();
  const backend = memory();
  const stop = new AbortController();
  const leading: Promise<void>[] = [];
  for (const id of ids) {
    let copy: Copy | undefined;
    const server = createServer((incoming, response) => {
      only(incoming, response, () => {
        copy?.serve();
        response.end(id);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const member = new Copy(backend, id, `127.0.0.1:${port}`, count);
    copy = member;
    const only = leaderOnly({ election: member.election, term: () => member.term });
    leading.push(member.lead(says, () => only.drained(), stop.signal));
    context.onTestFinished(async () => {
      only.close();
      await member.election.close();
      server.close();
      server.closeAllConnections();
    });
  }
  const observer = createElection({ name: 'orders', backend });
  const follow = toLeader(observer, { waitTimeout: '1m', attempts: 100 });
  const dispatcher = new Agent().compose(follow);
  context.onTestFinished(async () => {
    follow.close();
    await observer.close();
  });
  await ask(async () => {
    const { statusCode, body } = await request('http://orders/', { dispatcher });
    await body.dump();
    return statusCode === 200;
  }, count);
  stop.abort();
  await Promise.all(leading);
  return count;
}

async function overGrpc(context: TestContext, grpc: Grpc, says: boolean): Promise<Count> {
  const count = new Count();
  const backend = memory();
  const stop = new AbortController();
  const leading: Promise<void>[] = [];
  for (const id of ids) {
    let copy: Copy | undefined;
    const handler = (_call: unknown, reply: (error: null, value: string) => void) => {
      copy?.serve();
      reply(null, id);
    };
    const guard = requireLeadership(grpc, {
      election: { name: 'orders' },
      term: () => copy?.term,
    });
    const server = await serve(grpc, { Read: handler }, [guard]);
    const member = new Copy(backend, id, server.address, count);
    copy = member;
    leading.push(member.lead(says, callsEnded, stop.signal));
    context.onTestFinished(async () => {
      await member.election.close();
      await server.close();
    });
  }
  const observer = createElection({ name: 'orders', backend });
  const resolver = registerLeaderResolver(grpc, { elections: observer });
  const client = new grpc.Client('incumbent:///orders', grpc.credentials.createInsecure());
  context.onTestFinished(async () => {
    client.close();
    resolver.close();
    await observer.close();
  });
  await ask(async () => {
    const answer = await read(grpc, client, { waitForReady: true });
    return answer.status.code === grpc.status.OK;
  }, count);
  stop.abort();
  await Promise.all(leading);
  return count;
}

/** For the message of a failure, and for whoever runs the long form. */
function tell(what: string, { served, early, terms }: Count): string {
  return `${what}: ${served} requests served in ${terms} terms, ${early} by a leader not ready`;
}

describe('a request reaches no leader before its work is ready', () => {
  test('over HTTP', { timeout: 300_000 }, async (context) => {
    const count = await overHttp(context, true);
    console.log(tell('HTTP', count));
    expect(count.served).toBeGreaterThanOrEqual(requests);
    expect(count.terms).toBeGreaterThan(handOvers);
    expect(count.early).toBe(0);
  });

  test('over HTTP: without ready() some do, so this test can fail', async (context) => {
    expect((await overHttp(context, false)).early).toBeGreaterThan(0);
  });

  const [[version, grpc]] = versions as [(typeof versions)[number]];
  test(`over gRPC (${version})`, { timeout: 300_000 }, async (context) => {
    const count = await overGrpc(context, grpc, true);
    console.log(tell('gRPC', count));
    expect(count.served).toBeGreaterThanOrEqual(requests);
    expect(count.terms).toBeGreaterThan(handOvers);
    expect(count.early).toBe(0);
  });

  test(`over gRPC (${version}): without ready() some do`, async (context) => {
    expect((await overGrpc(context, grpc, false)).early).toBeGreaterThan(0);
  });
});
