/** The common part of stand-ins for HTTP services: a server in this process, and its faults. */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { createServer as createHttpServer } from 'node:http';
import type { ServerOptions } from 'node:https';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { FaultAction } from './kubernetes/faults.ts';

/** Listens on loopback. Stopped and started again it has the same port. */
export class HttpStandIn {
  readonly #serve: RequestListener;
  readonly #tls: ServerOptions | undefined;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  /** @param tls undefined: in clear text */
  constructor(serve: RequestListener, tls?: ServerOptions) {
    this.#serve = serve;
    this.#tls = tls;
  }

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `http${this.#tls === undefined ? '' : 's'}://127.0.0.1:${this.#port}`;
  }

  async listen(): Promise<void> {
    const server =
      this.#tls === undefined
        ? createHttpServer(this.#serve)
        : createHttpsServer(this.#tls, this.#serve);
    // Longer than tests pause: that a connection was closed for idleness is no fault that was meant.
    server.keepAliveTimeout = 90_000;
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  /** As if killed: connections are reset. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.#sockets) reset(socket);
    await closed;
  }
}

/** @returns whether the request is served all the same */
export async function strike(
  action: FaultAction,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<boolean> {
  switch (action.kind) {
    case 'reset':
      reset(request.socket);
      return false;
    case 'hang':
      return false;
    case 'hold':
      await action.until;
      return true;
    case 'answer': {
      const { status, headers = {}, body = '' } = action;
      response.writeHead(status, headers).end(body);
      return false;
    }
    case 'drop-reply':
      return true;
    default:
      return action satisfies never;
  }
}

/** Where TLS lies over it, a socket cannot be reset, only closed without a word. */
export function reset(socket: Socket): void {
  try {
    socket.resetAndDestroy();
  } catch {
    socket.destroy();
  }
}

export async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}
