import type { Message } from './messages.ts';
import type { Server } from './server.ts';
import type { Socket } from './socket.ts';

/** A forked child. There is one at a time (`hasActiveChildProcess`). */
export interface Child {
  /** `rdb-stream` writes to replicas, through its parent, and leaves no file. */
  readonly kind: 'rdb-file' | 'rdb-stream' | 'aof';
  /** How long it works. */
  readonly forMs: number;
  /** The parent's part at the end. Not called for a child that was killed. */
  readonly done: () => void;
  /** Its own part at the end, even if its parent is dead. */
  readonly alone?: () => void;
}

export class Children {
  readonly #server: Server;
  #current: Child | undefined;
  #endsAtMs = 0;
  /** Connections that the child has open, too: those of its parent when it was forked. */
  #shared: ReadonlySet<Socket<Message>> = new Set();
  /** Tell that such connections are closed. */
  #closed: (() => void)[] = [];

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
    this.#shared = new Set(this.#server.sockets);
    this.#server.after(child.forMs, () => {
      if (this.#current === child) this.end();
    });
  }

  /** It is done (`checkChildrenDone`). */
  end(): void {
    const child = this.#current;
    this.kill();
    child?.alone?.();
    child?.done();
    this.#server.downstream.startCopies();
    this.#server.aof.startRewrite();
  }

  kill(): void {
    this.#current = undefined;
    this.#shared = new Set();
    for (const tell of this.#closed.splice(0)) tell();
  }

  /** The parent closes a connection. While a child has it open, too, the other end does not learn of it. */
  close(socket: Socket<Message>): void {
    if (this.#shared.has(socket)) this.#closed.push(socket.closeHere());
    else socket.close();
  }

  /** The parent was killed. A child that writes a file works on. */
  outlive(): void {
    const child = this.#current;
    const forMs = this.#endsAtMs - this.#server.nowMs;
    // One that streams writes to its parent, and ends when nobody reads it.
    if (child === undefined || child.kind === 'rdb-stream' || forMs <= 0) {
      this.kill();
      return;
    }
    this.#server.machine.scheduler.after(forMs, () => {
      child.alone?.();
      this.kill();
    });
  }
}
