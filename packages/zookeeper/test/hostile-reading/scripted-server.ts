// A server whose answers the test chooses, with our codecs.
import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { createServer as createTlsServer } from 'node:tls';
import { frame, replyFrame } from '../../../zookeeper-testing/src/fake/replies.ts';
import type { ConnectRequest } from '../../src/protocol/connect.ts';
import { connectRequest, connectResponse } from '../../src/protocol/connect.ts';
import { opcodes } from '../../src/protocol/constants.ts';
import { FrameSplitter } from '../../src/protocol/frames.ts';
import type { Codec } from '../../src/protocol/jute.ts';
import { JuteReader } from '../../src/protocol/jute.ts';
import { requestHeader } from '../../src/protocol/messages.ts';
import type { RequestKind } from '../../src/protocol/requests.ts';
import { requests } from '../../src/protocol/requests.ts';

export interface Received {
  readonly name: string;
  readonly opcode: number;
  readonly xid: number;
  /** The number of its connection, from 1. */
  readonly connection: number;
  // biome-ignore lint/suspicious/noExplicitAny: whatever a request has
  readonly body: any;
}

export interface Script {
  /** Default: accepts the session, or makes one. */
  readonly onConnect?: (request: ConnectRequest, peer: Peer) => void;
  /** Default: answers pings, auths, SetWatches and closeSession. */
  readonly onRequest?: (request: Received, peer: Peer) => void;
  /** The answer to `isro`. Default: none. */
  readonly isro?: () => string;
}

const kinds = new Map(
  Object.values(requests as unknown as Record<string, RequestKind<unknown, unknown>>).map(
    (kind) => [kind.opcode, kind] as const,
  ),
);
/** Requests whose reply has no body. */
const bodiless: readonly string[] = ['ping', 'auth', 'setWatches', 'setWatches2'];

/** One connection of a client, seen from the server. */
export class Peer {
  readonly socket: Socket;
  readonly number: number;
  /** Whether it has ended, and how: `FIN`, or the code of an error such as `ECONNRESET`. */
  ended: string | undefined;
  bytesReceived = 0;

  constructor(socket: Socket, number: number) {
    this.socket = socket;
    this.number = number;
    socket.setNoDelay(true);
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.ended ??= error.code ?? error.message;
    });
    socket.on('end', () => {
      this.ended ??= 'FIN';
    });
    socket.on('data', (chunk) => {
      this.bytesReceived += chunk.length;
    });
  }

  accept(answer: { sessionId?: bigint; timeoutMs?: number; readOnly?: boolean } = {}): void {
    const { sessionId = 1n, timeoutMs = 10_000, readOnly = false } = answer;
    const response = { protocolVersion: 0, timeoutMs, sessionId, password, readOnly };
    this.socket.write(frame((writer) => connectResponse.write(writer, response)));
  }

  reply(xid: number, zxid: bigint, error = 0): void {
    this.socket.write(replyFrame({ xid, zxid, error }));
  }

  replyWith<T>(xid: number, zxid: bigint, codec: Codec<T>, body: T): void {
    this.socket.write(replyFrame({ xid, zxid, error: 0 }, codec as Codec<unknown>, body));
  }

  /** Answers the requests that every client sends by itself. */
  answerUsual({ name, opcode, xid }: Received, zxid = 1n): void {
    if (bodiless.includes(name)) this.reply(xid, name === 'auth' ? 0n : zxid);
    if (opcode !== opcodes.closeSession) return;
    this.reply(xid, zxid);
    this.socket.end();
  }
}

const password = new Uint8Array(16).fill(7);

export class ScriptedServer implements AsyncDisposable {
  /** The test may replace it at any time. */
  script: Script;
  readonly greetings: ConnectRequest[] = [];
  readonly received: Received[] = [];
  readonly peers: Peer[] = [];
  readonly #tcp: Server;

  private constructor(script: Script, tls: TlsOptions | undefined) {
    this.script = script;
    const accept = (socket: Socket) => this.#accept(socket);
    this.#tcp = tls === undefined ? createServer(accept) : createTlsServer(tls, accept);
  }

  static async start(script: Script = {}, tls?: TlsOptions): Promise<ScriptedServer> {
    const server = new ScriptedServer(script, tls);
    server.#tcp.listen(0, '127.0.0.1');
    await once(server.#tcp, 'listening');
    return server;
  }

  get port(): number {
    return (this.#tcp.address() as AddressInfo).port;
  }

  get connectionString(): string {
    return `zk://127.0.0.1:${this.port}`;
  }

  /** Names of the requests, in order, without pings. */
  get names(): string[] {
    return this.received.map(({ name }) => name).filter((name) => name !== 'ping');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#tcp, 'close');
    this.#tcp.close();
    for (const { socket } of this.peers) socket.destroy();
    await closed;
  }

  #accept(socket: Socket): void {
    const peer = new Peer(socket, this.peers.length + 1);
    this.peers.push(peer);
    let greeted = false;
    const splitter = new FrameSplitter(64 * 1024 * 1024, (bytes, start, end) => {
      const reader = new JuteReader(bytes.slice(start, end));
      if (!greeted) {
        greeted = true;
        const greeting = connectRequest.read(reader);
        this.greetings.push(greeting);
        if (this.script.onConnect === undefined) peer.accept();
        else this.script.onConnect(greeting, peer);
        return;
      }
      const { xid, opcode } = requestHeader.read(reader);
      const kind = kinds.get(opcode);
      const name = kind?.name ?? 'unknown';
      const request = {
        name,
        opcode,
        xid,
        connection: peer.number,
        body: kind?.request.read(reader),
      };
      this.received.push(request);
      if (this.script.onRequest === undefined) peer.answerUsual(request);
      else this.script.onRequest(request, peer);
    });
    socket.on('data', (chunk) => {
      // A client may ask for `isro`, which is no frame.
      if (!greeted && chunk.length === 4) {
        if (this.script.isro !== undefined) socket.end(this.script.isro());
        return;
      }
      splitter.push(chunk);
    });
  }
}
