import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { connectRequest, connectResponse } from '../../src/protocol/connect.ts';
import { opcodes } from '../../src/protocol/constants.ts';
import type { Codec } from '../../src/protocol/jute.ts';
import { decode, encode, JuteReader, JuteWriter, ustring } from '../../src/protocol/jute.ts';
import { replyHeader, requestHeader, watcherEvent } from '../../src/protocol/messages.ts';
import { requests } from '../../src/protocol/requests.ts';
import { stat } from '../../src/protocol/stat.ts';

const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const int64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.constantFrom(0n, -1n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 53n, 2n ** 32n, 2n ** 31n),
);
const safeInt64 = fc.oneof(
  fc.maxSafeInteger(),
  fc.constantFrom(0, -1, 2 ** 32, 2 ** 32 - 1, -(2 ** 32), Number.MIN_SAFE_INTEGER),
);
/** Also around the length up to which a writer encodes ASCII by itself, and beyond U+FFFF. */
const string = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'binary-ascii', minLength: 60, maxLength: 70 }),
  fc.constantFrom('', '\0', '\ufeff', '\ufffd', '😀', `${'a'.repeat(63)}é`, 'é'.repeat(64)),
);
const data = fc.oneof(
  fc.constantFrom(null, Buffer.alloc(0)),
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
);
const strings = fc.array(string, { maxLength: 8 });
const boolean = fc.boolean();

const stats = fc.record({
  czxid: int64,
  mzxid: int64,
  ctime: safeInt64,
  mtime: safeInt64,
  version: int32,
  cversion: int32,
  aversion: int32,
  ephemeralOwner: int64,
  dataLength: int32,
  numChildren: int32,
  pzxid: int64,
});
const acls = fc.array(fc.record({ perms: int32, scheme: string, id: string }), { maxLength: 4 });
const nullableAcls = fc.option(acls);

const nothing = fc.constant({});
const path = fc.record({ path: string });
const read = fc.record({ path: string, watch: boolean });
const create = fc.record({ path: string, data, acl: nullableAcls, flags: int32 });
const createTtl = fc.record({
  path: string,
  data,
  acl: nullableAcls,
  flags: int32,
  ttlMs: safeInt64,
});
const created = fc.record({ path: string, stat: stats });
const versioned = fc.record({ path: string, version: int32 });
const setData = fc.record({ path: string, data, version: int32 });
const withStat = fc.record({ stat: stats });
const withData = fc.record({ data, stat: stats });
const children = fc.record({ children: strings });
const watcherType = fc.record({ path: string, type: int32 });
const token = fc.record({ token: data });
const oneShot = {
  relativeZxid: int64,
  dataWatches: strings,
  existWatches: strings,
  childWatches: strings,
};

const item = <T>(opcode: number, body: fc.Arbitrary<T>) =>
  body.map((value) => ({ opcode, body: value }));
const operations = fc.array(
  fc.oneof(
    item(opcodes.create, create),
    item(opcodes.create2, create),
    item(opcodes.createContainer, create),
    item(opcodes.createTtl, createTtl),
    item(opcodes.delete, versioned),
    item(opcodes.setData, setData),
    item(opcodes.check, versioned),
    item(opcodes.getData, read),
    item(opcodes.getChildren, read),
  ),
  { maxLength: 6 },
);
const results = fc.array(
  fc.oneof(
    item(opcodes.create, path),
    item(opcodes.create2, created),
    item(opcodes.delete, nothing),
    item(opcodes.setData, withStat),
    item(opcodes.check, nothing),
    item(opcodes.getData, withData),
    item(opcodes.getChildren, children),
    int32.map((error) => ({ opcode: opcodes.error, error })),
  ),
  { maxLength: 6 },
);

