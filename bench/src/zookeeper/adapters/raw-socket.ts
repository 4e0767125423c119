/** A bare socket that speaks ZooKeeper: what every client does at least. */
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import type { Session } from '../wire.ts';
import { connectRequest, replyBodyAt, xidAt } from '../wire.ts';

/** Is given one frame, with its length prefix, in `bytes[start..end)`. */
export type OnFrame = (bytes: Buffer, start: number, end: number) => void;

export interface RawOptions {
  readonly port: number;
  readonly sessionTimeoutMs: number;
  readonly session?: Session;
  readonly lastZxid: bigint;
  /** Sent in one write with the ConnectRequest. */
  readonly first: Uint8Array;
  readonly onClose: () => void;
}

export class RawSocket {
  readonly socket: Socket;
  /** Resolves with what the handshake gave. */
  readonly connected: Promise<Session>;
  /** Gets every frame after the handshake and before the next change of this field. */
  onFrame: OnFrame = () => {};
  /** At the end of each chunk: what is sent now may answer to many replies at once. */
  onChunkEnd: () => void = () => {};
  #rest: Buffer | undefined;
  #isConnected = false;
  #connected: (session: Session) => void = () => {};

  constructor(options: RawOptions) {
    const { port, sessionTimeoutMs, session, lastZxid, first, onClose } = options;
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.connected = new Promise((resolve, reject) => {
      this.#connected = resolve;
      this.socket.once('close', () => reject(new Error('the connection was closed')));
    });
    // A caller that waits for it gets the error; without one it is no unhandled rejection.
    this.connected.catch(() => {});
    this.socket.on('error', () => {});
    this.socket.once('close', onClose);
    this.socket.write(Buffer.concat([connectRequest(sessionTimeoutMs, session, lastZxid), first]));
    this.socket.on('data', (chunk) => this.#push(chunk as Buffer));
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.socket.once('close', () => resolve());
      this.socket.destroy();
    });
  }

  #push(chunk: Buffer): void {
    const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= 4) {
      const end = at + 4 + bytes.readInt32BE(at);
      if (end > bytes.length) break;
      if (this.#isConnected) this.onFrame(bytes, at, end);
      else this.#handshake(bytes, at, end);
      at = end;
    }
    this.#rest = at === bytes.length ? undefined : bytes.subarray(at);
    this.onChunkEnd();
  }

  #handshake(bytes: Buffer, start: number, end: number): void {
    this.#isConnected = true;
    if (end - start < 4 + 36 || bytes.readInt32BE(start + 8) <= 0) {
      this.socket.destroy();
      return;
    }
    this.#connected({
      id: Buffer.from(bytes.subarray(start + 12, start + 20)),
      password: Buffer.from(bytes.subarray(start + 24, start + 40)),
    });
  }
}

export function xidOf(bytes: Buffer, start: number): number {
  return bytes.readInt32BE(start + xidAt);
}

/** @throws Error when the reply has an error code */
export function checkReply(bytes: Buffer, start: number): void {
  const code = bytes.readInt32BE(start + replyBodyAt - 4);
  if (code !== 0) throw new Error(`reply with error ${code}`);
}
