import { describe, expect, it } from 'vitest';
import * as messages from '../src/backends/etcd/messages.ts';
import type { Codec } from '../src/backends/protobuf.ts';
import {
  bool,
  bytes,
  enumeration,
  field,
  int64,
  MalformedMessageError,
  message,
  optional,
  repeated,
  string,
  uint64,
} from '../src/backends/protobuf.ts';

const text = (value: string) => new TextEncoder().encode(value);
const hex = (value: Uint8Array) => Buffer.from(value).toString('hex');
/** A copy with its own buffer, as a codec gives it. */
const fromHex = (value: string) => Uint8Array.from(Buffer.from(value, 'hex'));

const key = text('billing/1a');
const record = text('incumbent/record/billing');
const lease = 8320000000000000007n;

/** As protobufjs 8 encodes the same values by etcd's own `rpc.proto`. */
const requests: readonly (readonly [string, Codec<never>, object, string])[] = [
  [
    'RangeRequest',
    messages.rangeRequest as Codec<never>,
    {
      key: text('billing/'),
      rangeEnd: text('billing0'),
      limit: 2n,
      revision: 9007199254740993n,
      sortOrder: messages.sortOrder.descend,
      sortTarget: messages.sortTarget.create,
      serializable: true,
      keysOnly: true,
      countOnly: true,
      maxCreateRevision: 300n,
    },
    '0a0862696c6c696e672f120862696c6c696e673018022081808080808080102802300238014001480168ac02',
  ],
  [
    'TxnRequest',
    messages.txnRequest as Codec<never>,
    {
      compare: [
        { target: messages.compareTarget.create, key, createRevision: 0n },
        {
          result: messages.compareResult.notEqual,
          target: messages.compareTarget.mod,
          key: record,
          modRevision: 7n,
        },
      ],
      success: [{ put: { key, value: text('v'), lease } }, { deleteRange: { key } }],
      failure: [{ range: { key, keysOnly: true } }],
    },
    '0a1010011a0a62696c6c696e672f316128000a20080310021a18696e63756d62656e742f7265636f72642f' +
      '62696c6c696e673007121b12190a0a62696c6c696e672f3161120176188780809ab3fda4bb73120e1a0c' +
      '0a0a62696c6c696e672f31611a100a0e0a0a62696c6c696e672f31614001',
  ],
  ['an empty TxnRequest', messages.txnRequest as Codec<never>, {}, ''],
  ['LeaseGrantRequest', messages.leaseGrantRequest as Codec<never>, { ttl: 15n }, '080f'],
  [
    'LeaseRevokeRequest',
    messages.leaseRevokeRequest as Codec<never>,
    { id: -1n },
    '08ffffffffffffffffff01',
  ],
  [
    'LeaseKeepAliveRequest',
    messages.leaseKeepAliveRequest as Codec<never>,
    { id: lease },
    '088780809ab3fda4bb73',
  ],
  [
    'WatchRequest: create',
    messages.watchRequest as Codec<never>,
    {
      create: {
        key,
        startRevision: 5n,
        filters: [messages.watchFilter.noPut, messages.watchFilter.noDelete],
        watchId: 3n,
      },
    },
    '0a140a0a62696c6c696e672f316118052a0200013803',
  ],
  [
    'WatchRequest: cancel',
    messages.watchRequest as Codec<never>,
    { cancel: { watchId: 3n } },
    '12020803',
  ],
  ['StatusRequest', messages.statusRequest as Codec<never>, {}, ''],
  [
    'AuthenticateRequest',
    messages.authenticateRequest as Codec<never>,
    { name: 'root', password: 'pässword' },
    '0a04726f6f74120970c3a47373776f7264',
  ],
];

const header = { clusterId: 0n, memberId: 0n, revision: 0n, raftTerm: 0n };
const noKey = {
  key: new Uint8Array(),
  createRevision: 0n,
  modRevision: 0n,
  version: 0n,
  value: new Uint8Array(),
  lease: 0n,
};