/** Values of every request and of its reply. */
const bodies: Record<keyof typeof requests, [fc.Arbitrary<unknown>, fc.Arbitrary<unknown>]> = {
  create: [create, path],
  create2: [create, created],
  createContainer: [create, created],
  createTtl: [createTtl, created],
  delete: [versioned, nothing],
  exists: [read, withStat],
  getData: [read, withData],
  setData: [setData, withStat],
  getAcl: [path, fc.record({ acl: acls, stat: stats })],
  setAcl: [fc.record({ path: string, acl: nullableAcls, version: int32 }), withStat],
  getChildren: [read, children],
  getChildren2: [read, fc.record({ children: strings, stat: stats })],
  sync: [path, path],
  multi: [operations, results],
  multiRead: [operations, results],
  reconfig: [
    fc.record({
      joiningServers: fc.option(string),
      leavingServers: fc.option(string),
      newMembers: fc.option(string),
      curConfigId: int64,
    }),
    withData,
  ],
  checkWatches: [watcherType, nothing],
  removeWatches: [watcherType, nothing],
  getEphemerals: [fc.record({ prefixPath: string }), fc.record({ ephemerals: strings })],
  getAllChildrenNumber: [path, fc.record({ totalNumber: int32 })],
  addWatch: [fc.record({ path: string, mode: int32 }), fc.record({ error: int32 })],
  whoAmI: [
    nothing,
    fc.record({ identities: fc.array(fc.record({ scheme: string, user: string })) }),
  ],
  setWatches: [fc.record(oneShot), nothing],
  setWatches2: [
    fc.record({ ...oneShot, persistentWatches: strings, persistentRecursiveWatches: strings }),
    nothing,
  ],
  auth: [fc.record({ type: int32, scheme: string, auth: data }), nothing],
  sasl: [token, token],
  ping: [nothing, nothing],
  closeSession: [nothing, nothing],
};

const handshake = { protocolVersion: int32, timeoutMs: int32, sessionId: int64, password: data };
const all: [string, Codec<unknown>, fc.Arbitrary<unknown>][] = [
  ...Object.values(requests).flatMap(({ name, request, response }) => {
    const [asked, answered] = bodies[name as keyof typeof requests];
    return [
      entry(`${name}, request`, request as Codec<unknown>, asked),
      entry(`${name}, reply`, response as Codec<unknown>, answered),
    ];
  }),
  entry('request header', requestHeader, fc.record({ xid: int32, opcode: int32 })),
  entry('reply header', replyHeader, fc.record({ xid: int32, zxid: int64, error: int32 })),
  entry('notification', watcherEvent, fc.record({ type: int32, state: int32, path: string })),
  entry('Stat', stat, stats),
  entry(
    'ConnectRequest',
    connectRequest,
    fc.record({ ...handshake, lastZxidSeen: int64, readOnly: boolean }),
  ),
  entry('ConnectResponse', connectResponse, fc.record({ ...handshake, readOnly: boolean })),
];

function entry<T>(name: string, codec: Codec<T>, values: fc.Arbitrary<unknown>) {
  const found: [string, Codec<unknown>, fc.Arbitrary<unknown>] = [
    name,
    codec as Codec<unknown>,
    values,
  ];
  return found;
}

describe('what is written is read again', () => {
  test.each(all)('%s', (name, codec, values) => {
    fc.assert(
      fc.property(values, fc.nat(20), (value, offset) => {
        const bytes = encode(codec, value);
        expect(bytes.length).toBeGreaterThanOrEqual(codec.minBytes);
        expect(decode(codec, bytes, name)).toEqual(value);

        // The same in a small writer, after something else, and read from the middle.
        const writer = new JuteWriter(1);
        writer.raw(new Uint8Array(offset).fill(0x7f));
        codec.write(writer, value);
        const memory = new Uint8Array(writer.length + 20).fill(0x7f);
        memory.set(writer.written(), 7);
        const reader = new JuteReader(memory.subarray(7), offset, writer.length);
        expect(codec.read(reader)).toEqual(value);
        reader.expectEnd(name);
      }),
      { numRuns: 60 },
    );
  });
});

test('strings are UTF-8, also those that are no Unicode', () => {
  const units = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 80 });
  const anyUnits = units.map((codes) => String.fromCharCode(...codes));
  fc.assert(
    fc.property(fc.oneof(string, anyUnits), (value) => {
      const content = Buffer.from(value, 'utf8');
      const bytes = encode(ustring, value);
      expect(bytes.subarray(4)).toEqual(content);
      expect(new JuteReader(bytes).int32()).toBe(content.length);
      expect(decode(ustring, bytes, '')).toBe(content.toString('utf8'));
    }),
    { numRuns: 300 },
  );
});
