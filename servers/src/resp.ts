/** Commands to a Redis server, and their replies: enough to run one, without a client library. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';

export type RespValue = string | number | null | readonly RespValue[];

export interface RespTarget {
  readonly port: number;
  readonly tls?: boolean;
}

const timeoutMs = 5_000;

/** Rejects with the text of an error reply, when nobody listens, and after 5 s. */
export function respCommand(
  target: RespTarget,
  parts: readonly (string | number)[],
): Promise<RespValue> {
  return new Promise((resolve, reject) => {
    const host = '127.0.0.1';
    const { port } = target;
    const socket =
      target.tls === true
        ? connectTls({ host, port, rejectUnauthorized: false })
        : connect({ host, port });
    let received = Buffer.alloc(0);
    const finish = (settle: () => void) => {
      socket.destroy();
      settle();
    };
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error('no reply')));
    socket.on('error', (error) => finish(() => reject(error)));
    socket.on('close', () => reject(new Error('the connection was closed')));
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      const parsed = parse(received, 0);
      if (parsed === undefined) return;
      const { value } = parsed;
      finish(() => (value instanceof Error ? reject(value) : resolve(value)));
    });
    socket.write(encode(parts));
  });
}

/** Commands one behind the other over one connection, without TLS and without a limit of time. */
export class RespConnection {
  readonly #socket: Socket;
  readonly #waiting: { resolve(value: RespValue): void; reject(error: Error): void }[] = [];
  #received: Buffer = Buffer.alloc(0);
  #isOpen = true;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#isOpen = false;
      for (const { reject } of this.#waiting.splice(0)) {
        reject(new Error('the connection was closed'));
      }
    });
  }

  static async open({ port }: { readonly port: number }): Promise<RespConnection> {
    const socket = connect({ host: '127.0.0.1', port });
    await once(socket, 'connect');
    return new RespConnection(socket);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Rejects with the text of an error reply, and when the connection ends. */
  send(parts: readonly (string | number)[]): Promise<RespValue> {
    return new Promise((resolve, reject) => {
      if (!this.#isOpen) return reject(new Error('the connection was closed'));
      this.#waiting.push({ resolve, reject });
      this.#socket.write(encode(parts));
    });
  }

  close(): void {
    this.#isOpen = false;
    this.#socket.destroy();
  }

  #read(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    for (;;) {
      const parsed = parse(this.#received, 0);
      if (parsed === undefined) return;
      this.#received = this.#received.subarray(parsed.end);
      const first = this.#waiting.shift();
      if (parsed.value instanceof Error) first?.reject(parsed.value);
      else first?.resolve(parsed.value);
    }
  }
}

function encode(parts: readonly (string | number)[]): Buffer {
  const words = parts.map((part) => Buffer.from(String(part)));
  return Buffer.concat([
    Buffer.from(`*${words.length}\r\n`),
    ...words.flatMap((word) => [Buffer.from(`$${word.length}\r\n`), word, Buffer.from('\r\n')]),
  ]);
}

interface Parsed {
  readonly value: RespValue | Error;
  readonly end: number;
}

/** Undefined: more bytes are needed. */
function parse(bytes: Buffer, at: number): Parsed | undefined {
  const lineEnd = bytes.indexOf('\r\n', at);
  if (lineEnd < 0) return undefined;
  const line = bytes.toString('utf8', at + 1, lineEnd);
  const start = lineEnd + 2;
  switch (String.fromCharCode(bytes[at] ?? 0)) {
    case '+':
      return { value: line, end: start };
    case '-':
      return { value: new Error(line), end: start };
    case ':':
      return { value: Number(line), end: start };
    case '$': {
      const length = Number(line);
      if (length < 0) return { value: null, end: start };
      if (bytes.length < start + length + 2) return undefined;
      return { value: bytes.toString('utf8', start, start + length), end: start + length + 2 };
    }
    case '*': {
      if (Number(line) < 0) return { value: null, end: start };
      const values: RespValue[] = [];
      let end = start;
      for (let left = Number(line); left > 0; left -= 1) {
        const entry = parse(bytes, end);
        if (entry === undefined) return undefined;
        if (entry.value instanceof Error) return entry;
        values.push(entry.value);
        end = entry.end;
      }
      return { value: values, end };
    }
    default:
      throw new Error(`no reply of Redis: ${JSON.stringify(line)}`);
  }
}
