import type { ZooKeeper } from '@incumbent/zookeeper';
import type { RecordJudge, SeenRecord } from './judge.ts';

/** The nodes by which the gem's clients go. */
export interface SeenNodes {
  readonly master: string | null;
  readonly slaves: readonly string[];
  readonly unavailable: readonly string[];
}

/** Reads along what managers write, past all that is done to their networks. */
export class Auditor {
  readonly #zk: ZooKeeper;
  readonly #root: string;
  readonly #stop = new AbortController();
  readonly #following: Promise<void>;

  constructor(zk: ZooKeeper, root: string, judge: RecordJudge, note: (line: string) => void) {
    this.#zk = zk;
    this.#root = root;
    this.#following = this.#follow(judge, note);
  }

  /** undefined: there is no such node, or it cannot be read. */
  async nodes(): Promise<SeenNodes | undefined> {
    try {
      const { text } = await this.#zk.get(`${this.#root}/nodes`);
      return JSON.parse(text) as SeenNodes;
    } catch {
      return undefined;
    }
  }

  /** An operator's hand on the place of a manager in the queue. @returns whether there was one */
  async evict(manager: string): Promise<boolean> {
    const queue = `${this.#root}/managers`;
    const { children } = await this.#zk.getChildren(queue);
    for (const child of children) {
      const path = `${queue}/${child}`;
      const { text } = await this.#zk.get(path);
      if (!text.includes(manager)) continue;
      await this.#zk.delete(path);
      return true;
    }
    return false;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#following;
  }

  async #follow(judge: RecordJudge, note: (line: string) => void): Promise<void> {
    const path = `${this.#root}/primary`;
    for await (const reply of this.#zk.follow(path, { signal: this.#stop.signal })) {
      note(`record ${reply?.text ?? 'gone'}`);
      judge.add(reply === undefined ? undefined : (JSON.parse(reply.text) as SeenRecord));
    }
  }
}
