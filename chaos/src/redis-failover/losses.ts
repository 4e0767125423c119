/** The writes that are left in the end: each of them is a bit of a value of its client. */
import type { WriteLine } from './messages.ts';

/** The result of a comparison with the data of a primary, each finding told once. */
export interface Compared {
  readonly lost: readonly number[];
  /** Was reported as surely not done, and is there. */
  readonly doneAfterAll: readonly number[];
}

export class LossJudge {
  readonly #clients = new Map<string, { readonly acknowledged: Bits; readonly refused: Bits }>();
  #acknowledged = 0;

  get acknowledged(): number {
    return this.#acknowledged;
  }

  add({ client, number, outcome }: WriteLine): void {
    const bits = this.#bitsOf(client);
    if (outcome.kind === 'acknowledged') {
      bits.acknowledged.add(number);
      this.#acknowledged += 1;
    }
    if (outcome.kind === 'refused') bits.refused.add(number);
  }

  /** @param kept the client's value, read after all of its writes that were added */
  compare(client: string, kept: Uint8Array): Compared {
    const { acknowledged, refused } = this.#bitsOf(client);
    const lost = acknowledged.numbers().filter((number) => !isSet(kept, number));
    const doneAfterAll = refused.numbers().filter((number) => isSet(kept, number));
    for (const number of lost) acknowledged.delete(number);
    for (const number of doneAfterAll) refused.delete(number);
    return { lost, doneAfterAll };
  }

  #bitsOf(client: string): { readonly acknowledged: Bits; readonly refused: Bits } {
    const known = this.#clients.get(client) ?? { acknowledged: new Bits(), refused: new Bits() };
    this.#clients.set(client, known);
    return known;
  }
}

/** The effects of a round on a set, as far as its data are concerned. */
export interface Damage {
  readonly hasMinReplicas: boolean;
  /** Whether the primary was struck, by whatever it was. A failover that was asked for is none. */
  readonly primary: boolean;
  /** How many nodes were struck: killed, frozen, hidden, or kept from their primary. */
  readonly nodes: number;
  readonly ofNodes: number;
  /** A primary came back empty before another one had taken over: its replicas copied that. */
  readonly cameBackEmpty: boolean;
}

/**
 * Redis replicates behind its answers, so a failover may lose writes. Not so here, where all that is
 * sent arrives:
 *
 * - With `min-replicas-to-write 1`: as long as a node is left that was not struck. The primary has
 *   sent all writes that it acknowledged to all of its replicas.
 * - Without: as long as the primary is not struck.
 *
 * A primary that comes back empty at once takes the data of its replicas, whoever manages it.
 */
export function mayLose({
  hasMinReplicas,
  primary,
  nodes,
  ofNodes,
  cameBackEmpty,
}: Damage): boolean {
  return cameBackEmpty || nodes >= ofNodes || (primary && !hasMinReplicas);
}

/** As Redis counts: bit 0 is the highest of the first byte. */
function isSet(bytes: Uint8Array, number: number): boolean {
  return ((bytes[number >> 3] ?? 0) & (0x80 >> (number & 7))) !== 0;
}

/** Numbers that grow. */
class Bits {
  #bytes = new Uint8Array(1_024);

  add(number: number): void {
    while (number >> 3 >= this.#bytes.length) {
      const grown = new Uint8Array(2 * this.#bytes.length);
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    this.#set(number, (byte, bit) => byte | bit);
  }

  delete(number: number): void {
    this.#set(number, (byte, bit) => byte & ~bit);
  }

  numbers(): readonly number[] {
    const numbers: number[] = [];
    for (const [index, byte] of this.#bytes.entries()) {
      if (byte === 0) continue;
      for (let bit = 0; bit < 8; bit += 1) {
        if ((byte & (0x80 >> bit)) !== 0) numbers.push(8 * index + bit);
      }
    }
    return numbers;
  }

  #set(number: number, change: (byte: number, bit: number) => number): void {
    this.#bytes[number >> 3] = change(this.#bytes[number >> 3] ?? 0, 0x80 >> (number & 7));
  }
}
