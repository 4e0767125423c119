/**
 * *raw*: pre-encoded frames on a bare socket, replies only counted. *raw+decode*: the same, with
 * each reply decoded. As many requests are sent in one write as replies came in one chunk.
 */
import { nodeBytes, numberedPath } from '../messages.ts';
import type { Session } from '../wire.ts';
import {
  authRequest,
  createRequest,
  getRequest,
  setRequest,
  setWatchesRequest,
  xidAt,
  xids,
} from '../wire.ts';
import type { Adapter, Connection, ConnectOptions } from './adapter.ts';
import { credentials, nodeData } from './adapter.ts';
import type { DecodedGet } from './decode.ts';
import { decodeGet } from './decode.ts';
import { checkReply, RawSocket, xidOf } from './raw-socket.ts';

const data = nodeData(nodeBytes);

export function rawAdapter(decodes: boolean): Adapter {
  return {
    async connect(options) {
      const connection = new RawConnection(options, decodes);
      await connection.connected();
      return connection;
    },
    async connectAndGet(options, path) {
      const connection = new RawConnection(options, decodes);
      await connection.get(path);
      return connection;
    },
  };
}

interface Waiting {
  readonly encode: (xid: number) => Uint8Array;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

class RawConnection implements Connection {
  readonly #options: ConnectOptions;
  readonly #decodes: boolean;
  readonly #watched = new Map<string, () => void>();
  /** Calls that are not part of a loop, in their order. */
  #waiting: Waiting[] = [];
  #xid = 0;
  #raw: RawSocket | undefined;
  #session: Session | undefined;
  #lastZxid = 0n;
  #isClosing = false;
  /** So that nothing of the decoding can be left out as unused. */
  last: DecodedGet | undefined;

  constructor(options: ConnectOptions, decodes: boolean) {
    this.#options = options;
    this.#decodes = decodes;
    // Calls that are made at once go into the first write.
    queueMicrotask(() => this.#open());
  }

  async connected(): Promise<void> {
    await Promise.resolve();
    await this.#open().connected;
  }

  get(path: string): Promise<void> {
    return this.#call((xid) => getRequest(xid, path));
  }

  set(path: string): Promise<void> {
    return this.#call((xid) => setRequest(xid, path, data));
  }

  async watch(path: string, changed: () => void): Promise<void> {
    this.#watched.set(path, changed);
    await this.#call((xid) => getRequest(xid, path, true));
  }

  gets(path: string, operations: number, window: number, completed?: () => void): Promise<void> {
    const { socket } = this.#open();
    const one = getRequest(0, path);
    const frames = Buffer.concat(Array.from({ length: window }, () => one));
    return this.#pipeline(
      operations,
      window,
      (count, firstXid) => {
        // Bytes that the system has not taken yet must not be changed.
        const bytes =
          socket.writableLength === 0
            ? frames.subarray(0, count * one.length)
            : Buffer.from(frames.subarray(0, count * one.length));
        for (let i = 0; i < count; i += 1) {
          bytes.writeInt32BE(firstXid + i, i * one.length + xidAt);
        }
        return bytes;
      },
      completed,
    );
  }

  creates(parent: string, from: number, operations: number, window: number): Promise<void> {
    const firstOfAll = this.#xid + 1;
    const frames = Array.from({ length: operations }, (_, i) =>
      createRequest(firstOfAll + i, numberedPath(parent, from + i), data),
    );
    const all = Buffer.concat(frames);
    const { length } = frames[0] as Buffer;
    return this.#pipeline(operations, window, (count, firstXid) => {
      const first = (firstXid - firstOfAll) * length;
      return all.subarray(first, first + count * length);
    });
  }

  close(): Promise<void> {
    this.#isClosing = true;
    return this.#raw?.close() ?? Promise.resolve();
  }

  #pipeline(
    operations: number,
    window: number,
    encode: (count: number, firstXid: number) => Uint8Array,
    completed?: () => void,
  ): Promise<void> {
    const raw = this.#open();
    const before = raw.onFrame;
    let expected = this.#xid + 1;
    const last = this.#xid + operations;
    const send = (count: number) => {
      if (count === 0) return;
      raw.socket.write(encode(count, this.#xid + 1));
      this.#xid += count;
    };
    return new Promise((resolve, reject) => {
      let free = 0;
      const onClose = () => reject(new Error('the connection was closed'));
      raw.onFrame = (bytes, start) => {
        const xid = xidOf(bytes, start);
        if (xid !== expected) {
          if (xid < 0) return;
          reject(new Error(`reply ${xid} where ${expected} was expected`));
        }
        checkReply(bytes, start);
        if (this.#decodes) this.last = decodeGet(bytes, start);
        expected += 1;
        free += 1;
        completed?.();
      };
      raw.onChunkEnd = () => {
        const count = Math.min(free, last - this.#xid);
        free = 0;
        send(count);
        if (expected <= last) return;
        raw.onFrame = before;
        raw.onChunkEnd = () => {};
        raw.socket.off('close', onClose);
        resolve();
      };
      raw.socket.once('close', onClose);
      send(Math.min(window, operations));
    });
  }

  #call(encode: (xid: number) => Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ encode, resolve, reject });
      if (this.#raw === undefined) return;
      this.#xid += 1;
      this.#raw.socket.write(encode(this.#xid));
    });
  }

  /** Everything that a client has to say to a server, in one write. */
  #open(): RawSocket {
    if (this.#raw !== undefined) return this.#raw;
    const { port, sessionTimeoutMs, auth } = this.#options;
    const first: Uint8Array[] = [];
    if (auth) first.push(authRequest(credentials.scheme, credentials.auth));
    if (this.#watched.size > 0) {
      first.push(setWatchesRequest(this.#lastZxid, [...this.#watched.keys()]));
    }
    for (const { encode } of this.#waiting) {
      this.#xid += 1;
      first.push(encode(this.#xid));
    }
    const raw = new RawSocket({
      port,
      sessionTimeoutMs,
      lastZxid: this.#lastZxid,
      ...(this.#session === undefined ? {} : { session: this.#session }),
      first: Buffer.concat(first),
      onClose: () => {
        this.#raw = undefined;
        if (!this.#isClosing) this.#open();
      },
    });
    this.#raw = raw;
    raw.onFrame = (bytes, start, end) => this.#receive(bytes, start, end);
    raw.connected.then(
      (session) => {
        this.#session = session;
      },
      () => {},
    );
    return raw;
  }

  #receive(bytes: Buffer, start: number, end: number): void {
    const xid = xidOf(bytes, start);
    if (xid === xids.notification) {
      const path = bytes.toString('utf8', start + 32, end);
      const changed = this.#watched.get(path);
      this.#watched.delete(path);
      changed?.();
      return;
    }
    if (xid < 0) return;
    const zxid = bytes.readBigInt64BE(start + 8);
    if (zxid > 0n) this.#lastZxid = zxid;
    const call = this.#waiting.shift();
    const code = bytes.readInt32BE(start + 16);
    if (code !== 0) call?.reject(new Error(`reply with error ${code}`));
    else call?.resolve();
  }
}
