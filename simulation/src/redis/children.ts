import type { Server } from './server.ts';

/** A forked child. There is one at a time (`hasActiveChildProcess`). */
export interface Child {
  /** `rdb-stream` writes to replicas, through its parent, and leaves no file. */
  readonly kind: 'rdb-file' | 'rdb-stream' | 'aof';
  /** How long it works. */
  readonly forMs: number;
  /** What follows in the parent. Not called for a child that was killed. */
  readonly done: () => void;
  /** What it does even if its parent is dead. */
  readonly alone?: () => void;
}

export class Children {
  readonly #server: Server;
  #current: Child | undefined;
  #endsAtMs = 0;

  constructor(server: Server) {
    this.#server = server;
  }

  get current(): Child | undefined {
    return this.#current;
  }

  get isSaving(): boolean {
    return this.#current?.kind.startsWith('rdb') === true;
  }

  start(child: Child): void {
    this.#current = child;
    this.#endsAtMs = this.#server.nowMs + child.forMs;
    this.#server.after(child.forMs, () => {
      if (this.#current === child) this.end();
    });
  }

  /** It is done (`checkChildrenDone`). */
  end(): void {
    const child = this.#current;
    this.#current = undefined;
    child?.alone?.();
    child?.done();
    this.#server.downstream.startCopies();
    this.#server.aof.startRewrite();
  }

  kill(): void {
    this.#current = undefined;
  }

  /**
   * The parent was killed. A child that writes a file works on, and holds all connections of its parent
   * open until it ends: nobody is told of the death before.
   * @param ended called then; at once without such a child
   */
  outlive(ended: () => void): void {
    const child = this.#current;
    const forMs = this.#endsAtMs - this.#server.nowMs;
    if (child === undefined || child.kind === 'rdb-stream' || forMs <= 0) {
      ended();
      return;
    }
    this.#server.machine.scheduler.after(forMs, () => {
      child.alone?.();
      ended();
    });
  }
}
