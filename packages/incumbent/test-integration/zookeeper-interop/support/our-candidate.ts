import { posix } from 'node:path';
import type { ZooKeeper } from '../../../../zookeeper/src/index.ts';
import { connect } from '../../../../zookeeper/src/index.ts';
import type {
  ZooKeeperGuard,
  ZooKeeperLayout,
  ZooKeeperOptions,
} from '../../../src/backends/zookeeper/index.ts';
import { zookeeper } from '../../../src/backends/zookeeper/index.ts';
import type { Election, Term } from '../../../src/index.ts';
import { createElection } from '../../../src/index.ts';

export interface OurOptions extends ZooKeeperOptions {
  readonly address: string;
  readonly layout: ZooKeeperLayout;
  /** Of the election's node. */
  readonly path: string;
  readonly id: string;
}

/** Nothing here waits for the end of a session: long enough for a busy machine. */
export const sessionMs = 30_000;

/** A candidate of ours in the process of the test, with a session to itself. */
export class OurCandidate implements AsyncDisposable {
  readonly id: string;
  readonly client: ZooKeeper;
  readonly election: Election<ZooKeeperGuard>;
  readonly #withdraw = new AbortController();
  #term: Term<ZooKeeperGuard> | undefined;

  private constructor(client: ZooKeeper, { address: _, path, id, ...options }: OurOptions) {
    this.id = id;
    this.client = client;
    this.election = createElection({
      name: posix.basename(path),
      backend: zookeeper(client, {
        tickTime: '200ms',
        // These tests show which members are seen and which is next, not when.
        predecessorWait: 'off',
        ...options,
        root: posix.dirname(path),
      }),
      candidate: { id },
    });
  }

  static async connect(options: OurOptions): Promise<OurCandidate> {
    const client = await connect(`zk://${options.address}`, { sessionTimeoutMs: sessionMs });
    return new OurCandidate(client, options);
  }

  async campaign(): Promise<Term<ZooKeeperGuard>> {
    this.#term = await this.election.campaign({ signal: this.#withdraw.signal });
    return this.#term;
  }

  /** The promise of the term: resolves to that alone when the candidate has a place in the queue. */
  async join(): Promise<{ readonly term: Promise<Term<ZooKeeperGuard>> }> {
    const term = this.campaign();
    let failure: unknown;
    term.catch((error: unknown) => {
      failure = error; // or `term` is awaited, where it is wanted
    });
    while (!(await this.ids()).includes(this.id)) {
      if (failure !== undefined) throw failure;
    }
    return { term };
  }

  async withdraw(): Promise<void> {
    this.#withdraw.abort();
    while ((await this.ids()).includes(this.id));
  }

  /** Of all candidates, in the order of the queue. */
  async ids(): Promise<readonly string[]> {
    return (await this.election.candidates()).map(({ id }) => id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#term?.[Symbol.asyncDispose]();
    await this.election.close();
    await this.client.close();
  }
}
