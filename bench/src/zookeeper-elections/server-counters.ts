import type { TestServer } from '@incumbent/zookeeper-testing';
import { monotonicMs, sleep } from '../clock.ts';

const lookEveryMs = 200;

/** Counters that a server keeps by itself. */
export interface Counters {
  readonly atMs: number;
  /** Of all writes, also those that only check. */
  readonly transactions: number;
  /** Packets from clients, pings too. */
  readonly packetsReceived: number;
}

export async function readCounters(server: TestServer): Promise<Counters> {
  const answer = await server.fourLetterWord('srvr');
  const field = (pattern: RegExp): string => {
    const found = pattern.exec(answer)?.[1];
    if (found === undefined) throw new Error(`the server does not say ${pattern}: ${answer}`);
    return found;
  };
  return {
    atMs: monotonicMs(),
    // The upper half counts the leaders of an ensemble.
    transactions: Number(BigInt(field(/^Zxid: (0x[\da-f]+)/m)) & 0xffff_ffffn),
    packetsReceived: Number(field(/^Received: (\d+)/m)),
  };
}

/** Else the sessions of those who were killed before end in what is measured: each is a transaction. */
export async function untilNoSession(server: TestServer): Promise<void> {
  while (!/^zk_global_sessions\s+0$/m.test(await server.fourLetterWord('mntr'))) {
    await sleep(lookEveryMs);
  }
}

/** In a second, between two readings. */
export function ratesOf(
  before: Counters,
  after: Counters,
): { readonly transactions: number; readonly packetsReceived: number } {
  const seconds = (after.atMs - before.atMs) / 1e3;
  return {
    transactions: (after.transactions - before.transactions) / seconds,
    packetsReceived: (after.packetsReceived - before.packetsReceived) / seconds,
  };
}
