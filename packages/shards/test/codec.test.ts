import fc from 'fast-check';
import { RecordDamagedError, RecordTooNewError } from 'incumbent';
import { describe, expect, it } from 'vitest';
import { assign, nobody } from '../src/assign.ts';
import type { Directory, Head } from '../src/codec.ts';
import {
  decodeDirectory,
  decodeHead,
  decodeSlot,
  encodeDirectory,
  encodeHead,
  encodeSlot,
  pack,
  widthOf,
} from '../src/codec.ts';
import type { Entry, SlotState } from '../src/slot.ts';
import { isLive } from '../src/slot.ts';

const hex = (source: Uint8Array) => Buffer.from(source).toString('hex');

const token = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n });
const text = fc.string({ unit: 'grapheme', maxLength: 8 });

function onlyLiveIsReady({
  ready,
  ...entry
}: { readonly ready: boolean } & Omit<Entry, 'ready'>): Entry {
  return ready && isLive(entry) ? { ...entry, ready } : entry;
}

const someSlot: fc.Arbitrary<SlotState> = fc.record({
  seal: fc.record({ number: token, nonce: text }),
  slots: fc.integer({ min: 0, max: 4096 }),
  list: fc.record({ count: fc.constant(100_000), digest: token }),
  changes: token,
  highest: token,
  presence: fc.record({
    joined: fc.boolean(),
    leaving: fc.boolean(),
    manual: fc.boolean(),
    weight: fc.integer({ min: 1, max: 1000 }),
    zone: text,
  }),
  entries: fc
    .uniqueArray(
      fc.record<{ readonly ready: boolean } & Omit<Entry, 'ready'>>({
        shard: fc.integer({ min: 0, max: 99_999 }),
        token: fc.oneof(fc.constantFrom(3n, 7n), token),
        state: fc.constantFrom('owned', 'asked', 'clean', 'unclean'),
        unfenced: fc.array(fc.record({ id: text, token }), { maxLength: 2 }),
        ready: fc.boolean(),
      }),
      { selector: ({ shard }) => shard },
    )
    .map((entries) => entries.map(onlyLiveIsReady).sort((a, b) => a.shard - b.shard)),
});

const someDirectory: fc.Arbitrary<Directory> = fc
  .tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 1, max: 60 }))
  .chain(([members, shards]) =>
    fc.record({
      list: fc.record({ count: fc.constant(shards), digest: token }),
      digest: token,
      highest: token,
      members: fc.array(
        fc.record({
          slot: fc.integer({ min: 1, max: 4096 }),
          id: text,
          addresses: fc.array(text, { maxLength: 2 }),
        }),
        { minLength: members, maxLength: members },
      ),
      owners: fc
        .array(fc.integer({ min: nobody, max: members - 1 }), {
          minLength: shards,
          maxLength: shards,
        })
        .map((owners) => Int32Array.from(owners)),
      tokens: fc
        .array(token, { minLength: shards, maxLength: shards })
        .map((tokens) => BigUint64Array.from(tokens)),
      unready: fc.uniqueArray(fc.integer({ min: 0, max: shards - 1 })).map((some) => new Set(some)),
    }),
  );

const slot: SlotState = {
  seal: { number: 7n, nonce: 'n' },
  slots: 16,
  list: { count: 256, digest: 0n },
  changes: 3n,
  highest: 42n,
  presence: { joined: true, leaving: false, weight: 1, zone: 'a', manual: false },
  entries: [
    { shard: 0, token: 40n, state: 'owned', unfenced: [] },
    { shard: 4, token: 40n, state: 'owned', unfenced: [] },
    { shard: 9, token: 42n, state: 'asked', unfenced: [{ id: 'b', token: 5n }] },
    { shard: 200, token: 40n, state: 'clean', unfenced: [] },
  ],
};

const directory: Directory = {
  list: { count: 4, digest: 0n },
  digest: 0n,
  highest: 42n,
  members: [
    { slot: 1, id: 'a', addresses: ['a:1'] },
    { slot: 3, id: 'b', addresses: [] },
  ],
  owners: Int32Array.of(0, 1, nobody, 0),
  tokens: BigUint64Array.of(40n, 42n, 0n, 40n),
  unready: new Set(),
};

