import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import type { ProtocolName, Reader } from './protocols.ts';
import { protocols } from './protocols.ts';
import type { Traveller } from './round-trips.ts';

export interface MeterOptions {
  /** Of the server, on this machine. */
  readonly port: number;
  readonly protocol: ProtocolName;
  /** Whose messages these are. */
  readonly traveller?: Traveller;
}

/** A proxy for one client that counts what it asks of a store. It changes nothing. */
export interface Meter extends AsyncDisposable {
  readonly port: number;
  /** By name; see `protocols`. */
  readonly requests: ReadonlyMap<string, number>;
  /** Of all names. */
  readonly requestCount: number;
  /** Connections at present, and how many there have been. */
  readonly open: number;
  readonly opened: number;
  /** On no connection the client has said the last word: it waits for no answer. */
  readonly isAnswered: boolean;
  /** A message that could not be read: the numbers are worth nothing then. */
  readonly trouble: Error | undefined;
  /** Resolves when `condition` holds; it is asked again after whatever passes. No time limit. */
  until(condition: (meter: Meter) => boolean): Promise<void>;
  close(): Promise<void>;
}

export async function startMeter({ port, protocol, traveller }: MeterOptions): Promise<Meter> {
  const requests = new Map<string, number>();
  const sockets = new Set<Socket>();
  const unanswered = new Set<Socket>();
  const waiting = new Set<() => void>();
  let open = 0;
  let opened = 0;
  let trouble: Error | undefined;

  const tell = () => {
    for (const look of [...waiting]) look();
  };
  const read = (reader: Reader, chunk: Buffer): boolean => {
    try {
      const seen = reader.read(chunk);
      for (const name of seen.requests) requests.set(name, (requests.get(name) ?? 0) + 1);
      return seen.speaks;
    } catch (error) {
      trouble ??= error as Error;
      return true;
    }
  };
  const carry = (from: Socket, to: Socket, seen: (chunk: Buffer) => void) => {
    from.setNoDelay(true);
    from.on('data', (chunk: Buffer) => {
      seen(chunk);
      if (!to.write(chunk)) {
        from.pause();
        to.once('drain', () => from.resume());
      }
      tell();
    });
    from.on('end', () => to.end());
    from.on('error', () => to.destroy());
    from.on('close', () => to.destroy());
  };

  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    const toServer = protocols[protocol].toServer();
    const toClient = protocols[protocol].toClient();
    open += 1;
    opened += 1;
    traveller?.connected();
    for (const socket of [client, upstream]) sockets.add(socket);
    carry(client, upstream, (chunk) => {
      if (!read(toServer, chunk)) return;
      unanswered.add(client);
      traveller?.sent();
    });
    carry(upstream, client, (chunk) => {
      if (!read(toClient, chunk)) return;
      unanswered.delete(client);
      traveller?.received();
    });
    client.once('close', () => {
      open -= 1;
      unanswered.delete(client);
      for (const socket of [client, upstream]) sockets.delete(socket);
      tell();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const close = async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  const meter: Meter = {
    port: (server.address() as AddressInfo).port,
    requests,
    get requestCount() {
      return [...requests.values()].reduce((sum, count) => sum + count, 0);
    },
    get open() {
      return open;
    },
    get opened() {
      return opened;
    },
    get isAnswered() {
      return unanswered.size === 0;
    },
    get trouble() {
      return trouble;
    },
    until: (condition) =>
      new Promise((resolve) => {
        const look = () => {
          if (!condition(meter)) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    close,
    [Symbol.asyncDispose]: close,
  };
  return meter;
}
