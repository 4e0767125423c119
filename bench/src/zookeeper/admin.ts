import { RawSocket, xidOf } from './adapters/raw-socket.ts';
import { nodeBytes, numberedPath } from './messages.ts';
import { createBody, deleteBody, multiRequest, opcodes } from './wire.ts';

const perMulti = 250;
const sessionTimeoutMs = 60_000;
const noPing = { opcode: 11, xid: -2 } as const;

/** Prepares the nodes that the candidates use, and takes them away. */
export class Admin {
  readonly #socket: RawSocket;
  readonly #pings: ReturnType<typeof setInterval>;
  #xid = 0;
  #answered: ((error: Error | undefined) => void) | undefined;

  constructor(port: number) {
    this.#socket = new RawSocket({
      port,
      sessionTimeoutMs,
      lastZxid: 0n,
      first: new Uint8Array(0),
      onClose: () => this.#answered?.(new Error('the server closed the connection')),
    });
    this.#socket.onFrame = (bytes, start, end) => {
      if (xidOf(bytes, start) < 0) return;
      // A failed multi has its error in its first item, whose type is then -1.
      const failed = end - start >= 29 && bytes.readInt32BE(start + 20) === -1;
      const code = failed ? bytes.readInt32BE(start + 25) : bytes.readInt32BE(start + 16);
      this.#answered?.(code === 0 ? undefined : new Error(`the server answered ${code}`));
    };
    this.#pings = setInterval(() => {
      this.#socket.socket.write(
        Buffer.from([0, 0, 0, 8, 255, 255, 255, 254, 0, 0, 0, noPing.opcode]),
      );
    }, sessionTimeoutMs / 6);
    this.#pings.unref();
  }

  async create(path: string): Promise<void> {
    await this.#multi([this.#create(path)]);
  }

  async createNumbered(parent: string, count: number): Promise<void> {
    await this.create(parent);
    await this.#each(count, (i) => this.#create(numberedPath(parent, i)));
  }

  /** Deletes what `createNumbered` or the candidates created. */
  async deleteNumbered(parent: string, count: number): Promise<void> {
    const remove = (path: string) => ({ opcode: opcodes.delete, body: deleteBody(path) });
    await this.#each(count, (i) => remove(numberedPath(parent, i)));
    await this.#multi([remove(parent)]);
  }

  close(): void {
    clearInterval(this.#pings);
    void this.#socket.close();
  }

  #create(path: string) {
    return { opcode: opcodes.create, body: createBody(path, Buffer.alloc(nodeBytes, 'z')) };
  }

  async #each(
    count: number,
    operation: (index: number) => { readonly opcode: number; readonly body: Uint8Array },
  ): Promise<void> {
    for (let first = 0; first < count; first += perMulti) {
      const { length } = { length: Math.min(perMulti, count - first) };
      await this.#multi(Array.from({ length }, (_, i) => operation(first + i)));
    }
  }

  async #multi(operations: Parameters<typeof multiRequest>[1]): Promise<void> {
    await this.#socket.connected;
    this.#xid += 1;
    const request = multiRequest(this.#xid, operations);
    await new Promise<void>((resolve, reject) => {
      this.#answered = (error) => (error === undefined ? resolve() : reject(error));
      this.#socket.socket.write(request);
    });
  }
}
