import type { CreateOptions, ZooKeeper } from '@incumbent/zookeeper';
import { NodeExistsError, NoNodeError } from '@incumbent/zookeeper';
import { StuckError } from '../harness/stuck.ts';
import { monotonicMs, pause } from '../harness/time.ts';
import { isTrouble } from './outcome.ts';

export interface Seen {
  /** 0 where there is no such node. */
  readonly mzxid: bigint;
  readonly text: string;
  readonly owner: bigint;
}

/** A client without faults of its own, which insists until it knows. */
export class Auditor {
  readonly client: ZooKeeper;

  constructor(client: ZooKeeper) {
    this.client = client;
  }

  async insist<T>(ask: () => Promise<T>): Promise<T> {
    const endMs = monotonicMs() + 60_000;
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (!isTrouble(error)) throw error;
        if (monotonicMs() > endMs) throw new StuckError(`no answer: ${(error as Error).message}`);
        await pause(50);
      }
    }
  }

  async create(path: string, data = '', options: CreateOptions = {}): Promise<void> {
    await this.insist(async () => {
      try {
        await this.client.create(path, data, options);
      } catch (error) {
        if (!(error instanceof NodeExistsError)) throw error;
      }
    });
  }

  async delete(path: string): Promise<void> {
    await this.insist(async () => {
      try {
        await this.client.delete(path);
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error;
      }
    });
  }

  async sync(): Promise<void> {
    await this.insist(() => this.client.sync('/'));
  }

  async read(path: string): Promise<{ readonly n: number; readonly version: number }> {
    const { text, stat } = await this.insist(() => this.client.get(path));
    return { n: Number(text), version: stat.version };
  }

  async see(path: string): Promise<Seen> {
    return this.insist(async () => {
      try {
        const { text, stat } = await this.client.get(path);
        return { mzxid: stat.mzxid, text, owner: stat.ephemeralOwner };
      } catch (error) {
        if (!(error instanceof NoNodeError)) throw error;
        return { mzxid: 0n, text: '', owner: 0n };
      }
    });
  }

  async list(path: string): Promise<readonly string[]> {
    const { children } = await this.insist(() => this.client.getChildren(path));
    return children;
  }
}
