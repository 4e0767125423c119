import type { Socket } from 'node:net';
import { connect } from 'node:net';
import type { RoleChange } from './judge.ts';

const againMs = 100;
/** `<time> [<db> <address>] "<command>" …`; what a script does has `lua` for an address. */
const line = /^\+\d+\.\d+ \[\d+ (\S+)\] (.*)$/;
const interesting = /"(?:client|hello|replicaof|slaveof)"/i;
const name = /"incumbent-redis:(\d+):([^"]*)"/;

/**
 * Has a Redis show everything that it executes, in that order (`MONITOR`), and tells who changed its
 * role. A Redis that is killed is looked at again when it is back: what it does before that is not
 * seen.
 */
export class RoleWatch {
  readonly #port: number;
  readonly #tell: (change: RoleChange) => void;
  /** By the address of the connection that bears it. */
  readonly #owners = new Map<string, { readonly token: bigint; readonly manager: string }>();
  #socket: Socket | undefined;
  #closed = false;

  constructor(port: number, tell: (change: RoleChange) => void) {
    this.#port = port;
    this.#tell = tell;
    this.#open();
  }

  close(): void {
    this.#closed = true;
    this.#socket?.destroy();
  }

  #open(): void {
    const socket = connect({ host: '127.0.0.1', port: this.#port });
    this.#socket = socket;
    let rest = '';
    socket.setEncoding('latin1');
    socket.on('connect', () => socket.write('MONITOR\r\n'));
    socket.on('data', (text: string) => {
      const lines = (rest + text).split('\r\n');
      rest = lines.pop() ?? '';
      for (const each of lines) this.#read(each);
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      if (!this.#closed) setTimeout(() => this.#closed || this.#open(), againMs).unref();
    });
  }

  #read(text: string): void {
    if (!interesting.test(text)) return;
    const [, address = '', command = ''] = line.exec(text) ?? [];
    const named = name.exec(command);
    if (named !== null) {
      const [, token = '', manager = ''] = named;
      this.#owners.set(address, { token: BigInt(token), manager });
      return;
    }
    const owner = this.#owners.get(address);
    if (owner === undefined || !/^"(?:replicaof|slaveof)"/i.test(command)) return;
    this.#tell({ port: this.#port, ...owner, command: command.replaceAll('"', '') });
  }
}