describe('a slot', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(someSlot, (given) => {
        expect(decodeSlot(encodeSlot(given), 'here')).toEqual(given);
      }),
    );
  });

  it('has these bytes', () => {
    expect(hex(encodeSlot(slot))).toBe(
      '080110071a016e20102880023803402a480158016201616a0608281a0200046a0610021a02c8016a07080210011a0109720708091201621805',
    );
    expect(decodeSlot(encodeSlot(slot), 'here')).toEqual(slot);
  });

  it('takes one or two bytes for each shard that was granted with others', () => {
    const sizeOf = (shards: number, count: number, tokens: number) =>
      encodeSlot({
        ...slot,
        list: { count: shards, digest: 2n ** 63n },
        entries: Array.from({ length: count }, (_none, i) => ({
          shard: i * Math.floor(shards / count),
          token: BigInt(1_000 + (i % tokens)),
          state: 'owned' as const,
          unfenced: [],
        })),
      }).length;
    expect({
      ofFourWith256: sizeOf(256, 64, 1),
      ofFourWith10000: sizeOf(10_000, 2_500, 10),
      ofHundredWith10000: sizeOf(10_000, 100, 10),
      // Each shard was granted by itself.
      ofThousandWith100000: sizeOf(100_000, 100, 100),
    }).toEqual({
      ofFourWith256: 105,
      ofFourWith10000: 2_615,
      ofHundredWith10000: 293,
      ofThousandWith100000: 918,
    });
  });
});

describe('the record of the election', () => {
  const plain = {
    ...{ floors: new Map<number, bigint>(), top: 0n },
    ...{ numbers: 0, pins: new Map<number, string>() },
  };

  it('is read as it was written, with its floors and its pins', () => {
    const someHead: fc.Arbitrary<Head> = fc.record({
      slots: fc.integer({ min: 0, max: 4096 }),
      list: fc.record({ count: fc.constant(1_000), digest: token }),
      pins: fc
        .array(fc.tuple(fc.integer({ min: 0, max: 999 }), fc.constantFrom('a', 'b', 'ü')))
        .map((pins) => new Map(pins)),
      numbers: fc.integer({ min: 0, max: 2 ** 20 }),
      floors: fc
        .array(fc.tuple(fc.integer({ min: 1, max: 40 }), token))
        .map((floors) => new Map(floors)),
      top: fc.constant(2n ** 63n),
    });
    fc.assert(
      fc.property(someHead, (head) => {
        expect(decodeHead(encodeHead(head), 'it')).toEqual(head);
      }),
    );
  });

  it('is refused when it pins a shard that no list can have', () => {
    const pins = new Map([[2 ** 20, 'a']]);
    const head = { ...plain, slots: 1, list: { count: 4, digest: 0n }, pins };
    expect(() => decodeHead(encodeHead(head), 'it')).toThrow('a pin of shard 1048576');
  });

  it('takes a byte or two for each pin beside the ids', () => {
    const pins = new Map(Array.from({ length: 1_000 }, (_none, i) => [i * 100, `m${i % 2}`]));
    const head = { ...plain, slots: 16, list: { count: 100_000, digest: 0n }, pins };
    expect(encodeHead(head).length).toBeLessThan(2_050);
  });

  it('takes a few bytes for the floor of each slot', () => {
    const floors = new Map(
      Array.from({ length: 2_048 }, (_none, i) => [i + 1, 900_000n + BigInt(i)]),
    );
    const top = 902_047n;
    const head = { ...plain, slots: 2_048, list: { count: 100_000, digest: 0n }, floors, top };
    expect(encodeHead(head).length).toBeLessThan(6_000);
  });
});

describe('a directory', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(someDirectory, (given) => {
        expect(decodeDirectory(encodeDirectory(given), 'here')).toEqual(given);
      }),
    );
  });

  it('has these bytes', () => {
    expect(hex(encodeDirectory(directory))).toBe(
      '08011004202a2a0a08011201611a03613a312a0508031201623201493a030028024201494804',
    );
  });

  it('takes one to four bytes for each shard', () => {
    const sizeOf = (shards: number, count: number, tokens: number) => {
      const members = Array.from({ length: count }, (_none, i) => ({
        id: `host-${i}`,
        weight: 1,
      }));
      const none = new Int32Array(shards).fill(nobody);
      const owners = assign(members, { owners: none, tokens: new BigUint64Array(shards) });
      return encodeDirectory({
        list: { count: shards, digest: 2n ** 63n },
        digest: 2n ** 63n,
        highest: 5_000n,
        members: members.map(({ id }, i) => ({
          slot: i + 1,
          id,
          addresses: ['10.100.100.100:50051'],
        })),
        owners,
        tokens: BigUint64Array.from(owners, (_owner, shard) => BigInt(4_000 + (shard % tokens))),
        unready: new Set(),
      }).length;
    };
    expect({
      four256: sizeOf(256, 4, 3),
      hundred10000AtOnce: sizeOf(10_000, 100, 1),
      hundred10000: sizeOf(10_000, 100, 100),
      // Each shard was granted by itself.
      hundred10000Each: sizeOf(10_000, 100, 10_000),
      thousand100000: sizeOf(100_000, 1_000, 1_000),
    }).toEqual({
      four256: 339,
      hundred10000AtOnce: 12_280,
      hundred10000: 21_132,
      hundred10000Each: 39_784,
      thousand100000: 287_810,
    });
  });
});

