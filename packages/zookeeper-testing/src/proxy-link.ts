import type { Socket } from 'node:net';
import { resetSocket } from '@incumbent/zookeeper/internal';

/** The treatment of a chunk, or (undefined) of the end of a connection. */
export type Verdict = 'all' | 'none' | 'hold' | { readonly cutAfter: number };

export interface Gate {
  toServer(chunk: Uint8Array | undefined): Verdict;
  toClient(chunk: Uint8Array | undefined): Verdict;
  /** Both halves are closed. */
  gone(): void;
}

/** The output that a direction holds back, in order. */
type Held = Uint8Array | 'end' | 'reset';

/** One connection of a client, and ours to the server. */
export class Link {
  /** Bytes or an end were lost, so the connection cannot go on as if nothing had happened. */
  damaged: boolean;
  readonly #client: Socket;
  readonly #upstream: Socket | undefined;
  readonly #gate: Gate;
  readonly #requests: Held[] = [];
  readonly #replies: Held[] = [];
  #open: number;
  #isStranded = false;

  constructor(client: Socket, upstream: Socket | undefined, gate: Gate) {
    this.damaged = upstream === undefined;
    this.#client = client;
    this.#upstream = upstream;
    this.#gate = gate;
    this.#open = upstream === undefined ? 1 : 2;
    this.#carry(client, upstream, (chunk) => gate.toServer(chunk), this.#requests);
    if (upstream !== undefined) {
      this.#carry(upstream, client, (chunk) => gate.toClient(chunk), this.#replies);
    }
  }

  get holds(): boolean {
    return this.#requests.length > 0 || this.#replies.length > 0;
  }

  get bytesHeld(): number {
    const lengths = [...this.#requests, ...this.#replies].map((item) =>
      typeof item === 'string' ? 0 : item.length,
    );
    return lengths.reduce((sum, length) => sum + length, 0);
  }

  /** The held output has been delivered, and the connection can carry nothing more. */
  get isStranded(): boolean {
    return this.#isStranded;
  }

  /** Delivers the held output. @returns how many bytes that were */
  letGo(): { readonly toServer: number; readonly toClient: number } {
    const requests = this.#requests.splice(0);
    const replies = this.#replies.splice(0);
    // The server has to do what it was asked to, whatever has become of the client.
    this.#isStranded = this.damaged || requests.some((item) => typeof item === 'string');
    const toServer = deliver(requests, this.#upstream, this.#isStranded);
    return { toServer, toClient: deliver(replies, this.#client, this.damaged) };
  }

  reset(): void {
    resetSocket(this.#client);
    if (this.#upstream !== undefined) resetSocket(this.#upstream);
  }

  #carry(
    from: Socket,
    to: Socket | undefined,
    admit: (chunk: Uint8Array | undefined) => Verdict,
    held: Held[],
  ): void {
    let failed = false;
    /** After a loss nothing may follow the held output. */
    const judge = (chunk: Uint8Array | undefined): Verdict => {
      const verdict = admit(chunk);
      return this.#isStranded ? 'none' : verdict;
    };
    from.setNoDelay(true);
    from.on('data', (chunk) => {
      const verdict = judge(chunk);
      if (verdict === 'none' || to === undefined) {
        this.damaged = true;
      } else if (verdict === 'hold') {
        // Behind a gap it would be misread.
        if (!this.damaged) held.push(chunk);
      } else if (verdict === 'all') {
        if (!to.write(chunk)) {
          from.pause();
          to.once('drain', () => from.resume());
        }
      } else {
        from.pause();
        // A reset discards bytes that are not written yet.
        to.write(chunk.subarray(0, verdict.cutAfter), () => this.reset());
      }
    });
    from.on('end', () => {
      const verdict = judge(undefined);
      if (verdict === 'all') to?.end();
      else if (verdict === 'hold') held.push('end');
      else this.damaged = true;
    });
    from.on('error', () => {
      failed = true;
    });
    from.on('close', () => {
      this.#open -= 1;
      if (this.#open === 0) {
        this.#gate.gone();
        return;
      }
      const verdict = judge(undefined);
      if (verdict === 'hold') held.push(failed ? 'reset' : 'end');
      else if (verdict !== 'all') this.damaged = true;
      else if (failed) this.reset();
      else to?.end();
    });
  }
}

/** @param bytesOnly ends are not delivered */
function deliver(held: readonly Held[], to: Socket | undefined, bytesOnly: boolean): number {
  let bytes = 0;
  for (const item of held) {
    if (to === undefined || to.destroyed || to.writableEnded) return bytes;
    if (typeof item !== 'string') {
      to.write(item);
      bytes += item.length;
    } else if (bytesOnly) {
      return bytes;
    } else if (item === 'end') {
      to.end();
    } else {
      // After everything that was written.
      to.write('', () => resetSocket(to));
    }
  }
  return bytes;
}
