/** One command to a Redis server, and its reply: enough to run one, without a client library. */
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
    const words = parts.map((part) => Buffer.from(String(part)));
    socket.write(`*${words.length}\r\n`);
    for (const word of words) {
      socket.write(Buffer.concat([Buffer.from(`$${word.length}\r\n`), word, Buffer.from('\r\n')]));
    }
  });
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
