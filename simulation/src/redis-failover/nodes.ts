import type { Host, Owner } from '../harness/host.ts';
import type { Random } from '../harness/random.ts';
import type { World } from '../harness/world.ts';
import type { Cancel, Scheduler } from '../redis/index.ts';
import { RedisModel } from '../redis/index.ts';
import type { Message } from '../redis/messages.ts';
import type { Reply } from '../redis/reply.ts';
import { ErrorReply } from '../redis/reply.ts';
import type { Reader, Socket } from '../redis/socket.ts';

/** The modelled servers in the time of the world. */
export class RedisWorld implements Scheduler {
  readonly model: RedisModel;
  /** 0 ≤ x < 1. Called without its object. */
  readonly random: () => number;
  readonly #world: World;
  /** Code of the library has run since this was set. */
  #libraryRan = false;

  constructor(world: World, random: Random, latencyMs: () => number) {
    this.#world = world;
    this.random = () => random.next();
    this.model = new RedisModel({ scheduler: this, latencyMs });
  }

  now(): number {
    return this.#world.nowMs;
  }

  after(delayMs: number, run: () => void): Cancel {
    let isCancelled = false;
    this.#world.at(this.#world.nowMs + delayMs, () => {
      if (isCancelled) return false;
      this.#libraryRan = false;
      run();
      return this.#libraryRan;
    });
    return () => {
      isCancelled = true;
    };
  }

  /** Takes the messages for a process of the library. */
  readerOf(host: Host, owner: Owner): Reader {
    return {
      read: (run) => {
        if (host.deliver(owner, run)) this.#libraryRan = true;
      },
      answers: true,
    };
  }
}

/** One connection of a process to a node: replies come in the order of the commands. */
export class NodeSocket {
  readonly #redis: RedisWorld;
  readonly #world: World;
  readonly #host: Host;
  readonly #owner: Owner & { readonly sockets: Set<NodeSocket> };
  readonly #waiting: { resolve(reply: Reply): void; reject(error: Error): void }[] = [];
  #socket: Socket<Message> | undefined;
  #giveUp: (() => void) | undefined;
  #isClosed = false;
  onEnd: (why: Error) => void = () => {};

  constructor(
    redis: RedisWorld,
    world: World,
    host: Host,
    owner: Owner & { readonly sockets: Set<NodeSocket> },
  ) {
    this.#redis = redis;
    this.#world = world;
    this.#host = host;
    this.#owner = owner;
    owner.sockets.add(this);
  }

  get isOpen(): boolean {
    return !this.#isClosed && this.#socket !== undefined;
  }

  connect(address: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#now(() => {
        if (this.#isClosed) return;
        const { giveUp } = this.#redis.model.dial(
          this.#host.name,
          address,
          this.#redis.readerOf(this.#host, this.#owner),
          (socket) => {
            this.#take(socket);
            resolve();
          },
          () => {
            this.close();
            reject(new Error(`connect ECONNREFUSED ${address}`));
          },
        );
        this.#giveUp = giveUp;
      });
    });
  }

  send(parts: readonly string[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (!this.isOpen) return reject(new Error('the connection is closed'));
      this.#waiting.push({ resolve, reject });
      this.#now(() => this.#socket?.send({ kind: 'command', parts }));
    });
  }

  /** Idempotent. */
  close(): void {
    this.#end(new Error('the connection was closed here'));
  }

  /** Its process is dead: what it had open is closed, and nobody is told here. */
  abandon(): void {
    this.#isClosed = true;
    this.#giveUp?.();
    this.#socket?.close();
  }

  #take(socket: Socket<Message>): void {
    this.#socket = socket;
    socket.handlers = {
      message: (message) => {
        if (message.kind !== 'reply') return;
        const first = this.#waiting.shift();
        if (message.reply instanceof ErrorReply) first?.reject(message.reply);
        else first?.resolve(message.reply);
      },
      end: () => this.#end(new Error('Socket closed unexpectedly')),
    };
  }

  #end(why: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#owner.sockets.delete(this);
    this.#giveUp?.();
    this.#socket?.close();
    for (const { reject } of this.#waiting.splice(0)) reject(why);
    this.onEnd(why);
  }

  /** A process that stands still in the middle of a turn sends what it sends after that. */
  #now(act: () => void): void {
    const { presentMs } = this.#host;
    if (presentMs <= this.#world.nowMs) {
      act();
      return;
    }
    this.#world.at(presentMs, () => {
      if (this.#owner.alive) act();
      return false;
    });
  }
}