describe('readiness', () => {
  it('takes a bit for each shard in a directory, and nothing when all are ready', () => {
    const shards = 8_000;
    const all = {
      ...{ ...directory, list: { count: shards, digest: 0n } },
      owners: new Int32Array(shards),
      tokens: new BigUint64Array(shards),
    };
    const ready = encodeDirectory(all).length;
    const waiting = encodeDirectory({ ...all, unready: new Set([7]) }).length;
    expect(waiting - ready).toBeLessThan(shards / 8 + 5);
    const none = encodeDirectory({ ...all, unready: new Set(all.owners.keys()) }).length;
    expect(none).toBe(waiting);
  });

  it('takes two bytes in a slot whose shards are all ready, whatever their number', () => {
    const entries = [...Array(1_000).keys()].map(
      (shard): Entry => ({ shard, token: 4n, state: 'owned', unfenced: [] }),
    );
    const sizeOf = (isReady: (shard: number) => boolean) =>
      encodeSlot({
        ...slot,
        entries: entries.map((entry) => (isReady(entry.shard) ? { ...entry, ready: true } : entry)),
      }).length;
    expect(sizeOf(() => true)).toBe(sizeOf(() => false) + 2);
    expect(sizeOf((shard) => shard % 2 === 0)).toBeLessThan(sizeOf(() => false) + 10);
  });
});

describe('a column', () => {
  it('has as few bits for each number as the largest needs', () => {
    expect([0, 1, 2, 3, 4, 255, 256].map(widthOf)).toEqual([0, 1, 2, 2, 3, 8, 9]);
    expect(hex(pack([1, 2, 3, 0, 5], 3))).toBe('d150');
    expect(pack([0, 0, 0], 0)).toEqual(new Uint8Array());
  });
});

describe('bytes that are damaged', () => {
  const decoders = [
    ['a slot', encodeSlot(slot), decodeSlot],
    ['a directory', encodeDirectory(directory), decodeDirectory],
  ] as const;

  it.each(decoders)(
    'of %s: nothing but a damaged record comes of any change',
    (_what, whole, decode) => {
      const attempt = (source: Uint8Array) => {
        try {
          decode(source, 'the key k');
        } catch (error) {
          if (!(error instanceof RecordTooNewError))
            expect(error).toBeInstanceOf(RecordDamagedError);
        }
      };
      for (let length = 0; length < whole.length; length += 1) attempt(whole.subarray(0, length));
      fc.assert(
        fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, byte) => {
          attempt(Uint8Array.from(whole, (old, i) => (i === at ? byte : old)));
        }),
      );
    },
  );

  it.each(decoders)('of %s: a newer format is told from damage', (_what, whole, decode) => {
    const newer = Uint8Array.from(whole, (old, i) => (i === 1 ? 2 : old));
    expect(() => decode(newer, 'the key k')).toThrow(RecordTooNewError);
    expect(() => decode(new Uint8Array(), 'the key k')).toThrow('the key k');
  });

  it('have a column of another length, or an owner or token that is not listed', () => {
    const last = encodeDirectory(directory);
    const text = (at: number, byte: number) => {
      const changed = Uint8Array.from(last, (old, i) => (i === at ? byte : old));
      return () => decodeDirectory(changed, 'here');
    };
    // The count of shards, the owners, the choice of tokens and the size of the columns.
    expect(text(last.length - 1, 5)).toThrow('unexpected a column of 1 bytes instead of 2');
    expect(text(last.indexOf(0x32) + 2, 0x4f)).toThrow('unexpected an owner');
    expect(text(last.length - 3, 0x4f)).toThrow('unexpected a token');
    expect(text(3, 0)).toThrow('unexpected a count of 0');
  });

  it('name a shard twice, a number that no shard has, or a weight that is none', () => {
    const twice = { ...slot, entries: [...slot.entries, ...slot.entries] };
    expect(() => decodeSlot(encodeSlot(twice), 'here')).toThrow('unexpected shard 0');
    const heavy = { ...slot, presence: { ...slot.presence, weight: 1_001 } };
    expect(() => decodeSlot(encodeSlot(heavy), 'here')).toThrow('unexpected weight 1001');
    const beyond = { ...slot, entries: [{ ...slot.entries[0]!, shard: 2 ** 20 }] };
    expect(() => decodeSlot(encodeSlot(beyond), 'here')).toThrow('unexpected shard 1048576');
  });
});
