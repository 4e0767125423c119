import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import type { FakeZooKeeperOptions } from '@incumbent/zookeeper-testing';
import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import type { Clock, ZooKeeper } from '../../src/index.ts';
import type { Scope } from '../support/scope.ts';
import { nextState } from '../support/waiting.ts';

/** A fake whose own clock stands still: sessions end only when a test says so. */
export async function startFake(
  scope: Scope,
  options: FakeZooKeeperOptions = {},
): Promise<FakeZooKeeper> {
  const bounds = { minSessionTimeoutMs: 400, maxSessionTimeoutMs: 60_000 };
  return scope.later(await FakeZooKeeper.start({ ...bounds, ...options }));
}

/** Cuts the connection once. Resolves when the client is back. */
export async function reconnect(fake: FakeZooKeeper, client: ZooKeeper): Promise<void> {
  const [suspended, connected] = [nextState(client, 'suspended'), nextState(client, 'connected')];
  fake.dropConnections();
  await suspended;
  await connected;
}

/** The names of the requests since the last handshake began. */
export function sinceHandshake(fake: FakeZooKeeper): string[] {
  const names = fake.requests.map(({ opcode }) => opcode);
  return names.slice(names.lastIndexOf('connect'));
}

/** The requests that set watches again: one-shot and persistent ones. */
export const setWatches: readonly string[] = ['setWatches', 'setWatches2'];

export interface Relay extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
}

/**
 * A relay in front of a server.
 * @param options `pieceBytes`: the server's bytes are passed on in pieces of that size, each read
 *   by the client before the next is written. Default: as they come. `beforePiece`: awaited before
 *   each piece
 */
export async function startRelay(
  target: { readonly port: number },
  options: {
    readonly host?: string;
    readonly pieceBytes?: number;
    readonly beforePiece?: () => Promise<void>;
  } = {},
): Promise<Relay> {
  const { host = '127.0.0.1', pieceBytes, beforePiece } = options;
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: '127.0.0.1', port: target.port });
    let tail = Promise.resolve();
    client.on('data', (chunk) => upstream.write(chunk));
    upstream.on('data', (chunk: Uint8Array) => {
      tail = tail.then(() => writeInPieces(client, chunk, pieceBytes ?? chunk.length, beforePiece));
    });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  server.listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    host,
    port,
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

async function writeInPieces(
  socket: Socket,
  chunk: Uint8Array,
  bytes: number,
  beforePiece: (() => Promise<void>) | undefined,
): Promise<void> {
  for (let at = 0; at < chunk.length && !socket.destroyed; at += bytes) {
    await beforePiece?.();
    socket.write(chunk.subarray(at, at + bytes));
    // Client and relay share a process. After two turns of its event loop the piece was read.
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** A client's clock that only the test moves. */
export class ManualClock implements Clock {
  #nowMs = 1_000_000;
  readonly #timers = new Set<{ readonly atMs: number; readonly run: () => void }>();

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  setTimer(callback: () => void, delayMs: number): { cancel(): void } {
    const timer = { atMs: this.#nowMs + delayMs, run: callback };
    this.#timers.add(timer);
    return { cancel: () => void this.#timers.delete(timer) };
  }

  /** Advances the time at once. Timers run in the order in which they are due. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const [next] = [...this.#timers].sort((a, b) => a.atMs - b.atMs);
      if (next === undefined || next.atMs > endMs) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.run();
    }
    this.#nowMs = endMs;
  }
}
