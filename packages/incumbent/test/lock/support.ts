import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import type { ExpectStatic } from 'vitest';
import { test } from 'vitest';
import type { ZooKeeper } from '../../../zookeeper/src/index.ts';
import { connect } from '../../../zookeeper/src/index.ts';
import type { ZooKeeperGuard, ZooKeeperOptions } from '../../src/backends/zookeeper/index.ts';
import { zookeeper } from '../../src/backends/zookeeper/index.ts';
import type { Election } from '../../src/core/election.ts';
import { createElection } from '../../src/core/election.ts';
import type { ElectionOptions } from '../../src/core/options.ts';
import type { Term } from '../../src/core/term.ts';

/** H is 1.6 s, R and X 0.4 s: long enough for a machine that does much else. */
export const sessionTimeoutMs = 4_000;
export const tickTimeMs = 200;
export const root = '/hadoop-ha';
export const parent = `${root}/ns1`;
export const lockPath = `${parent}/ActiveStandbyElectorLock`;
export const breadcrumbPath = `${parent}/ActiveBreadCrumb`;

export type MemberOptions = Partial<ElectionOptions<ZooKeeperGuard>> & {
  readonly zookeeper?: ZooKeeperOptions;
  /** Default: one of its own. */
  readonly client?: ZooKeeper;
};

export interface Member {
  readonly election: Election<ZooKeeperGuard>;
  readonly client: ZooKeeper;
}

/** A server in this process, and what takes part in the election `ns1` on it. */
export class Arena implements AsyncDisposable {
  readonly fake: FakeZooKeeper;
  readonly #open: AsyncDisposable[] = [];

  private constructor(fake: FakeZooKeeper) {
    this.fake = fake;
  }

  static async open(): Promise<Arena> {
    return new Arena(
      await FakeZooKeeper.start({ tickTimeMs, maxSessionTimeoutMs: 60_000, realTime: true }),
    );
  }

  async client(timeoutMs: number = sessionTimeoutMs): Promise<ZooKeeper> {
    const client = await connect(this.fake.connectionString, {
      sessionTimeoutMs: timeoutMs,
    });
    this.#open.push(client);
    return client;
  }

  async member(id: string, options: MemberOptions = {}): Promise<Member> {
    const { zookeeper: layout, client: given, ...rest } = options;
    const client = given ?? (await this.client());
    const backend = zookeeper(client, { layout: 'hadoop', root, tickTime: tickTimeMs, ...layout });
    // Short, for tests that fail.
    const common = { name: 'ns1', backend, stopTimeout: '1s' };
    const election = createElection({ ...common, candidate: { id }, ...rest });
    this.#open.push(election);
    return { election, client };
  }

  /** A member as Hadoop's own code is one. */
  async hadoop(data: string): Promise<HadoopMember> {
    return new HadoopMember(await this.client(), data);
  }

  /** The data of a node. Undefined when there is none. */
  data(path: string): string | undefined {
    const node = this.fake.tree().get(path);
    return node === undefined ? undefined : Buffer.from(node.data ?? []).toString();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.fake.faults.clear();
    this.fake.unsilence();
    for (const one of this.#open.splice(0).reverse()) await one[Symbol.asyncDispose]();
    await this.fake.close();
  }
}

/** A member that treats its nodes as ActiveStandbyElector does, one step at a time. */
export class HadoopMember {
  readonly client: ZooKeeper;
  readonly #data: string;

  constructor(client: ZooKeeper, data: string) {
    this.client = client;
    this.#data = data;
  }

  async takeLock(): Promise<void> {
    await this.client.ensurePath(parent);
    await this.client.create(lockPath, this.#data, { ephemeral: true });
  }

  /** @returns whom it has fenced */
  async writeBreadcrumb(): Promise<string | undefined> {
    const old = await this.client.get(breadcrumbPath).catch(() => undefined);
    if (old === undefined) await this.client.create(breadcrumbPath, this.#data);
    else await this.client.set(breadcrumbPath, this.#data, { version: old.stat.version });
    return old?.text;
  }

  async becomeActive(): Promise<string | undefined> {
    await this.takeLock();
    return this.writeBreadcrumb();
  }

  /** Its session ends, whatever it still does. */
  async crash(): Promise<void> {
    await this.client.close();
  }

  async quit(): Promise<void> {
    const { stat } = await this.client.get(breadcrumbPath);
    await this.client.delete(breadcrumbPath, { version: stat.version });
    await this.client.close();
  }
}

/**
 * Something happens after the node of the election was read and before the breadcrumb is.
 * @param what called at each such read until it does not return false
 */
export function interrupted(client: ZooKeeper, what: () => Promise<unknown>): ZooKeeper {
  let isPending = true;
  // Requests stay in their order.
  let sent = Promise.resolve();
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name !== 'get' && name !== 'stat') return value.bind(target);
      return (...call: [string]) => {
        const before = sent;
        let isSent = () => {};
        sent = new Promise((resolve) => {
          isSent = resolve;
        });
        return before.then(async () => {
          if (isPending && call[0] === breadcrumbPath) isPending = (await what()) === false;
          const answer: unknown = value.apply(target, call);
          isSent();
          return answer;
        });
      };
    },
  });
}

/**
 * Does something right before the election’s first breadcrumb is made. Later requests wait for it.
 */
export function beforeAnnouncement(client: ZooKeeper, what: () => Promise<unknown>): ZooKeeper {
  let sent: Promise<unknown> = Promise.resolve();
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name === 'get' || name === 'stat') {
        return (...call: unknown[]) => sent.then(() => value.apply(target, call));
      }
      if (name !== 'transaction') return value.bind(target);
      return () => {
        const transaction = target.transaction();
        const { create, commit } = transaction;
        let announces = false;
        transaction.create = (...call) => {
          announces ||= call[0] === breadcrumbPath;
          return create.apply(transaction, call);
        };
        transaction.commit = (...call) => {
          if (announces) sent = sent.then(what);
          return sent.then(() => commit.apply(transaction, call));
        };
        return transaction;
      };
    },
  });
}

/** Waits for a change. The bound only turns a hang into a failure. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export async function end(term: Term<ZooKeeperGuard>): ReturnType<typeof outcomeOf> {
  await term[Symbol.asyncDispose]();
  return outcomeOf(term);
}

async function outcomeOf(term: Term<ZooKeeperGuard>): Promise<Awaited<Term['ended']>> {
  return term.ended;
}

/** Awaited later, or never. */
export function background<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** A test with an arena of its own. They run at the same time: most of them wait for a belief to end. */
export function inArena(
  name: string,
  body: (given: { readonly arena: Arena; readonly expect: ExpectStatic }) => Promise<void>,
): void {
  test.concurrent(name, async ({ expect }) => {
    await using arena = await Arena.open();
    await body({ arena, expect });
  });
}
