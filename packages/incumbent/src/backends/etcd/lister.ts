import { inParallel } from '../../base/in-parallel.ts';
import type { ElectionPages, FoundElection } from '../../core/listing.ts';
import { onlyNamed } from '../../core/listing.ts';
import { shardsWithParts } from '../../mechanisms/lease/listing.ts';
import type { Leases } from '../../mechanisms/lease/store.ts';
import { foundQueue } from '../../mechanisms/queue/listing.ts';
import { codeOf, grpcCode } from './client.ts';
import type { RecordKeys } from './keys.ts';
import { encodeKey, keysOfRecord, leasesBelow, nameBelow, rangeBelow, recordsOf } from './keys.ts';
import { sortOrder, sortTarget } from './messages.ts';
import type { EtcdSession } from './session.ts';
import { membersOf, readingOf } from './store.ts';

const text = new TextDecoder();

const namesAPage = 1_000;
/** Each is two reads, and servers take 128 operations in a transaction. */
const electionsAtOnce = 50;
const transactionsAtOnce = 4;

const inOrder = { sortOrder: sortOrder.ascend, sortTarget: sortTarget.create } as const;

/** `leases.shards`: the keys of leases have their names. */
export function etcdShards(session: EtcdSession, root: string): NonNullable<Leases['shards']> {
  const prefix = leasesBelow(root);
  return async (signal) => {
    const request = { ...rangeBelow(prefix), keysOnly: true };
    const { kvs } = await session.read(request, 'listing shards', signal);
    return shardsWithParts(kvs.map(({ key }) => text.decode(key).slice(prefix.length)));
  };
}

/**
 * The elections with a record of ours. One that only Go programs hold has no mark by which it could
 * be told from other keys, such as those of a mutex.
 */
export function etcdPages(session: EtcdSession, root: string): ElectionPages {
  return {
    async page(after, wanted, signal) {
      const range = rangeBelow(recordsOf(root));
      const { kvs, more } = await session.read(
        { ...range, ...(after instanceof Uint8Array ? { key: after } : {}), ...firstKeys },
        'listing elections',
        signal,
      );
      const last = kvs.at(-1)?.key;
      const next = more && last !== undefined ? Uint8Array.from([...last, 0]) : undefined;
      const found = kvs.flatMap(({ key }) => keysOfRecord(root, key) ?? []);
      if (wanted === 'names')
        return { elections: found.map(({ election }) => onlyNamed(election)), next };
      const parts = Array.from({ length: Math.ceil(found.length / electionsAtOnce) }, (_, i) =>
        found.slice(i * electionsAtOnce, (i + 1) * electionsAtOnce),
      );
      const read = await inParallel(parts, transactionsAtOnce, (part) => readAll(part, signal));
      return { elections: read.flat(), next };
    },
  };

  /** Record and places of an election are of one revision. */
  async function readAll(
    part: readonly RecordKeys[],
    signal: AbortSignal,
  ): Promise<readonly FoundElection[]> {
    const success = part.flatMap(({ keys }) => [
      { range: { key: encodeKey(keys.record) } },
      { range: { ...keys.range, ...inOrder } },
    ]);
    try {
      const { responses } = await session.txn(
        { compare: [], success, failure: [] },
        'listing elections',
        signal,
        { mayRepeat: true },
      );
      return part.flatMap(({ election, keys }, index) => {
        const record = responses[2 * index]?.range?.kvs[0];
        const members = membersOf(keys, responses[2 * index + 1]?.range?.kvs ?? []);
        // It was removed since its key was listed.
        if (record === undefined) return [];
        return foundQueue({
          ...{ name: election, members, isMixed: true },
          places: members.map(({ name }) => name),
          nameHere: (recorded) => nameBelow(keys.prefix, recorded),
          reading: () => readingOf(keys, record),
        });
      });
    } catch (error) {
      // More than a client takes in one answer.
      const isTooMuch = codeOf((error as Error).cause) === grpcCode.resourceExhausted;
      if (!isTooMuch || part.length === 1) throw error;
      const middle = Math.ceil(part.length / 2);
      const first = await readAll(part.slice(0, middle), signal);
      return [...first, ...(await readAll(part.slice(middle), signal))];
    }
  }
}

const firstKeys = { keysOnly: true, limit: BigInt(namesAPage) } as const;
