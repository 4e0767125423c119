/** Reads the end of a node's stream of writes, as its replicas would get it. */
import type { Socket } from 'node:net';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { NodeAddress } from '../node-address.ts';
import { parseNodeAddress } from '../node-address.ts';
import { NodeCommandError, NodeUnreachableError } from './errors.ts';
import type { NodeConnectionOptions } from './node-connection.ts';
import { setPatience } from './patience.ts';

export interface TailQuestion {
  /** The stream, as in `master_replid`. */
  readonly stream: string;
  /** The offset of the last byte before the part that is read. A command ends there. */
  readonly after: number;
  /** The offset of the last byte that is read. */
  readonly upTo: number;
}

/** The commands in the order of the stream, each with its arguments. */
export type TailCommands = readonly (readonly Buffer[])[];

export type ReadTail = (
  address: NodeAddress,
  question: TailQuestion,
  options: NodeConnectionOptions,
) => Promise<TailCommands>;

/**
 * Asks as a replica does (PSYNC), and changes nothing on the node. Redis answers from its backlog
 * while the node is a primary. Ask only for what the backlog has: for anything else Redis begins to
 * save its data.
 * @returns rejects with NodeUnreachableError, NodeCommandError for another answer of the node, and
 *   with the reason of `signal`
 */
export const readTail: ReadTail = async (address, question, options) => {
  options.signal?.throwIfAborted();
  const { stream, after, upTo } = question;
  const lines = [
    ...authOf(options),
    ['CLIENT', 'SETNAME', options.name ?? 'incumbent-redis-failover'],
    ['PSYNC', stream, `${after + 1}`],
  ];
  const socket = open(address, options);
  return new Promise((resolve, reject) => {
    const stopWaiting = setPatience(options.timeoutMs, () => {
      end(() => reject(new NodeUnreachableError(address, 'has not answered PSYNC in time')));
    });
    const onAbort = () => end(() => reject(options.signal?.reason));
    const end = (settle: () => void) => {
      stopWaiting();
      options.signal?.removeEventListener('abort', onAbort);
      socket.destroy();
      settle();
    };
    options.signal?.addEventListener('abort', onAbort, { once: true });
    let received: Buffer = Buffer.alloc(0);
    let answered = 0;
    socket.on('error', (error) =>
      end(() =>
        reject(new NodeUnreachableError(address, `has no connection with us: ${error.message}`)),
      ),
    );
    socket.on('close', () =>
      end(() => reject(new NodeUnreachableError(address, 'has ended the connection'))),
    );
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      while (answered < lines.length) {
        const at = received.indexOf('\r\n');
        if (at < 0) return;
        const reply = received.subarray(0, at).toString();
        received = received.subarray(at + 2);
        const wanted = answered === lines.length - 1 ? '+CONTINUE' : '+OK';
        if (!reply.startsWith(wanted)) {
          const command = lines[answered]?.[0] ?? '';
          return end(() => reject(new NodeCommandError(address, command, reply.slice(1))));
        }
        answered += 1;
        // One command at a time: Redis refuses PSYNC while it still has an answer to send.
        if (answered < lines.length) socket.write(encode(lines[answered] ?? []));
      }
      if (received.length < upTo - after) return;
      end(() => {
        try {
          resolve(decodeCommands(received.subarray(0, upTo - after)));
        } catch (error) {
          reject(new NodeCommandError(address, 'PSYNC', (error as Error).message));
        }
      });
    });
    socket.write(encode(lines[0] ?? []));
  });
};

/**
 * Arrays of bulk strings, as a primary sends commands to its replicas.
 * @throws Error for anything else, and if the last command is not complete
 */
export function decodeCommands(bytes: Buffer): TailCommands {
  const commands: (readonly Buffer[])[] = [];
  let at = 0;
  const count = (prefix: string): number => {
    const end = bytes.indexOf('\r\n', at);
    const text = end < 0 ? '' : bytes.toString('latin1', at, end);
    if (!new RegExp(`^\\${prefix}\\d{1,9}$`).test(text)) {
      throw new Error('the stream is not one of commands');
    }
    at = end + 2;
    return Number(text.slice(1));
  };
  while (at < bytes.length) {
    const parts = Array.from({ length: count('*') }, () => {
      const length = count('$');
      const part = bytes.subarray(at, at + length);
      at += length + 2;
      if (at > bytes.length || bytes.toString('latin1', at - 2, at) !== '\r\n') {
        throw new Error('the stream ends in the middle of a command');
      }
      return part;
    });
    commands.push(parts);
  }
  return commands;
}

function open(address: NodeAddress, { tls }: NodeConnectionOptions): Socket {
  const { host, port } = parseNodeAddress('the address of a Redis node', address);
  if (tls === undefined || tls === false) return connectTcp({ host, port });
  return connectTls({ ...(tls === true ? {} : tls), host, port });
}

function authOf({ username, password }: NodeConnectionOptions): readonly string[][] {
  if (password === undefined) return [];
  return [['AUTH', ...(username === undefined ? [] : [username]), password]];
}

function encode(parts: readonly string[]): string {
  const bulks = parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`);
  return `*${parts.length}\r\n${bulks.join('')}`;
}
