import type { TestProxy } from '@incumbent/zookeeper-testing';
import { ServerUnavailableError, startProxy } from '@incumbent/zookeeper-testing';
import type { TestContext } from 'vitest';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import type { ClientOptions, ZooKeeper } from '../../src/index.ts';
import { connect, ZooKeeperError } from '../../src/index.ts';

/** A kind of server. The suite needs nothing else of it. */
export interface Target {
  readonly name: string;
  readonly capabilities: Capabilities;
  /** Rejects with ServerUnavailableError if there is none. */
  open(): Promise<Servers>;
}

export interface Servers {
  /** Without a chroot. */
  readonly url: string;
  /** A server that is not the leader, if there are several; without a chroot. */
  readonly follower?: string;
  /** The port of one of the servers, for a proxy in front of it. */
  readonly port: number;
  /** The options that every client needs to log in. */
  readonly options: ClientOptions;
  /** Advances the servers' clock by `ms`, if it does not go on by itself. */
  elapse(ms: number): Promise<void>;
  close(): Promise<void>;
}

export interface Capabilities {
  /** Whether clients use `zks://`. */
  readonly tls: boolean;
  /** The subject of the certificate that the clients show, if they show one. */
  readonly subject?: string;
  /** Whether `getConfig` names the members. */
  readonly dynamicConfig: boolean;
}

/** The limit for waits in a test. */
export const boundMs = 15_000;

/** The clients of a test, in a folder of its own. They are closed after it. */
export class World {
  readonly #target: Target;
  readonly #open: { close(): Promise<void> }[] = [];
  #servers: Servers | undefined;
  #root: ZooKeeper | undefined;
  #missing: string | undefined;
  #folders = 0;
  #folder = '';

  constructor(target: Target) {
    this.#target = target;
  }

  /** Registers the hooks. To be called inside a `describe`. */
  begin(): void {
    beforeAll(async () => {
      try {
        this.#servers = await this.#target.open();
      } catch (error) {
        if (!(error instanceof ServerUnavailableError) || process.env['CI'] === 'true') throw error;
        this.#missing = error.message;
        return;
      }
      this.#root = await connect(this.servers.url, this.servers.options);
    });
    afterAll(async () => {
      await this.#root?.close();
      await this.#servers?.close();
    });
    beforeEach(async (context: TestContext) => {
      if (this.#missing !== undefined) context.skip(this.#missing);
      this.#folders += 1;
      this.#folder = `/t${this.#folders}`;
      await this.root.create(this.#folder);
    });
    afterEach(async () => {
      for (const one of this.#open.splice(0).reverse()) await one.close();
    });
  }

  get capabilities(): Capabilities {
    return this.#target.capabilities;
  }

  get servers(): Servers {
    if (this.#servers === undefined) throw new Error('the servers are not there yet');
    return this.#servers;
  }

  /** A client without a chroot, the same for all tests. */
  get root(): ZooKeeper {
    if (this.#root === undefined) throw new Error('the servers are not there yet');
    return this.#root;
  }

  /** This test's folder, as `root` has to name it. */
  get folder(): string {
    return this.#folder;
  }

  /** The connection string of this test's folder. */
  get url(): string {
    return this.servers.url + this.#folder;
  }

  /** A connected client whose `/` is this test's folder. */
  async client(options: ClientOptions = {}): Promise<ZooKeeper> {
    return this.#connect(this.url, options);
  }

  /** The same behind a proxy, which can cut it off. */
  async behindProxy(options: ClientOptions = {}): Promise<[ZooKeeper, TestProxy]> {
    const proxy = await startProxy({ port: this.servers.port });
    this.later(proxy);
    const { tls } = this.capabilities;
    const url = tls ? proxy.secureConnectionString : proxy.connectionString;
    return [await this.#connect(url + this.#folder, options), proxy];
  }

  /** Closes it after the test. Returns it. */
  later<T extends { close(): Promise<void> }>(one: T): T {
    this.#open.push(one);
    return one;
  }

  async #connect(url: string, options: ClientOptions): Promise<ZooKeeper> {
    const client = this.later(await connect(url, { ...this.servers.options, ...options }));
    // Its server may not have seen the folder yet.
    await client.sync('/');
    return client;
  }
}

/** The clock of `sentAt`. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Rejects if `promise` is still pending after the limit. */
export async function soon<T>(promise: Promise<T>, what: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${boundMs} ms`)), boundMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** The error that `promise` must reject with. Its class and fields are compared. */
export async function refusal<E extends ZooKeeperError>(
  promise: Promise<unknown>,
  // biome-ignore lint/suspicious/noExplicitAny: whatever each class takes
  kind: new (...args: any[]) => E,
  fields: Partial<E> = {},
): Promise<E> {
  const error = await promise.then(
    (value) => expect.fail(`expected ${kind.name}, got ${String(value)}`),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(kind);
  if (kind !== (ZooKeeperError as unknown)) expect(error).toMatchObject({ name: kind.name });
  expect(error).toMatchObject(fields);
  return error as E;
}

/** Takes the next `count` values of an iterator. */
export async function take<T>(
  iterator: AsyncIterator<T>,
  count: number,
  what: string,
): Promise<T[]> {
  const values: T[] = [];
  while (values.length < count) {
    const { done, value } = await soon(iterator.next(), `${what}, number ${values.length + 1}`);
    if (done) break;
    values.push(value);
  }
  return values;
}
