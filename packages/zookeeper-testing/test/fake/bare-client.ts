// A socket and our codecs, nothing more: these tests see exactly the bytes that the fake sends.
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import type { ConnectResponse } from '../../../zookeeper/src/protocol/connect.ts';
import { connectRequest, connectResponse } from '../../../zookeeper/src/protocol/connect.ts';
import { FrameSplitter } from '../../../zookeeper/src/protocol/frames.ts';
import type { Codec } from '../../../zookeeper/src/protocol/jute.ts';
import { decode, JuteReader } from '../../../zookeeper/src/protocol/jute.ts';
import type { Acl, ReplyHeader, WatcherEvent } from '../../../zookeeper/src/protocol/messages.ts';
import {
  replyHeader,
  requestHeader,
  watcherEvent,
} from '../../../zookeeper/src/protocol/messages.ts';
import type { RequestKind } from '../../../zookeeper/src/protocol/requests.ts';
import { requests } from '../../../zookeeper/src/protocol/requests.ts';
import { frame } from '../../src/fake/replies.ts';

export const open: readonly Acl[] = [{ perms: 31, scheme: 'world', id: 'anyone' }];
const boundMs = 5000;

export interface Greeting {
  readonly lastZxidSeen?: bigint;
  readonly timeoutMs?: number;
  readonly sessionId?: bigint;
  readonly password?: Uint8Array | null;
  readonly readOnly?: boolean;
  /** Leaves the last byte out. */
  readonly short?: boolean;
}

export interface Reply<T> extends ReplyHeader {
  /** undefined after an error. */
  readonly body: T | undefined;
}

export class BareClient {
  readonly socket: Socket;
  readonly frames: Uint8Array[] = [];
  /** Resolves when the server has closed. */
  readonly closed: Promise<void>;
  isClosed = false;
  #xid = 0;
  #wake: () => void = () => {};

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('error', () => {});
    const splitter = new FrameSplitter(64 * 1024 * 1024, (bytes, start, end) => {
      this.frames.push(bytes.slice(start, end));
    });
    this.socket.on('data', (chunk) => {
      splitter.push(chunk);
      this.#wake();
    });
    this.closed = new Promise((resolve) => {
      this.socket.on('close', () => {
        this.isClosed = true;
        this.#wake();
        resolve();
      });
    });
  }

  static async attach(port: number, greeting: Greeting = {}): Promise<Attached> {
    const client = new BareClient(port);
    const session = await client.greet(greeting);
    return Object.assign(client, { session });
  }

  /** The next frame. Rejects if the connection closes instead. */
  async frame(): Promise<Uint8Array> {
    const waiting = this.frames.shift();
    if (waiting !== undefined) return waiting;
    const until = AbortSignal.timeout(boundMs);
    for (;;) {
      const next = this.frames.shift();
      if (next !== undefined) return next;
      if (this.isClosed) throw new Error('closed');
      await new Promise<void>((resolve, reject) => {
        this.#wake = resolve;
        until.onabort = () => reject(new Error(`no frame after ${boundMs} ms`));
      });
    }
  }

  write(bytes: Uint8Array): void {
    this.socket.write(bytes);
  }

  greetBytes(greeting: Greeting = {}): Uint8Array {
    const { lastZxidSeen = 0n, timeoutMs = 4000, sessionId = 0n, readOnly = false } = greeting;
    const password = greeting.password === undefined ? new Uint8Array(16) : greeting.password;
    return frame((writer) => {
      connectRequest.write(writer, {
        ...{ protocolVersion: 0, lastZxidSeen, timeoutMs, sessionId, password, readOnly },
      });
      if (greeting.short) writer.reset(writer.length - 1);
    });
  }

  async greet(greeting: Greeting = {}): Promise<ConnectResponse> {
    this.write(this.greetBytes(greeting));
    return decode(connectResponse, await this.frame(), 'a ConnectResponse');
  }

  /** Sends a request, whose reply has to be taken with `reply`. Returns the xid. */
  send<Q>(kind: RequestKind<Q, unknown>, body: Q, xid = this.#nextXid()): number {
    this.write(
      frame((writer) => {
        requestHeader.write(writer, { xid, opcode: kind.opcode });
        kind.request.write(writer, body);
      }),
    );
    return xid;
  }

  #nextXid(): number {
    this.#xid += 1;
    return this.#xid;
  }

  async reply<R>(codec: Codec<R>): Promise<Reply<R>> {
    const reader = new JuteReader(await this.frame());
    const header = replyHeader.read(reader);
    const body = header.error === 0 ? codec.read(reader) : undefined;
    reader.expectEnd('a reply');
    return { ...header, body };
  }

  /** Sends a request and waits. The next frame must be the reply. */
  async ask<Q, R>(kind: RequestKind<Q, R>, body: Q, xid?: number): Promise<Reply<R>> {
    const sent = this.send(kind, body, xid);
    const reply = await this.reply(kind.response);
    if (reply.xid !== sent) throw new Error(`xid ${reply.xid} where ${sent} was due`);
    return reply;
  }

  /** The next frame, which must be a notification. */
  async event(): Promise<WatcherEvent & { zxid: bigint }> {
    const { xid, zxid, body } = await this.reply(watcherEvent);
    if (xid !== -1 || body === undefined) throw new Error(`xid ${xid}, not a notification`);
    return { ...body, zxid };
  }

  /** Asserts that nothing is waiting: the next frame is the answer to a ping. */
  async quiet(): Promise<ReplyHeader> {
    return this.ask(requests.ping, {}, -2);
  }

  create(path: string, flags = 0, data: Uint8Array | null = null, acl = open) {
    return this.ask(requests.create2, { path, data, acl, flags });
  }

  get(path: string, watch = false) {
    return this.ask(requests.getData, { path, watch });
  }

  set(path: string, version = -1, data: Uint8Array | null = null) {
    return this.ask(requests.setData, { path, data, version });
  }

  delete(path: string, version = -1) {
    return this.ask(requests.delete, { path, version });
  }

  exists(path: string, watch = false) {
    return this.ask(requests.exists, { path, watch });
  }

  children(path: string, watch = false) {
    return this.ask(requests.getChildren2, { path, watch });
  }

  close(): void {
    this.socket.destroy();
  }
}

export type Attached = BareClient & { readonly session: ConnectResponse };
