/**
 * Answers the handshake, and each get with the same node. It has no tree, session or lock, so that
 * the client is what takes the time. The replies to all requests of a chunk leave in one write, and
 * only the xids are written into them.
 */
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { serve } from '../../calls/serve.ts';
import type { ResponderMethods } from '../messages.ts';
import { nodeBytes } from '../messages.ts';
import { bool, buffer, frame, int32, int64, opcodes, xidAt, xids } from '../wire.ts';

const zxid = 0x1_0000_0007n;
const createdAt = 1_790_000_000_000n;
const sessionTimeoutMs = 30_000;

const stat = [
  ...[zxid, zxid, createdAt, createdAt].map(int64),
  ...[0, 0, 0].map(int32),
  int64(0n),
  ...[nodeBytes, 0].map(int32),
  int64(zxid),
];
const getReply = reply(0, buffer(Buffer.alloc(nodeBytes, 'z')), ...stat);
const emptyReply = reply(0);
const connectReply = frame(
  int32(0),
  int32(sessionTimeoutMs),
  int64(0x1_0000_0000_0001n),
  buffer(Buffer.alloc(16, 1)),
  bool(false),
);
/** A chunk of 64 KiB has no more requests; the shortest has 12 bytes. */
const maxReplies = 6_000;
const template = Buffer.concat(Array.from({ length: maxReplies }, () => getReply));

const server = createServer({ noDelay: true }, (socket) => {
  const connection = new Connection(socket);
  socket.on('error', () => {});
  socket.on('data', (chunk) => connection.push(chunk as Buffer));
});
const listening = new Promise<number>((resolve) => {
  server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
});

serve<ResponderMethods>({
  hello: async () => ({ port: await listening }),
  cpu() {
    const { user, system } = process.cpuUsage();
    return { us: user + system };
  },
});

class Connection {
  readonly #socket: Socket;
  #isConnected = false;
  #rest: Buffer | undefined;
  #replies = Buffer.from(template);

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  push(chunk: Buffer): void {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    // Bytes that the system has not taken yet must not be changed.
    if (this.#socket.writableLength > 0) this.#replies = Buffer.from(template);
    const replies = this.#replies;
    const { length } = getReply;
    let at = 0;
    let gets = 0;
    const flush = () => {
      if (gets > 0) this.#socket.write(replies.subarray(0, gets * length));
      gets = 0;
    };
    while (bytes.length - at >= 4) {
      const end = at + 4 + bytes.readInt32BE(at);
      if (end > bytes.length) break;
      if (this.#isConnected && bytes.readInt32BE(at + 8) === opcodes.getData) {
        bytes.copy(replies, gets * length + xidAt, at + xidAt, at + xidAt + 4);
        gets += 1;
        if (gets === maxReplies) {
          flush();
          this.#replies = Buffer.from(template);
        }
      } else {
        flush();
        this.#other(bytes, at);
      }
      at = end;
    }
    this.#rest = at === bytes.length ? undefined : bytes.subarray(at);
    flush();
  }

  #other(bytes: Buffer, at: number): void {
    if (!this.#isConnected) {
      this.#isConnected = true;
      this.#socket.write(connectReply);
      return;
    }
    const xid = bytes.readInt32BE(at + xidAt);
    const answer = Buffer.from(emptyReply);
    answer.writeInt32BE(xid, xidAt);
    this.#socket.write(answer);
    if (xid !== xids.ping && bytes.readInt32BE(at + 8) === opcodes.closeSession) this.#socket.end();
  }
}

function reply(xid: number, ...body: readonly Uint8Array[]): Buffer {
  return frame(int32(xid), int64(zxid), int32(0), ...body);
}
