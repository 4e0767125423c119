import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import { onTestFinished } from 'vitest';

/** A command as it arrived, and its connection. */
export interface Arrived {
  readonly words: readonly string[];
  readonly socket: Socket;
}

/**
 * A server whose answers the test chooses. It answers AUTH and CLIENT by itself, unless told
 * otherwise.
 */
export class PlayedRedis {
  readonly arrived: Arrived[] = [];
  readonly sockets: Socket[] = [];
  /** How many connections have ended. */
  ended = 0;
  /** The immediate answer; undefined: none. */
  answer: (words: readonly string[]) => string | undefined = ([word]) =>
    word === 'AUTH' || word === 'CLIENT' ? '+OK\r\n' : undefined;
  readonly #server: Server;

  static async start(tls?: { readonly key: string; readonly cert: string }): Promise<PlayedRedis> {
    const played = new PlayedRedis(tls);
    await new Promise<void>((resolve) => played.#server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => played.stop());
    return played;
  }

  private constructor(tls?: { readonly key: string; readonly cert: string }) {
    const accept = (socket: Socket) => this.#accept(socket);
    this.#server = tls === undefined ? createServer(accept) : createTlsServer(tls, accept);
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The words of all commands. */
  get words(): string[] {
    return this.arrived.map(({ words }) => words.join(' '));
  }

  /** @returns the latest command, once there are so many */
  async command(count: number): Promise<Arrived> {
    await eventually(() => this.arrived.length >= count);
    return this.arrived[count - 1] as Arrived;
  }

  stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #accept(socket: Socket): void {
    this.sockets.push(socket);
    socket.setNoDelay();
    socket.on('error', () => {});
    socket.on('close', () => {
      this.ended += 1;
    });
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      for (;;) {
        const command = readCommand(received);
        if (command === undefined) return;
        received = received.slice(command.length);
        this.arrived.push({ words: command.words, socket });
        const answer = this.answer(command.words);
        if (answer !== undefined) socket.write(answer);
      }
    });
  }
}

function readCommand(text: string): { words: string[]; length: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text);
  if (head === null) return undefined;
  const words: string[] = [];
  let at = head[0].length;
  for (let count = Number(head[1]); count > 0; count -= 1) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at));
    if (size === null) return undefined;
    at += size[0].length;
    const length = Number(size[1]);
    if (text.length < at + length + 2) return undefined;
    words.push(text.slice(at, at + length));
    at += length + 2;
  }
  return { words, length: at };
}

/** Lets turns of the event loop pass until it holds. */
export async function eventually(holds: () => boolean): Promise<void> {
  while (!holds()) await nextTurn();
}

/** Lets so many turns pass that data which were written on loopback have been read. */
export async function someTurns(): Promise<void> {
  for (let turns = 0; turns < 5; turns += 1) await nextTurn();
}

/** Commands as a server sends them to its replicas. */
export function encoded(...commands: readonly (readonly (string | Buffer)[])[]): Buffer {
  return Buffer.concat(
    commands.flatMap((parts) => [
      Buffer.from(`*${parts.length}\r\n`),
      ...parts.flatMap((part) => [
        Buffer.from(`$${Buffer.byteLength(part)}\r\n`),
        Buffer.from(part as string),
        Buffer.from('\r\n'),
      ]),
    ]),
  );
}