/** The first five as etcd 3.4.23 sent them, the others as protobufjs encodes them. */
const responses: readonly (readonly [string, Codec<unknown>, string, object])[] = [
  [
    'LeaseGrantResponse',
    messages.leaseGrantResponse,
    '0a1a088ccb8cc4bcc985def70110f8e68bd4c2ecc196cb01180120021087f8d495f4bfa8bc731802',
    {
      header: expect.objectContaining({ revision: 1n, raftTerm: 2n }),
      id: 0x7378a1ff42b53c07n,
      ttl: 2n,
      error: '',
    },
  ],
  [
    'LeaseKeepAliveResponse',
    messages.leaseKeepAliveResponse,
    '0a1a088ccb8cc4bcc985def70110f8e68bd4c2ecc196cb01180420021095f8d495f4bfa8bc731802',
    { header: expect.objectContaining({ revision: 4n }), id: 0x7378a1ff42b53c15n, ttl: 2n },
  ],
  [
    'TxnResponse with a list, whose keys say their leases',
    messages.txnResponse,
    '0a1a088ccb8cc4bcc985def70110f8e68bd4c2ecc196cb011804200210011a600a5e0a021804122a0a1862' +
      '696c6c696e672f373337386131666634326235336331351004180420013095f8d495f4bfa8bc73122a0a18' +
      '62696c6c696e672f373337386131666634326235336330371002180220013087f8d495f4bfa8bc732002',
    {
      header: expect.objectContaining({ revision: 4n }),
      succeeded: true,
      responses: [
        {
          range: {
            header: { ...header, revision: 4n },
            kvs: [
              {
                key: text('billing/7378a1ff42b53c15'),
                createRevision: 4n,
                modRevision: 4n,
                version: 1n,
                value: new Uint8Array(),
                lease: 0x7378a1ff42b53c15n,
              },
              {
                key: text('billing/7378a1ff42b53c07'),
                createRevision: 2n,
                modRevision: 2n,
                version: 1n,
                value: new Uint8Array(),
                lease: 0x7378a1ff42b53c07n,
              },
            ],
            more: false,
            count: 2n,
          },
        },
      ],
    },
  ],
  [
    'TxnResponse of a release',
    messages.txnResponse,
    '0a1a088ccb8cc4bcc985def70110f8e68bd4c2ecc196cb011805200210011a0612040a0218051a081a060a0218051001',
    {
      header: expect.objectContaining({ revision: 5n }),
      succeeded: true,
      responses: [
        { put: { header: { ...header, revision: 5n } } },
        { deleteRange: { header: { ...header, revision: 5n }, deleted: 1n } },
      ],
    },
  ],
  [
    'WatchResponse with a deletion',
    messages.watchResponse,
    '0a1a088ccb8cc4bcc985def70110f8e68bd4c2ecc196cb011805200210045a200801121c0a1862696c6c69' +
      '6e672f373337386131666634326235336330371805',
    {
      header: expect.objectContaining({ revision: 5n }),
      watchId: 4n,
      created: false,
      canceled: false,
      compactRevision: 0n,
      cancelReason: '',
      events: [
        {
          type: messages.eventType.delete,
          kv: { ...noKey, key: text('billing/7378a1ff42b53c07'), modRevision: 5n },
        },
      ],
    },
  ],
  [
    'RangeResponse',
    messages.rangeResponse,
    '0a1108ffffffffffffffffff01100218062002121f0a0a62696c6c696e672f31611002180320042a01763087' +
      '80809ab3fda4bb7318012002',
    {
      header: { clusterId: 2n ** 64n - 1n, memberId: 2n, revision: 6n, raftTerm: 2n },
      kvs: [{ key, createRevision: 2n, modRevision: 3n, version: 4n, value: text('v'), lease }],
      more: true,
      count: 2n,
    },
  ],
  [
    'WatchResponse, refused, with fields that are skipped',
    messages.watchResponse,
    '0a02180510ffffffffffffffffff01180120012804320377687938015a200801120e0a0a62696c6c696e672f' +
      '316118051a0c0a0a62696c6c696e672f3161',
    {
      header: { ...header, revision: 5n },
      watchId: -1n,
      created: true,
      canceled: true,
      compactRevision: 4n,
      cancelReason: 'why',
      events: [{ type: messages.eventType.delete, kv: { ...noKey, key, modRevision: 5n } }],
    },
  ],
  [
    'StatusResponse',
    messages.statusResponse,
    '0a04100218051206332e342e32331880a0012081faa7f5e1fc95ebe201280b3002380b420161420162488080015001',
    {
      header: { ...header, memberId: 2n, revision: 5n },
      version: '3.4.23',
      dbSize: 20480n,
      leader: 16345348543456345345n,
      raftIndex: 11n,
      raftTerm: 2n,
      errors: ['a', 'b'],
      isLearner: true,
    },
  ],
  [
    'AuthenticateResponse',
    messages.authenticateResponse,
    '0a02180512056162632e31',
    { header: { ...header, revision: 5n }, token: 'abc.1' },
  ],
];

