import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { FrameSplitter } from '../../src/protocol/frames.ts';
import type { Journal } from './journal.ts';
import { Conversation } from './journal.ts';

const maxFrameBytes = 4 * 1024 * 1024;

/** A client's way to the server, which listens in and can be cut. */
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
    this.#forward(client, server, (bytes, start, end) =>
      conversation.fromClient(bytes, start, end),
    );
    this.#forward(server, client, (bytes, start, end) =>
      conversation.fromServer(bytes, start, end),
    );
  }

  #forward(
    from: Socket,
    to: Socket,
    hear: (bytes: Uint8Array, start: number, end: number) => void,
  ): void {
    const splitter = new FrameSplitter(maxFrameBytes, (bytes, start, end) => {
      try {
        hear(bytes, start, end);
      } catch (error) {
        this.#journal.write(this.#client, `not understood: ${String(error)}`);
      }
    });
    this.#sockets.add(from);
    from.setNoDelay(true);
    from.on('data', (chunk) => {
      splitter.push(chunk);
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
