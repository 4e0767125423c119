import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { monotonicMs } from '../clock.ts';

/** Stands between one client and the server, and can take the server away. */
export class FaultProxy {
  readonly #serverPort: number;
  readonly #sockets = new Set<Socket>();
  #server: Server;
  #port = 0;
  #resets = false;
  /** Connections that clients have opened so far. */
  accepted = 0;
  /** When the last of them was; monotonic. */
  acceptedAtMs: number = Number.NEGATIVE_INFINITY;

  constructor(serverPort: number) {
    this.#serverPort = serverPort;
    this.#server = this.#create();
  }

  get port(): number {
    return this.#port;
  }

  /** Serves from then on. Resolves when it does. */
  serve(): Promise<void> {
    this.#resets = false;
    if (this.#server.listening) return Promise.resolve();
    this.#server = this.#create();
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#port, '127.0.0.1', () => {
        this.#port = (this.#server.address() as AddressInfo).port;
        resolve();
      });
    });
  }

  /** Resets what is open; takes new connections and resets them at once, if so wanted. */
  cut({ refuse }: { refuse: 'nothing' | 'by closing the port' | 'by a reset' }): void {
    this.#resets = refuse === 'by a reset';
    if (refuse === 'by closing the port') this.#server.close();
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #create(): Server {
    return createServer({ noDelay: true }, (client) => {
      this.accepted += 1;
      this.acceptedAtMs = monotonicMs();
      client.on('error', () => {});
      if (this.#resets) {
        client.resetAndDestroy();
        return;
      }
      const server = connect({ port: this.#serverPort, host: '127.0.0.1', noDelay: true });
      server.on('error', () => {});
      this.#add(client, server);
      this.#add(server, client);
      client.pipe(server);
      server.pipe(client);
    });
  }

  #add(socket: Socket, other: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      other.destroy();
    });
  }
}