describe('the messages of etcd', () => {
  it.each(requests)('%s is encoded as others encode it', (_, codec, value, golden) => {
    expect(hex(codec.encode(value as never))).toBe(golden);
    const decoded: object = codec.decode(fromHex(golden));
    expect(decoded).toMatchObject(value);
    expect(hex(codec.encode(decoded as never))).toBe(golden);
  });

  it.each(responses)('%s is read', (_, codec, golden, value) => {
    expect(codec.decode(fromHex(golden))).toMatchObject(value);
  });

  it('a captured header is read to the last bit of its numbers', () => {
    const { header: read } = messages.leaseGrantResponse.decode(fromHex(responses[0]![2]));
    expect(read).toMatchObject({ revision: 1n, raftTerm: 2n });
    expect(hex(messages.leaseGrantResponse.encode({ header: read }))).toBe(
      responses[0]![2].slice(0, 56),
    );
  });

  it.each(responses)(
    '%s is refused wherever it is cut in the middle of a field',
    (_, codec, golden) => {
      const whole = fromHex(golden);
      let refused = 0;
      for (let length = 1; length < whole.length; length += 1) {
        try {
          codec.decode(whole.slice(0, length));
        } catch (error) {
          expect(error).toBeInstanceOf(MalformedMessageError);
          refused += 1;
        }
      }
      expect(refused).toBeGreaterThan(0);
    },
  );

  it('is read from the middle of a larger buffer', () => {
    const whole = fromHex(`ffff${responses[3]![2]}ffff`);
    expect(messages.txnResponse.decode(whole.subarray(2, -2))).toMatchObject(responses[3]![3]);
  });
});

interface All {
  readonly a: bigint;
  readonly b: bigint;
  readonly c: number;
  readonly d: boolean;
  readonly e: Uint8Array;
  readonly f: string;
  readonly g: bigint | undefined;
  readonly h: readonly number[];
  readonly i: readonly string[];
}

const all = message<All>({
  a: field(1, int64),
  b: field(2, uint64),
  c: field(3, enumeration),
  d: field(4, bool),
  e: field(5, bytes),
  f: field(6, string),
  g: optional(7, int64),
  h: repeated(8, enumeration),
  i: repeated(2_000, string),
});

const none: All = {
  a: 0n,
  b: 0n,
  c: 0,
  d: false,
  e: new Uint8Array(),
  f: '',
  g: undefined,
  h: [],
  i: [],
};

describe('the encoding', () => {
  it.each<Partial<All>>([
    {},
    { a: -(2n ** 63n), b: 2n ** 64n - 1n },
    { a: 2n ** 63n - 1n, b: 2n ** 63n },
    { a: -1n, c: 3, d: true, e: text('\u0000ÿ'), f: 'ü€😀' },
    { g: 0n },
    { g: -5n, h: [0, 1, 300], i: ['', 'x', 'y'.repeat(300)] },
    { e: new Uint8Array(100_000).fill(7) },
  ])('keeps the given value: %#', (value) => {
    expect(all.decode(all.encode(value))).toEqual({ ...none, ...value });
  });

  it('skips fields that it does not know, of every type', () => {
    const unknown =
      `${'a006'}ffffffffffffffffff01` + // 100, a number
      `a106${'01'.repeat(8)}a20602ffff` + // eight bytes, two bytes with their length
      `a506${'01'.repeat(4)}` + // four bytes
      'a306 0801 ab06 ac06 a406'.replaceAll(' ', ''); // a group, with a number and a group in it
    expect(all.decode(fromHex(`0805${unknown}1801`))).toEqual({ ...none, a: 5n, c: 1 });
  });

  it('takes numbers in a list packed and one by one, and the last of a single field', () => {
    expect(all.decode(fromHex('4001420202034004')).h).toEqual([1, 2, 3, 4]);
    expect(all.decode(fromHex('08010802')).a).toBe(2n);
  });

  it.each([
    ['08', 'in the middle of a number'],
    ['0880', 'in the middle of a number'],
    ['08ffffffffffffffffffff01', 'more than ten bytes'],
    ['2a05ff', 'fewer are there'],
    ['2affffffffffffffffff01', 'fewer are there'],
    ['0d00000000', 'wire type 5'],
    ['a1060000', 'ends in a field'],
    ['0b', 'wire type 3'],
    ['a306', 'in the middle of a number'],
    ['a306ac06', 'a group ends as field 101'],
    ['a406', 'no wire type 4'],
    ['0001', 'no field 0'],
    ['3201ff', 'no UTF-8'],
    ['a706', 'no wire type 7'],
  ])('%s is refused', (malformed, why) => {
    expect(() => all.decode(fromHex(malformed))).toThrow(why);
    expect(() => all.decode(fromHex(malformed))).toThrow(MalformedMessageError);
  });
});
