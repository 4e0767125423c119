import { describe, expect, it } from 'vitest';
import type { ConnectRequest } from '../src/protocol/connect.ts';
import { connectRequest } from '../src/protocol/connect.ts';
import { opcodes, xids } from '../src/protocol/constants.ts';
import { FrameSplitter } from '../src/protocol/frames.ts';
import { JuteReader, JuteWriter } from '../src/protocol/jute.ts';
import type { SetWatches2Request } from '../src/protocol/messages.ts';
import { authRequest, requestHeader } from '../src/protocol/messages.ts';
import { requests } from '../src/protocol/requests.ts';
import type { WatchLists } from '../src/session/handshake.ts';
import {
  writeAuth,
  writeConnectRequest,
  writePing,
  writeSetWatches,
} from '../src/session/handshake.ts';

/** A server's limit for one packet, unless it is configured otherwise. */
const defaultMaxBytes = 0xfffff;
const none: WatchLists = {
  data: [],
  exist: [],
  child: [],
  persistent: [],
  persistentRecursive: [],
};
const kinds = ['data', 'exist', 'child', 'persistent', 'persistentRecursive'] as const;

function framesOf(writer: JuteWriter): JuteReader[] {
  const frames: JuteReader[] = [];
  const splitter = new FrameSplitter(64 * 1024 * 1024, (bytes, start, end) => {
    frames.push(new JuteReader(bytes.slice(start, end)));
  });
  splitter.push(writer.written());
  return frames;
}

/** The packets that are written for `lists`, as a server reads them. */
function packetsOf(lists: Partial<WatchLists>, maxRequestBytes = defaultMaxBytes) {
  const writer = new JuteWriter();
  const count = writeSetWatches(writer, 42n, { ...none, ...lists }, maxRequestBytes);
  const packets = framesOf(writer).map((reader) => {
    const bytes = reader.remaining;
    const { xid, opcode } = requestHeader.read(reader);
    const body: Partial<SetWatches2Request> & { relativeZxid: bigint } =
      opcode === opcodes.setWatches
        ? requests.setWatches.request.read(reader)
        : requests.setWatches2.request.read(reader);
    reader.expectEnd('SetWatches');
    const paths = {
      data: body.dataWatches ?? [],
      exist: body.existWatches ?? [],
      child: body.childWatches ?? [],
      persistent: body.persistentWatches ?? [],
      persistentRecursive: body.persistentRecursiveWatches ?? [],
    };
    return { bytes, xid, opcode, zxid: body.relativeZxid, paths };
  });
  expect(packets).toHaveLength(count);
  return packets;
}

const paths = (kind: string, count: number, length: number) =>
  Array.from({ length: count }, (_, i) => `/${kind}${i}-`.padEnd(length, 'x'));

describe('SetWatches', () => {
  it.each([
    ['20,000 paths of 80 bytes', 20_000, 80, defaultMaxBytes, 128 * 1024],
    ['few paths that are long', 12, 50_000, defaultMaxBytes, 128 * 1024],
    ['a server that takes little', 300, 80, 1_024, 1_024],
  ])(
    'come in packets that a server takes, none lost and all as of the same: %s',
    (_, count, length, maxRequestBytes, limit) => {
      const lists = Object.fromEntries(kinds.map((kind) => [kind, paths(kind, count, length)]));
      const packets = packetsOf(lists, maxRequestBytes);
      expect(packets.length).toBeGreaterThan(5);
      expect(Math.max(...packets.map(({ bytes }) => bytes))).toBeLessThanOrEqual(limit);
      expect(new Set(packets.map(({ zxid }) => zxid))).toEqual(new Set([42n]));
      expect(new Set(packets.map(({ xid }) => xid))).toEqual(new Set([xids.setWatches]));
      for (const kind of kinds) {
        expect(packets.flatMap((packet) => packet.paths[kind])).toEqual(lists[kind]);
      }
      // No packet is empty.
      expect(packets.every((packet) => kinds.some((kind) => packet.paths[kind].length > 0))).toBe(
        true,
      );
    },
  );

  it('fill their packets: as few as can be, whatever the kinds', () => {
    const lists = { data: paths('d', 5, 96), exist: paths('e', 5, 96), child: paths('c', 5, 96) };
    // 15 paths of 100 bytes in packets of 1,024.
    expect(packetsOf(lists, 1_024).length).toBe(2);
  });

  it.each([
    [96, 1],
    [97, 2],
  ])('leave 64 bytes for what a packet has besides its paths: ten of %d bytes', (length, count) => {
    // Each path comes behind its length of four bytes.
    expect(packetsOf({ data: paths('d', 10, length) }, 1_064)).toHaveLength(count);
    expect(packetsOf({ persistent: paths('p', 10, length) }, 1_064)).toHaveLength(count);
  });

  it('send a path alone that is above the limit: it is not lost', () => {
    const [first, , last] = paths('d', 3, 10);
    const long = `/${'x'.repeat(200_000)}`;
    const packets = packetsOf({ data: [first!, long, last!] });
    expect(packets.map((packet) => packet.paths.data)).toEqual([[first], [long], [last]]);
  });

  it('count bytes and not characters', () => {
    const wide = Array.from({ length: 100 }, (_, i) => `/${i}${'é'.repeat(100)}`);
    const packets = packetsOf({ data: wide }, 2_048);
    expect(Math.max(...packets.map(({ bytes }) => bytes))).toBeLessThanOrEqual(2_048);
    expect(packets.flatMap((packet) => packet.paths.data)).toEqual(wide);
  });

  it('keep persistent watches in packets of their own, which old servers do not know', () => {
    const packets = packetsOf({
      data: ['/d'],
      child: ['/c'],
      persistent: ['/p'],
      persistentRecursive: ['/r'],
    });
    expect(packets.map(({ opcode }) => opcode)).toEqual([opcodes.setWatches, opcodes.setWatches2]);
    expect(packets[0]!.paths).toMatchObject({ data: ['/d'], child: ['/c'], persistent: [] });
    expect(packets[1]!.paths).toMatchObject({
      data: [],
      persistent: ['/p'],
      persistentRecursive: ['/r'],
    });
    expect(packetsOf({ exist: ['/e'] }).map(({ opcode }) => opcode)).toEqual([opcodes.setWatches]);
    expect(packetsOf({})).toEqual([]);
  });
});

describe('the other parts of a handshake', () => {
  it('are a frame each, behind what was written before', () => {
    const request: ConnectRequest = {
      protocolVersion: 0,
      lastZxidSeen: 2n ** 40n + 1n,
      timeoutMs: 10_000,
      sessionId: -5n,
      password: new Uint8Array(16).fill(3),
      readOnly: true,
    };
    const writer = new JuteWriter();
    writeConnectRequest(writer, request);
    writeAuth(writer, { scheme: 'digest', credentials: Buffer.from('joe:secret') });
    writePing(writer);
    const [connect, auth, ping, ...more] = framesOf(writer);
    expect(more).toEqual([]);
    expect(connect!.remaining).toBe(45);
    const read = connectRequest.read(connect!);
    expect({ ...read, password: [...read.password!] }).toEqual({
      ...request,
      password: [...request.password!],
    });
    expect(requestHeader.read(auth!)).toEqual({ xid: xids.auth, opcode: opcodes.auth });
    const { scheme, auth: credentials } = authRequest.read(auth!);
    expect([scheme, Buffer.from(credentials!).toString()]).toEqual(['digest', 'joe:secret']);
    expect(requestHeader.read(ping!)).toEqual({ xid: xids.ping, opcode: opcodes.ping });
    expect(ping!.remaining).toBe(0);
  });
});
