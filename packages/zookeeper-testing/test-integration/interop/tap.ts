import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { FrameSplitter } from '../../../zookeeper/src/protocol/frames.ts';
import type { Journal } from './journal.ts';
import { Conversation } from './journal.ts';

const maxFrameBytes = 4 * 1024 * 1024;

/** A relay between a client and the server. It records the messages, and can be cut. */
export class Tap {
  readonly #client: string;
  readonly #serverPort: number;
  readonly #journal: Journal;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;
  #connections = 0;

  private constructor(client: string, serverPort: number, journal: Journal) {
    this.#client = client;
    this.#serverPort = serverPort;
    this.#journal = journal;
  }

  static async open(client: string, serverPort: number, journal: Journal): Promise<Tap> {
    const tap = new Tap(client, serverPort, journal);
    await tap.heal();
    return tap;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** Ends every connection, and refuses new ones. */
  async cut(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Takes connections again, at the same port. */
  async heal(): Promise<void> {
    const server = createServer((socket) => this.#join(socket));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  #join(client: Socket): void {
    const server = connect(this.#serverPort, '127.0.0.1');
    this.#connections += 1;
    const name = `${this.#client} ${this.#connections}`;
    const conversation = new Conversation(this.#journal, name);
    const toServer = this.#splitter((...frame) => conversation.fromClient(...frame));
    const toClient = this.#splitter((...frame) => conversation.fromServer(...frame));
    let word: string | undefined;
    let begun = false;
    this.#forward(client, server, (chunk) => {
      // A four-letter word comes before any frame, and its answer is no frame.
      if (!begun) word = /^[a-z]{4}$/.exec(chunk.toString('latin1'))?.[0];
      begun = true;
      if (word === undefined) toServer.push(chunk);
      else this.#journal.write(name, `asks ${word}`);
    });
    this.#forward(server, client, (chunk) => {
      if (word === undefined) toClient.push(chunk);
    });
  }

  #splitter(hear: (bytes: Uint8Array, start: number, end: number) => void): FrameSplitter {
    return new FrameSplitter(maxFrameBytes, (bytes, start, end) => {
      try {
        hear(bytes, start, end);
      } catch (error) {
        this.#journal.write(this.#client, `not understood: ${String(error)}`);
      }
    });
  }

  #forward(from: Socket, to: Socket, hear: (chunk: Buffer) => void): void {
    this.#sockets.add(from);
    from.setNoDelay(true);
    from.on('data', (chunk) => {
      hear(chunk);
      to.write(chunk);
    });
    from.on('error', () => undefined); // 'close' follows
    from.on('close', () => {
      this.#sockets.delete(from);
      to.destroySoon();
    });
    from.on('end', () => to.end());
  }
}
