import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import process from 'node:process';
import type { ConnectionOptions } from 'node:tls';
import { connect as connectTls } from 'node:tls';
import { afterEach, beforeEach } from 'vitest';
import type { ConnectResponse } from '../../zookeeper/src/protocol/connect.ts';
import { connectRequest, connectResponse } from '../../zookeeper/src/protocol/connect.ts';
import { defaultMaxFrameBytes, opcodes } from '../../zookeeper/src/protocol/constants.ts';
import { FrameSplitter } from '../../zookeeper/src/protocol/frames.ts';
import type { Codec } from '../../zookeeper/src/protocol/jute.ts';
import { decode, JuteReader, JuteWriter } from '../../zookeeper/src/protocol/jute.ts';
import {
  create2Response,
  createRequest,
  getDataResponse,
  readRequest,
  reconfigRequest,
  replyHeader,
} from '../../zookeeper/src/protocol/messages.ts';
import { serverAvailable } from '../src/index.ts';

/** Skips each test of the file, with the reason, if no server can run. In CI it fails instead. */
export function needServers(): void {
  beforeEach((context) => {
    const reason = serverAvailable({ tls: {} });
    if (reason === undefined) return;
    if (process.env['CI'] === 'true') throw new Error(reason);
    context.skip(reason);
  });
}

/** Makes a function that closes its arguments after the test, the last first. */
export function closing(): <T extends AsyncDisposable>(resource: T) => T {
  const open: AsyncDisposable[] = [];
  afterEach(async () => {
    for (const resource of open.splice(0).reverse()) await resource[Symbol.asyncDispose]();
  });
  return (resource) => {
    open.push(resource);
    return resource;
  };
}

/** Asks until the answer is true. The limit only turns a hang into a failure. */
export async function until(what: string, ask: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!(await ask())) {
    if (performance.now() > deadline) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/**
 * The least of a client that can write a node and read it: one request at a time, no watch, no
 * ping.
 */
export class BareSession implements AsyncDisposable {
  readonly socket: Socket;
  session: ConnectResponse | undefined;
  readonly #frames: Uint8Array[] = [];
  #wake: () => void = () => {};
  #error: Error | undefined;
  #xid = 0;

  private constructor(socket: Socket) {
    this.socket = socket;
    const splitter = new FrameSplitter(defaultMaxFrameBytes, (bytes, start, end) => {
      this.#frames.push(bytes.slice(start, end));
    });
    socket.on('data', (chunk) => {
      splitter.push(chunk);
      this.#wake();
    });
    socket.on('error', (error) => {
      this.#error = error;
    });
    socket.on('close', () => {
      this.#error ??= new Error('the server closed the connection');
      this.#wake();
    });
  }

  /** Rejects if the connection breaks before there is a session. */
  static async open(
    target: { readonly host: string; readonly port: number },
    options: { readonly tls?: ConnectionOptions; readonly readOnly?: boolean } = {},
  ): Promise<BareSession> {
    const { host, port } = target;
    const socket =
      options.tls === undefined
        ? connect({ host, port })
        : connectTls({ host, port, ...options.tls });
    await once(socket, options.tls === undefined ? 'connect' : 'secureConnect');
    const bare = new BareSession(socket);
    bare.#send((writer) => {
      connectRequest.write(writer, {
        protocolVersion: 0,
        lastZxidSeen: 0n,
        timeoutMs: 30_000,
        sessionId: 0n,
        password: null,
        readOnly: options.readOnly ?? false,
      });
    });
    bare.session = decode(connectResponse, await bare.#next(), 'a ConnectResponse');
    return bare;
  }

  async create(path: string, data: string): Promise<void> {
    const acl = [{ perms: 31, scheme: 'world', id: 'anyone' }];
    const bytes = new TextEncoder().encode(data);
    const request = { path, data: bytes, acl, flags: 0 };
    await this.#request(opcodes.create2, createRequest, request, create2Response);
  }

  async get(path: string): Promise<string> {
    const request = { path, watch: false };
    const reply = await this.#request(opcodes.getData, readRequest, request, getDataResponse);
    return new TextDecoder().decode(reply.data ?? new Uint8Array());
  }

  /** Adds a `server.N=…` to the ensemble. */
  async join(line: string): Promise<void> {
    const request = {
      joiningServers: line,
      leavingServers: null,
      newMembers: null,
      curConfigId: -1n,
    };
    await this.#request(opcodes.reconfig, reconfigRequest, request, getDataResponse);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.socket.closed) return;
    this.socket.destroy();
    await once(this.socket, 'close');
  }

  async #request<Request, Reply>(
    opcode: number,
    codec: Codec<Request>,
    request: Request,
    replyCodec: Codec<Reply>,
  ): Promise<Reply> {
    this.#xid += 1;
    this.#send((writer) => {
      writer.int32(this.#xid);
      writer.int32(opcode);
      codec.write(writer, request);
    });
    const reader = new JuteReader(await this.#next());
    const { error } = replyHeader.read(reader);
    if (error !== 0) throw new Error(`the server answered ${error}`);
    return replyCodec.read(reader);
  }

  #send(write: (writer: JuteWriter) => void): void {
    const writer = new JuteWriter();
    writer.int32(0);
    write(writer);
    writer.patchInt32(0, writer.length - 4);
    this.socket.write(writer.written());
  }

  async #next(): Promise<Uint8Array> {
    for (;;) {
      const frame = this.#frames.shift();
      if (frame !== undefined) return frame;
      if (this.#error !== undefined) throw this.#error;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
