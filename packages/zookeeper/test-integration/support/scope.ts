import process from 'node:process';
import type { ServerOptions, TestProxy, TestServer } from '@incumbent/zookeeper-testing';
import { serverAvailable, startProxy, startServer } from '@incumbent/zookeeper-testing';
import { beforeAll, beforeEach } from 'vitest';
import type { ClientOptions, ZooKeeper } from '../../src/index.ts';
import { connect, createClient } from '../../src/index.ts';
import { TestClock } from '../../test/hostile-reading/clock.ts';

/** Skips each test of the file, with the reason, if no server can run. In CI it fails instead. */
export function needServers(): void {
  beforeEach((context) => {
    const reason = serverAvailable({ tls: {} });
    if (reason === undefined) return;
    if (process.env['CI'] === 'true') throw new Error(reason);
    context.skip(reason);
  });
}

/** One server for all tests of a file. Each works on nodes of its own. */
export function sharedServer(options: ServerOptions = {}): () => TestServer {
  let server: TestServer | undefined;
  beforeAll(async () => {
    if (serverAvailable({ tls: {} }) !== undefined) return undefined;
    server = await startServer(options);
    return () => server?.close();
  });
  return () => {
    if (server === undefined) throw new Error('the server is not there yet');
    return server;
  };
}

/** The resources of one test. They are closed after it, the last first. */
export class Scope {
  readonly #open: AsyncDisposable[] = [];

  /** Closes it after the test. Returns it. */
  later<T extends AsyncDisposable>(resource: T): T {
    this.#open.push(resource);
    return resource;
  }

  /** Calls it after the test. */
  finally(end: () => void | Promise<void>): void {
    this.later({ [Symbol.asyncDispose]: async () => end() });
  }

  async connect(url: string, options: ClientOptions = {}): Promise<ZooKeeper> {
    const client = await connect(url, { connectTimeoutMs: 30_000, ...options });
    return this.#closing(client, options);
  }

  create(url: string, options: ClientOptions = {}): ZooKeeper {
    return this.#closing(createClient(url, options), options);
  }

  /** The clock of the test must also close a client that uses it. */
  #closing(client: ZooKeeper, { clock }: ClientOptions): ZooKeeper {
    if (!(clock instanceof TestClock)) return this.later(client);
    this.finally(() => clock.runUntilSettled(client.close()));
    return client;
  }

  async proxy(target: { readonly port: number }): Promise<TestProxy> {
    return this.later(await startProxy(target));
  }

  async close(): Promise<void> {
    for (const resource of this.#open.splice(0).reverse()) await resource[Symbol.asyncDispose]();
  }
}

/** A test with a scope of its own, even if several run at the same time. */
export function scoped(test: (scope: Scope) => Promise<void>): () => Promise<void> {
  return async () => {
    const scope = new Scope();
    try {
      await test(scope);
    } finally {
      await scope.close();
    }
  };
}
