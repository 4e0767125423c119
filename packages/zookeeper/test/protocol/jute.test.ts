import { describe, expect, test, vi } from 'vitest';
import type { Codec } from '../../src/protocol/jute.ts';
import {
  anyString,
  boolean,
  buffer,
  decode,
  encode,
  JuteReader,
  JuteWriter,
  MalformedError,
  nullableString,
  nullableVector,
  safeInt64,
  ustring,
  vector,
} from '../../src/protocol/jute.ts';

const int32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};
const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

describe('a length that the bytes do not bear out', () => {
  const lengths = [-2, -(2 ** 31), 5, 2 ** 31 - 1];

  test.each(lengths)('%i: no memory is taken for a buffer', (length) => {
    const bytes = Buffer.concat([int32(length), Buffer.alloc(4)]);
    const alloc = vi.spyOn(Buffer, 'allocUnsafe');
    expect(() => decode(buffer, bytes, '')).toThrow(MalformedError);
    expect(alloc).not.toHaveBeenCalled();
    alloc.mockRestore();
  });

  test.each(lengths)('%i: no string is made', (length) => {
    const bytes = Buffer.concat([int32(length), Buffer.alloc(4)]);
    for (const codec of [ustring, nullableString, anyString]) {
      expect(() => decode<unknown>(codec as Codec<unknown>, bytes, '')).toThrow(MalformedError);
    }
  });

  test('a vector is refused before its first item is read', () => {
    const read = vi.fn((reader: JuteReader) => reader.int32());
    const item: Codec<number> = { minBytes: 4, read, write: () => {} };
    for (const count of [-2, -(2 ** 31), 3, 2 ** 31 - 1]) {
      const bytes = Buffer.concat([int32(count), Buffer.alloc(11)]);
      expect(() => decode(vector(item), bytes, '')).toThrow('a vector of');
    }
    expect(read).not.toHaveBeenCalled();
    expect(decode(vector(item), Buffer.concat([int32(2), Buffer.alloc(8)]), '')).toEqual([0, 0]);
  });

  test('a reader does not see what lies beyond its range', () => {
    const reader = new JuteReader(hex('00000001 41 42 43'), 0, 4);
    expect(() => reader.ustring()).toThrow(MalformedError);
    reader.seek(0, 5);
    expect(reader.ustring()).toBe('A');
    expect(reader.remaining).toBe(0);
  });
});

describe('values that are not what they must be', () => {
  test('a boolean of 2', () => {
    expect(() => decode(boolean, hex('02'), '')).toThrow('0 or 1, not 2');
  });

  test('null for a string that is never null', () => {
    expect(() => decode(ustring, int32(-1), '')).toThrow(MalformedError);
    expect(decode(anyString, int32(-1), '')).toBe('');
    expect(decode(nullableString, int32(-1), '')).toBeNull();
  });

  test('a long beyond 2^53 where a number is wanted', () => {
    expect(decode(safeInt64, hex('001fffffffffffff'), '')).toBe(Number.MAX_SAFE_INTEGER);
    expect(decode(safeInt64, hex('ffe0000000000001'), '')).toBe(Number.MIN_SAFE_INTEGER);
    for (const beyond of ['0020000000000000', '0020000000000001', 'ffe0000000000000']) {
      expect(() => decode(safeInt64, hex(beyond), '')).toThrow(MalformedError);
    }
    expect(() => decode(safeInt64, hex('7fffffffffffffff'), '')).toThrow('9223372036854775807');
  });
});

describe('null and empty', () => {
  test('a buffer keeps them apart', () => {
    expect(decode(buffer, int32(-1), '')).toBeNull();
    expect(decode(buffer, int32(0), '')).toEqual(Buffer.alloc(0));
    expect(encode(buffer, null)).toEqual(int32(-1));
    expect(encode(buffer, new Uint8Array(0))).toEqual(int32(0));
  });

  test('a vector arrives empty, or null where that means something', () => {
    expect(decode(vector(ustring), int32(-1), '')).toEqual([]);
    expect(decode(nullableVector(ustring), int32(-1), '')).toBeNull();
    expect(encode(nullableVector(ustring), null)).toEqual(int32(-1));
  });
});

describe('memory', () => {
  test('what was read does not change when the bytes are used again', () => {
    const bytes = hex('00000002 0102');
    const value = decode(buffer, bytes, '');
    bytes.fill(0);
    expect(value).toEqual(Buffer.from([1, 2]));
  });

  test('a writer grows, forgets, and is written over', () => {
    const writer = new JuteWriter(1);
    writer.int32(0);
    writer.ustring('a longer string than there was memory for');
    writer.patchInt32(0, writer.length);
    const { length } = writer;
    writer.int64(-1n);
    writer.reset(length);
    expect(new JuteReader(writer.written()).int32()).toBe(length);
    expect(writer.written()).toHaveLength(length);
    expect(writer.capacity).toBeGreaterThanOrEqual(length);
    writer.reset();
    expect(writer.length).toBe(0);
  });
});

describe('characters beyond U+FFFF', () => {
  test('are read in both forms', () => {
    expect(decode(anyString, hex('00000004 f09f9880'), '')).toBe('😀');
    expect(decode(anyString, hex('00000006 eda0bdedb880'), '')).toBe('😀');
    const mixed = hex('0000000e 78 eda0bdedb880 efbfbd f09f9880');
    expect(decode(anyString, mixed, '')).toBe('x😀\ufffd😀');
    expect(decode(anyString, hex('0000000c eda080edb080 edafbfedbfbf'), '')).toBe(
      '\u{10000}\u{10ffff}',
    );
  });

  test('are written as UTF-8 has them', () => {
    expect(encode(anyString, '😀')).toEqual(hex('00000004 f09f9880'));
  });

  test('half a pair is a replacement character, as any byte that is no UTF-8', () => {
    for (const half of ['eda0bd', 'edb880', 'eda0bdeda0bd', 'edb880eda0bd', 'eda0', 'ed']) {
      const bytes = Buffer.concat([int32(half.length / 2), hex(half)]);
      expect(decode(anyString, bytes, '')).toMatch(/^\ufffd+$/);
    }
  });

  test('the bytes that were received stay as they were', () => {
    const bytes = hex('00000006 eda0bdedb880');
    decode(anyString, bytes, '');
    expect(bytes).toEqual(hex('00000006 eda0bdedb880'));
  });
});
