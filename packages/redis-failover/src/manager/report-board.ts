import type { GetReply, StoppableIterator } from '@incumbent/zookeeper';
import { ClosedError } from '@incumbent/zookeeper';
import type { Paths, Report } from '../layout.ts';
import { decodeReport } from '../layout.ts';
import type { ZooKeeperClient } from '../zookeeper-client.ts';

/** The reports of all managers, ours and those of the Ruby gem. */
export class ReportBoard {
  readonly #zk: ZooKeeperClient;
  readonly #parent: string;
  readonly #onChange: () => void;
  readonly #onTrouble: (error: Error) => void;
  readonly #stop: AbortController = new AbortController();
  /**
   * For each child of the znode; undefined before it was read, and for content that is no report.
   */
  readonly #children: Map<string, { readonly stop: AbortController; report?: Report | undefined }> =
    new Map();
  /** Children of the first list that have not been read yet. */
  readonly #unread: Set<string> = new Set();
  #hasList = false;
  #settleRead: () => void = () => {};
  readonly #read: Promise<void> = new Promise((resolve) => {
    this.#settleRead = resolve;
  });

  /**
   * Begins at once.
   * @param onTrouble called for a report that cannot be understood, once for each version of it.
   *   Such a report does not count
   */
  constructor(
    zk: ZooKeeperClient,
    paths: Paths,
    onChange: () => void,
    onTrouble: (error: Error) => void = () => {},
  ) {
    this.#zk = zk;
    this.#parent = paths.reports;
    this.#onChange = onChange;
    this.#onTrouble = onTrouble;
    void this.#followAll();
  }

  /** The reports by the ids of the managers. Empty before the first were read. */
  current(): ReadonlyMap<string, Report> {
    return new Map(
      [...this.#children].flatMap(([id, { report }]) =>
        report === undefined ? [] : [[id, report]],
      ),
    );
  }

  /**
   * Resolves when all reports of the first list have been read, or the board is closed. With only
   * some of them a node that most managers see could count as down.
   */
  whenRead(): Promise<void> {
    return this.#read;
  }

  /** Ends it at once; `onChange` is not called afterwards. Idempotent. */
  close(): void {
    this.#stop.abort();
    for (const { stop } of this.#children.values()) stop.abort();
    this.#settleRead();
  }

  async #followAll(): Promise<void> {
    const { signal } = this.#stop;
    await this.#through(this.#zk.followChildren(this.#parent, { signal }), (reply) => {
      const present = new Set(reply?.children ?? []);
      let isChanged = false;
      for (const [id, { stop, report }] of this.#children) {
        if (present.has(id)) continue;
        stop.abort();
        this.#children.delete(id);
        isChanged ||= report !== undefined;
        this.#hasRead(id);
      }
      for (const id of present) {
        if (this.#children.has(id)) continue;
        if (!this.#hasList) this.#unread.add(id);
        void this.#followOne(id);
      }
      this.#hasList = true;
      this.#hasRead(undefined);
      if (isChanged) this.#onChange();
    });
  }

  async #followOne(id: string): Promise<void> {
    const child: { readonly stop: AbortController; report?: Report | undefined } = {
      stop: new AbortController(),
    };
    this.#children.set(id, child);
    const path = `${this.#parent}/${id}`;
    await this.#through(this.#zk.follow(path, { signal: child.stop.signal }), (reply) => {
      const before = child.report;
      child.report = reply === undefined ? undefined : this.#decode(path, reply);
      this.#hasRead(id);
      if (before !== undefined || child.report !== undefined) this.#onChange();
    });
  }

  #decode(path: string, reply: GetReply): Report | undefined {
    try {
      return decodeReport(path, reply.text);
    } catch (error) {
      this.#onTrouble(error as Error);
      return undefined;
    }
  }

  #hasRead(id: string | undefined): void {
    if (id !== undefined) this.#unread.delete(id);
    if (this.#hasList && this.#unread.size === 0) this.#settleRead();
  }

  /** Takes each value until the iteration is stopped or fails. */
  async #through<Value>(
    values: StoppableIterator<Value>,
    take: (value: Value) => void,
  ): Promise<void> {
    try {
      for await (const value of values) {
        if (this.#stop.signal.aborted) return;
        take(value);
      }
    } catch (error) {
      const isOver = this.#stop.signal.aborted || error instanceof ClosedError;
      if (!isOver) this.#onTrouble(error as Error);
    }
  }
}
