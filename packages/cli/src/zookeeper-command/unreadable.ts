import type { ZooKeeperError } from '@incumbent/zookeeper';
import type { Context } from './context.ts';
import { describeFailure, exitCodes } from './failure.ts';

/** Nodes of a tree that may not be read. The others are shown all the same. */
export class Unreadable {
  readonly #context: Context;
  #count = 0;

  constructor(context: Context) {
    this.#context = context;
  }

  note(error: ZooKeeperError): void {
    this.#count += 1;
    this.#context.note(`incumbent-zk: ${describeFailure(error).message}`);
  }

  asJson(error: ZooKeeperError | undefined): object {
    if (error === undefined) return {};
    const { code, message } = describeFailure(error);
    return { error: { code, message } };
  }

  get exitCode(): number {
    return this.#count === 0 ? exitCodes.ok : exitCodes.permission;
  }
}
