/** Servers, a resolver and clients of one test, closed when it is over. */
import type { Client, ClientOptions, ServerUnaryCall, sendUnaryData } from '@grpc/grpc-js';
import type { TestContext } from 'vitest';
import { vi } from 'vitest';
import type {
  LeaderResolverHandle,
  LeaderResolverOptions,
} from '../../src/following/grpc/index.ts';
import { registerLeaderResolver } from '../../src/following/grpc/index.ts';
import type { Election } from '../../src/index.ts';
import { createElection } from '../../src/index.ts';
import type { Grpc, LedgerServer } from './grpc-ledger.ts';
import { serve } from './grpc-ledger.ts';

export type Read = (call: ServerUnaryCall<unknown, unknown>, reply: sendUnaryData<unknown>) => void;

export interface Reader extends LedgerServer {
  /** How many reads it was asked for. */
  readonly served: { count: number };
}

export class GrpcStage {
  readonly grpc: Grpc;
  readonly #context: TestContext;

  constructor(context: TestContext, grpc: Grpc) {
    this.#context = context;
    this.grpc = grpc;
  }

  keep(close: () => unknown): void {
    this.#context.onTestFinished(async () => {
      await close();
    });
  }

  /** @param answer default: its name */
  async server(name: string, answer?: Read, address?: string): Promise<Reader> {
    const served = { count: 0 };
    const handler: Read = (call, reply) => {
      served.count += 1;
      if (answer === undefined) reply(null, name);
      else answer(call, reply);
    };
    const server = await serve(this.grpc, { Read: handler }, [], address);
    this.keep(() => server.close());
    return { ...server, served };
  }

  resolve(
    elections: LeaderResolverOptions['elections'],
    options: Omit<LeaderResolverOptions, 'elections'> = {},
  ): LeaderResolverHandle {
    const handle = registerLeaderResolver(this.grpc, { ...options, elections });
    this.keep(() => handle.close());
    return handle;
  }

  client(target: string, options: ClientOptions = {}): Client {
    const client = new this.grpc.Client(target, this.grpc.credentials.createInsecure(), options);
    this.keep(() => client.close());
    return client;
  }

  election(options: Parameters<typeof createElection>[0]): Election {
    const election = createElection(options);
    this.keep(() => election.close());
    return election;
  }
}

/** Tries until it holds. Gives up after half a minute. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 30_000, interval: 10 });
}
