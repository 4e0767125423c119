import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';

/** A relay in front of a server that can change the server's replies. */
export interface ErrorPatcher extends AsyncDisposable {
  readonly connectionString: string;
  /** Connections that were accepted so far. */
  readonly connections: number;
  /** Turns the next reply to a request into an error: its header with this code, and no body. */
  failNext(code: number): void;
}

/** The bytes of a reply before its body: length, xid, zxid, error. */
const headerBytes = 4 + 16;

export async function startErrorPatcher(target: { readonly port: number }): Promise<ErrorPatcher> {
  const sockets = new Set<Socket>();
  let connections = 0;
  let nextCode: number | undefined;

  const patch = (frame: Buffer, isHandshake: boolean): Buffer => {
    if (isHandshake || nextCode === undefined || frame.readInt32BE(4) < 1) return frame;
    const patched = Buffer.from(frame.subarray(0, headerBytes));
    patched.writeInt32BE(headerBytes - 4, 0);
    patched.writeInt32BE(nextCode, headerBytes - 4);
    nextCode = undefined;
    return patched;
  };

  const server = createServer((client) => {
    connections += 1;
    const upstream = connect({ host: '127.0.0.1', port: target.port });
    let rest: Buffer = Buffer.alloc(0);
    let frames = 0;
    client.on('data', (chunk) => upstream.write(chunk));
    upstream.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
        const end = 4 + rest.readInt32BE(0);
        client.write(patch(rest.subarray(0, end), frames === 0));
        frames += 1;
        rest = rest.subarray(end);
      }
    });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('end', () => other.end());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    connectionString: `zk://127.0.0.1:${port}`,
    get connections() {
      return connections;
    },
    failNext(code) {
      nextCode = code;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
