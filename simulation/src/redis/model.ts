import { Link } from './link.ts';
import type { Connecting } from './machine.ts';
import type { Message } from './messages.ts';
import type { NodeOptions } from './node.ts';
import { RedisNode } from './node.ts';
import type { Reply } from './reply.ts';
import { ErrorReply } from './reply.ts';
import type { Scheduler } from './scheduler.ts';
import type { Reader, SocketHandlers } from './socket.ts';
import { Socket } from './socket.ts';

/** Where an address leads, from one place. */
export interface Route {
  /** The name of the node; undefined: nobody has this address. */
  readonly node: string | undefined;
  readonly link: Link;
}

export interface RedisModelOptions {
  readonly scheduler: Scheduler;
  /**
   * The way between a place (a node's name, or a client's) and an address. Default: every address
   * of a node leads to it, over one link for each pair of places.
   */
  readonly route?: (from: string, address: string) => Route;
  /** Of the links that are made here. Default: 0.2 ms. */
  readonly latencyMs?: () => number;
}

/** Redis nodes and what lies between them, in virtual time: no socket, no process, no clock. */
export class RedisModel {
  readonly nodes: Map<string, RedisNode> = new Map();
  readonly #scheduler: Scheduler;
  readonly #route: (from: string, address: string) => Route;
  readonly #latencyMs: () => number;
  readonly #links = new Map<string, Link>();

  constructor({ scheduler, route, latencyMs = () => 0.2 }: RedisModelOptions) {
    this.#scheduler = scheduler;
    this.#latencyMs = latencyMs;
    this.#route = route ?? ((from, address) => this.#defaultRoute(from, address));
  }

  /** A node that does not run yet. */
  addNode(options: NodeOptions): RedisNode {
    const node = new RedisNode(options, this.#scheduler, (address, reader, connected, refused) =>
      this.dial(options.name, address, reader, connected, refused),
    );
    this.nodes.set(node.name, node);
    return node;
  }

  /** The link of connections that `from` makes to that node, where the caller gave none. */
  link(from: string, node: string): Link {
    const key = `${from} ${node}`;
    const link = this.#links.get(key) ?? new Link(this.#latencyMs);
    this.#links.set(key, link);
    return link;
  }

  /** A connection with replies as promises. Rejects ConnectionLostError if nobody listens. */
  connect(from: string, address: string, reader: Reader = alwaysRuns): Promise<RedisConnection> {
    return new Promise((resolve, reject) => {
      this.dial(
        from,
        address,
        reader,
        (socket) => resolve(new RedisConnection(socket)),
        () => reject(new ConnectionLostError(`${address} refuses connections`)),
      );
    });
  }

  /** @internal A connection as nodes make it, without promises. */
  dial(
    from: string,
    address: string,
    reader: Reader,
    connected: (socket: Socket<Message>) => void,
    refused: () => void,
  ): Connecting {
    const { node: name, link } = this.#route(from, address);
    const node = name === undefined ? undefined : this.nodes.get(name);
    const caller = new Socket<Message>(reader);
    let isWanted = true;
    const whenLetGo = (wire: Link['forth'], run: () => void) => {
      this.#scheduler.after(wire.latencyMs(), () => {
        if (!wire.isHeld) return run();
        const again = () => {
          wire.forget(again);
          whenLetGo(wire, run);
        };
        wire.listen(again);
      });
    };
    const answer = (run: () => void) =>
      whenLetGo(link.back, () => reader.read(() => isWanted && run()));
    whenLetGo(link.forth, () => {
      // A machine that is gone answers nothing at all.
      if (node?.isThere === false) return;
      if (link.refuses || node === undefined || !node.isRunning) return answer(refused);
      const listener = node.accept(this.nodes.get(from)?.host ?? from);
      Socket.join(this.#scheduler, link, caller, listener);
      answer(() => connected(caller));
    });
    return {
      giveUp: () => {
        isWanted = false;
        caller.close();
      },
    };
  }

  #defaultRoute(from: string, address: string): Route {
    const node = [...this.nodes.values()].find(({ addresses }) => addresses.includes(address));
    return { node: node?.name, link: this.link(from, node?.name ?? address) };
  }
}

const alwaysRuns: Reader = { read: (run) => run(), answers: true };

/** The connection ended: whether what was sent was executed is unknown. */
export class ConnectionLostError extends Error {
  override readonly name: string = 'ConnectionLostError';
}

/** A client's connection. Replies come in the order of the commands. */
export class RedisConnection {
  readonly #socket: Socket<Message>;
  readonly #waiting: { resolve(reply: Reply): void; reject(error: Error): void }[] = [];
  readonly #ended: (() => void)[] = [];

  constructor(socket: Socket<Message>) {
    this.#socket = socket;
    const handlers: SocketHandlers<Message> = {
      message: (message) => {
        if (message.kind !== 'reply') return;
        const { reply } = message;
        const first = this.#waiting.shift();
        if (reply instanceof ErrorReply) first?.reject(reply);
        else first?.resolve(reply);
      },
      end: () => this.#end(),
    };
    socket.handlers = handlers;
  }

  get closed(): boolean {
    return !this.#socket.isOpen;
  }

  /** Calls it once, when the other end is gone or this one was closed. */
  onClose(listener: () => void): void {
    if (this.closed) listener();
    else this.#ended.push(listener);
  }

  /** Rejects ErrorReply, and ConnectionLostError without a reply. */
  send(parts: readonly string[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.closed) return reject(new ConnectionLostError('the connection is closed'));
      this.#waiting.push({ resolve, reject });
      this.#socket.send({ kind: 'command', parts });
    });
  }

  /** Idempotent. */
  close(): void {
    if (this.closed) return;
    this.#socket.close();
    this.#end();
  }

  #end(): void {
    const error = new ConnectionLostError('the connection has ended');
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    for (const listener of this.#ended.splice(0)) listener();
  }
}
