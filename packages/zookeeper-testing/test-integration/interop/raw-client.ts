import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { connectRequest, connectResponse } from '../../../zookeeper/src/protocol/connect.ts';
import { xids } from '../../../zookeeper/src/protocol/constants.ts';
import { FrameSplitter } from '../../../zookeeper/src/protocol/frames.ts';
import type { Codec } from '../../../zookeeper/src/protocol/jute.ts';
import { encode, JuteReader } from '../../../zookeeper/src/protocol/jute.ts';
import type { ReplyHeader } from '../../../zookeeper/src/protocol/messages.ts';
import { replyHeader, requestHeader } from '../../../zookeeper/src/protocol/messages.ts';
import type { RequestKind } from '../../../zookeeper/src/protocol/requests.ts';

export interface Greeting {
  readonly sessionId?: bigint;
  readonly password?: Uint8Array;
  readonly lastZxidSeen?: bigint;
  readonly timeoutMs?: number;
  /** undefined: without the byte, as in a client before 3.4. */
  readonly readOnly?: boolean | undefined;
}

export type Answer = (ReplyHeader & { readonly body: Uint8Array }) | 'closed';

const boundMs = 15_000;

/** A client without logic: it sends what the test gives it, and returns what comes. */
export class RawClient {
  sessionId = 0n;
  password: Uint8Array = new Uint8Array(16);
  readonly #socket: Socket;
  readonly #frames: Uint8Array[] = [];
  #wake: () => void = () => undefined;
  #closed = false;
  #xid = 0;

  private constructor(address: string) {
    const [host, port] = address.split(':') as [string, string];
    const splitter = new FrameSplitter(2 ** 24, (bytes, start, end) => {
      this.#frames.push(Uint8Array.from(bytes.subarray(start, end)));
    });
    this.#socket = connect(Number(port), host);
    this.#socket.on('data', (chunk) => {
      splitter.push(chunk);
      this.#wake();
    });
    this.#socket.on('error', () => undefined); // 'close' follows
    this.#socket.on('close', () => {
      this.#closed = true;
      this.#wake();
    });
  }

  /** Sends the handshake. Resolves when the server has answered or closed the connection. */
  static async open(address: string, greeting: Greeting = {}): Promise<RawClient> {
    const client = new RawClient(address);
    const { readOnly = false } = greeting;
    const request = encode(connectRequest, {
      protocolVersion: 0,
      lastZxidSeen: greeting.lastZxidSeen ?? 0n,
      timeoutMs: greeting.timeoutMs ?? 40_000,
      sessionId: greeting.sessionId ?? 0n,
      password: greeting.password ?? client.password,
      readOnly,
    });
    const old = 'readOnly' in greeting && greeting.readOnly === undefined;
    client.write(old ? request.subarray(0, -1) : request);
    const frame = await client.#next();
    if (frame !== undefined) {
      const { sessionId, password } = connectResponse.read(new JuteReader(frame));
      client.sessionId = sessionId;
      client.password = password ?? client.password;
    }
    return client;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Writes a frame as it is. */
  write(content: Uint8Array): void {
    const length = new Uint8Array(4);
    new DataView(length.buffer).setInt32(0, content.length);
    this.#socket.write(Buffer.concat([length, content]));
  }

  /** Sends a request, and skips notifications until its reply. */
  async call<Request>(
    kind: RequestKind<Request, never> | RequestKind<Request, unknown>,
    body: Request,
    xid?: number,
  ): Promise<Answer> {
    return this.send(kind.opcode, encode(kind.request as Codec<Request>, body), xid);
  }

  async send(opcode: number, body: Uint8Array, xid: number = this.#nextXid()): Promise<Answer> {
    this.write(Buffer.concat([encode(requestHeader, { xid, opcode }), body]));
    for (;;) {
      const frame = await this.#next();
      if (frame === undefined) return 'closed';
      const header = replyHeader.read(new JuteReader(frame));
      if (header.xid === xids.notification && xid !== xids.notification) continue;
      return { ...header, body: frame.subarray(16) };
    }
  }

  /** Waits until the server closes. Everything that comes before is skipped. */
  async end(): Promise<void> {
    while ((await this.#next()) !== undefined);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #nextXid(): number {
    this.#xid += 1;
    return this.#xid;
  }

  /** undefined if the connection was closed. */
  async #next(): Promise<Uint8Array | undefined> {
    const deadline = setTimeout(() => this.#socket.destroy(new Error('no answer')), boundMs);
    while (this.#frames.length === 0 && !this.#closed) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    clearTimeout(deadline);
    return this.#frames.shift();
  }
}
