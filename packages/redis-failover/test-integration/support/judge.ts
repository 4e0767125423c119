/**
 * The rules for every write that a client counts as done, whatever has happened to the primary.
 * Each rule fails with an error of its own.
 */
import type { NodeAddress } from '../../src/node-address.ts';

/** A write that a client counts as acknowledged. */
export interface Acknowledged {
  readonly value: number;
  /** The term in which the client says that it wrote. */
  readonly term: number | undefined;
  /** The node that executed it, by that Redis' own statement. */
  readonly node: NodeAddress;
  /** When it was executed, by the clock of that Redis. All of them share this machine's clock. */
  readonly executedAtUs: number;
}

export interface Evidence {
  readonly acknowledged: readonly Acknowledged[];
  /** All values that the last primary has. */
  readonly present: readonly number[];
  /** The primary of each term, as far as the test has seen it. */
  readonly primaries: ReadonlyMap<number, NodeAddress>;
}

export class VerdictError extends Error {
  override readonly name: string = 'VerdictError';
}

/** @throws VerdictError */
export function judge({ acknowledged, present, primaries }: Evidence): void {
  judgeTerms(acknowledged, primaries);
  judgeOrder(acknowledged);
  judgePresence(acknowledged, present);
}

/** A write counts for the term of the primary that executed it. */
function judgeTerms(
  acknowledged: readonly Acknowledged[],
  primaries: ReadonlyMap<number, NodeAddress>,
): void {
  for (const { value, term, node } of acknowledged) {
    const primary = term === undefined ? undefined : primaries.get(term);
    if (primary === undefined || primary === node) continue;
    throw new VerdictError(
      `two primaries: write ${value} was acknowledged in term ${term}, whose primary is ${primary}, ` +
        `but ${node} has executed it`,
    );
  }
}

/** Once a newer primary has accepted a write, an older one accepts none. */
function judgeOrder(acknowledged: readonly Acknowledged[]): void {
  const inTime = [...acknowledged].sort((a, b) => a.executedAtUs - b.executedAtUs);
  let newest: (Acknowledged & { readonly term: number }) | undefined;
  for (const write of inTime) {
    const { term } = write;
    if (term === undefined) continue;
    if (newest !== undefined && term < newest.term) {
      throw new VerdictError(
        `two primaries: ${write.node} executed write ${write.value} of term ${term} ` +
          `${(write.executedAtUs - newest.executedAtUs) / 1_000} ms after ${newest.node} executed ` +
          `write ${newest.value} of term ${newest.term}, and both were acknowledged`,
      );
    }
    newest = { ...write, term };
  }
}

function judgePresence(acknowledged: readonly Acknowledged[], present: readonly number[]): void {
  const counts = new Map<number, number>();
  for (const value of present) counts.set(value, (counts.get(value) ?? 0) + 1);
  const twice = [...counts].filter(([, count]) => count > 1).map(([value]) => value);
  if (twice.length > 0) throw new VerdictError(`applied twice: writes ${twice.join(', ')}`);
  const lost = acknowledged.filter(({ value }) => !counts.has(value));
  if (lost.length > 0) {
    const some = lost.slice(0, 5).map(({ value, term, node }) => `${value} (${term}, ${node})`);
    throw new VerdictError(
      `lost: ${lost.length} of ${acknowledged.length} acknowledged writes are not on the last ` +
        `primary, among them ${some.join(', ')}`,
    );
  }
}
