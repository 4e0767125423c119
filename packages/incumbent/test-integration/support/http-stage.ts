/** Servers on loopback and terms of a test's own making, closed when the test is over. */
import { once } from 'node:events';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { Agent } from 'undici';
import type { TestContext } from 'vitest';
import type { TermOutcome } from '../../src/core/term.ts';
import type {
  LeaderOnly,
  LeaderOnlyOptions,
  ToLeaderOptions,
} from '../../src/following/http/index.ts';
import { leaderOnly, toLeader } from '../../src/following/http/index.ts';
import type { Term } from '../../src/index.ts';
import { NotLeadingError } from '../../src/index.ts';
import type { View } from '../../src/record/record.ts';
import { candidate, FakeElection, ledBy } from '../../test/support/fake-election.ts';

export interface Listening {
  readonly server: Server;
  readonly address: string;
  readonly origin: string;
  /** Connections that were made, ever. */
  readonly connections: Socket[];
}

export type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;

export class HttpStage {
  readonly fake: FakeElection = new FakeElection('billing');
  readonly #closers: (() => unknown)[] = [];

  constructor(context: Pick<TestContext, 'onTestFinished'>) {
    context.onTestFinished(() => this.close());
  }

  keep(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** The latest first. */
  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }

  async listen(handler: Handler): Promise<Listening> {
    const server = createServer(handler as RequestListener);
    const connections: Socket[] = [];
    server.on('connection', (socket) => connections.push(socket));
    this.keep(() => {
      server.closeAllConnections();
      server.close();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    return { server, address, origin: `http://${address}`, connections };
  }

  /** An address without a listening server. */
  async deadAddress(): Promise<string> {
    const { server, address } = await this.listen(() => {});
    server.close();
    await once(server, 'close');
    return address;
  }

  /** From now on `address` leads, as observers see it. */
  lead(address: string, token: bigint): Promise<void> {
    return this.show(ledBy(candidate(`at ${address}`, { addresses: [address] }), token));
  }

  /** Resolves when all followers have seen it. */
  async show(view: View): Promise<void> {
    this.fake.show(view);
    await setImmediate();
  }

  agent(options: ToLeaderOptions = {}, agentOptions: Agent.Options = {}): Dispatcher {
    const agent = new Agent(agentOptions);
    const interceptor = toLeader(this.fake.election, { waitTimeout: '20s', ...options });
    this.keep(() => agent.destroy());
    this.keep(() => interceptor.close());
    return agent.compose(interceptor);
  }

  only(options: Partial<LeaderOnlyOptions>): LeaderOnly {
    const only = leaderOnly({ election: this.fake.election, term: () => undefined, ...options });
    this.keep(() => only.close());
    return only;
  }
}

/** A term that ends when the test says so. */
export class FakeTerm {
  readonly election: string;
  readonly token: bigint;
  leads = true;
  isReady = true;
  #end: (outcome: TermOutcome) => void = () => {};
  readonly #stop = new AbortController();
  readonly signal: AbortSignal = this.#stop.signal;
  /** How often its end was waited for. */
  waits = 0;
  readonly #ended: Promise<TermOutcome> = new Promise((resolve) => {
    this.#end = resolve;
  });

  constructor(token: bigint, election = 'billing') {
    this.token = token;
    this.election = election;
  }

  get term(): Term {
    return this as unknown as Term;
  }

  get ended(): Promise<TermOutcome> {
    this.waits += 1;
    return this.#ended;
  }

  isLeading(): boolean {
    return this.leads;
  }

  remaining(): number {
    return this.leads ? 10_000 : 0;
  }

  assertLeading(minMs = 0): void {
    if (this.remaining() <= minMs) {
      throw new NotLeadingError(this.election, this.token, minMs, this.remaining());
    }
  }

  /** It is told to stop. The belief holds until the test says otherwise. */
  stop(): void {
    this.#stop.abort();
  }

  /** Belief is over, and the seat is given back. */
  end(): void {
    this.leads = false;
    this.#stop.abort();
    this.#end({ reason: 'resigned', released: true, overrunMs: 0 });
  }
}

/** Answers with the body that came, and says what came. */
export async function echo(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request);
  response.setHeader('content-type', 'application/json');
  const { method, url, headers } = request;
  response.end(JSON.stringify({ method, url, headers, body }));
}

export interface Echo {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}
