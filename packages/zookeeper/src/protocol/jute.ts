/**
 * Jute, ZooKeeper's encoding: big-endian, fixed-width numbers, lengths before contents.
 *
 *     int      4 bytes, signed            long     8 bytes, signed
 *     boolean  1 byte, 0 or 1             buffer   int length + bytes; length -1 is null
 *     ustring  like a buffer, UTF-8       vector   int count + items;  count -1 is null
 *
 * This file knows no socket. A reader never looks past its end, and compares every length with the
 * remaining bytes before it allocates anything.
 */
import { joinSurrogates } from './surrogates.ts';

/** The bytes are not what the other side must send. The connection cannot go on. */
export class MalformedError extends Error {
  override readonly name: string = 'MalformedError';
}

/** How a value of type `T` is encoded. */
export interface Codec<T> {
  /** The fewest bytes that a value takes. It limits the count of a vector before that is read. */
  readonly minBytes: number;
  /** @throws MalformedError if there are too few bytes, or they are no such value */
  read(reader: JuteReader): T;
  write(writer: JuteWriter, value: T): void;
}

/** Reads values one after the other from a range of bytes. It may be set to another range. */
export class JuteReader {
  #bytes: Buffer;
  #view: DataView;
  #offset: number;
  #end: number;

  constructor(bytes: Uint8Array, start = 0, end: number = bytes.length) {
    this.#bytes = asBuffer(bytes);
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#offset = start;
    this.#end = end;
  }

  get remaining(): number {
    return this.#end - this.#offset;
  }

  /** Sets the reader to another range of the same bytes. */
  seek(start: number, end: number): void {
    this.#offset = start;
    this.#end = end;
  }

  /** @throws MalformedError unless everything was read: more bytes are a sign of a broken peer */
  expectEnd(what: string): void {
    if (this.#offset !== this.#end) {
      throw new MalformedError(`${this.remaining} bytes too many after ${what}`);
    }
  }

  int32(): number {
    const at = this.#advance(4);
    return this.#view.getInt32(at);
  }

  int64(): bigint {
    const at = this.#advance(8);
    return this.#view.getBigInt64(at);
  }

  /** A long that counts something small, such as milliseconds since 1970. */
  safeInt64(): number {
    const at = this.#advance(8);
    const high = this.#view.getInt32(at);
    const value = high * 2 ** 32 + this.#view.getUint32(at + 4);
    if (!Number.isSafeInteger(value)) {
      throw new MalformedError(`${this.#view.getBigInt64(at)} is beyond 2^53`);
    }
    return value;
  }

  boolean(): boolean {
    const at = this.#advance(1);
    const value = this.#view.getUint8(at);
    if (value > 1) throw new MalformedError(`a boolean is 0 or 1, not ${value}`);
    return value === 1;
  }

  /** A copy, because the received bytes are overwritten by the next ones. */
  buffer(): Uint8Array | null {
    const length = this.#length('a buffer');
    if (length === -1) return null;
    const at = this.#advance(length);
    const copy = Buffer.allocUnsafe(length);
    this.#bytes.copy(copy, 0, at, at + length);
    return copy;
  }

  ustring(): string | null {
    const length = this.#length('a string');
    if (length === -1) return null;
    const at = this.#advance(length);
    return this.#bytes.toString('utf8', at, at + length);
  }

  /** A ustring from a server that may have characters beyond U+FFFF. */
  anyString(): string | null {
    const start = this.#offset;
    const value = this.ustring();
    // The halves of a pair are no UTF-8, so they arrive as replacement characters.
    if (value === null || !value.includes('\ufffd')) return value;
    const bytes = Uint8Array.from(this.#bytes.subarray(start + 4, this.#offset));
    return asBuffer(joinSurrogates(bytes)).toString('utf8');
  }

  vector<T>(item: Codec<T>): T[] | null {
    const count = this.int32();
    if (count === -1) return null;
    if (count < 0 || count * item.minBytes > this.remaining) {
      throw new MalformedError(`a vector of ${count} items in ${this.remaining} bytes`);
    }
    const items: T[] = [];
    for (let i = 0; i < count; i += 1) items.push(item.read(this));
    return items;
  }

  #length(what: string): number {
    const length = this.int32();
    if (length < -1 || length > this.remaining) {
      throw new MalformedError(`${what} of ${length} bytes where ${this.remaining} are left`);
    }
    return length;
  }

  #advance(length: number): number {
    const at = this.#offset;
    if (at + length > this.#end) {
      throw new MalformedError(`${length} bytes wanted where ${this.remaining} are left`);
    }
    this.#offset = at + length;
    return at;
  }
}

/** Writes values one after the other, and grows as needed. */
export class JuteWriter {
  #bytes: Buffer;
  #view: DataView;
  #length = 0;

  constructor(capacity = 256) {
    this.#bytes = Buffer.allocUnsafeSlow(capacity);
    this.#view = viewOf(this.#bytes);
  }

  get length(): number {
    return this.#length;
  }

  get capacity(): number {
    return this.#bytes.length;
  }

  /** The written bytes. They share memory with the writer until `reset` or the next growth. */
  written(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Discards everything after the first `length` bytes. */
  reset(length = 0): void {
    this.#length = length;
  }

  /**
   * Leaves room for the length of a frame.
   * @returns the argument for `endFrame`
   */
  beginFrame(): number {
    return this.#reserve(4);
  }

  /**
   * Writes the length of the frame that `beginFrame` began.
   * @returns that length, in bytes
   */
  endFrame(start: number): number {
    const bytes = this.#length - start - 4;
    this.#view.setInt32(start, bytes);
    return bytes;
  }

  int32(value: number): void {
    const at = this.#reserve(4);
    this.#view.setInt32(at, value);
  }

  /** Overwrites four bytes with a length that is known only now. */
  patchInt32(at: number, value: number): void {
    this.#view.setInt32(at, value);
  }

  int64(value: bigint): void {
    const at = this.#reserve(8);
    this.#view.setBigInt64(at, value);
  }

  safeInt64(value: number): void {
    this.int64(BigInt(value));
  }

  boolean(value: boolean): void {
    const at = this.#reserve(1);
    this.#view.setUint8(at, value ? 1 : 0);
  }

  buffer(value: Uint8Array | null): void {
    if (value === null) {
      this.int32(-1);
      return;
    }
    this.int32(value.length);
    this.raw(value);
  }

  ustring(value: string | null): void {
    if (value === null) {
      this.int32(-1);
      return;
    }
    const { length } = value;
    // Most paths are short ASCII. Then this loop is cheaper than a call into native code.
    if (length <= 64) {
      const at = this.#reserve(4 + length);
      const bytes = this.#bytes;
      let i = 0;
      for (; i < length; i += 1) {
        const unit = value.charCodeAt(i);
        if (unit > 127) break;
        bytes[at + 4 + i] = unit;
      }
      if (i === length) {
        this.#view.setInt32(at, length);
        return;
      }
      this.#length = at;
    }
    const byteLength = Buffer.byteLength(value);
    this.int32(byteLength);
    const at = this.#reserve(byteLength);
    this.#bytes.write(value, at, byteLength, 'utf8');
  }

  vector<T>(values: readonly T[] | null, item: Codec<T>): void {
    if (values === null) {
      this.int32(-1);
      return;
    }
    this.int32(values.length);
    for (const value of values) item.write(this, value);
  }

  raw(bytes: Uint8Array): void {
    const at = this.#reserve(bytes.length);
    this.#bytes.set(bytes, at);
  }

  #reserve(length: number): number {
    const at = this.#length;
    const end = at + length;
    if (end > this.#bytes.length) this.#grow(end);
    this.#length = end;
    return at;
  }

  #grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
    this.#view = viewOf(larger);
  }
}

export const int32: Codec<number> = {
  minBytes: 4,
  read: (reader) => reader.int32(),
  write: (writer, value) => writer.int32(value),
};

export const int64: Codec<bigint> = {
  minBytes: 8,
  read: (reader) => reader.int64(),
  write: (writer, value) => writer.int64(value),
};

/** A long that is a number here. One beyond 2^53 is refused. */
export const safeInt64: Codec<number> = {
  minBytes: 8,
  read: (reader) => reader.safeInt64(),
  write: (writer, value) => writer.safeInt64(value),
};

export const boolean: Codec<boolean> = {
  minBytes: 1,
  read: (reader) => reader.boolean(),
  write: (writer, value) => writer.boolean(value),
};

export const buffer: Codec<Uint8Array | null> = {
  minBytes: 4,
  read: (reader) => reader.buffer(),
  write: (writer, value) => writer.buffer(value),
};

/** A string that may be null. */
export const nullableString: Codec<string | null> = {
  minBytes: 4,
  read: (reader) => reader.ustring(),
  write: (writer, value) => writer.ustring(value),
};

/** A string that is never null, such as a path. */
export const ustring: Codec<string> = {
  minBytes: 4,
  read(reader) {
    const value = reader.ustring();
    if (value === null) throw new MalformedError('a string is null that must not be');
    return value;
  },
  write: (writer, value) => writer.ustring(value),
};

/**
 * A string that is no path, so its characters may be beyond U+FFFF. Some clients write an empty one
 * as null, and servers accept that.
 */
export const anyString: Codec<string> = {
  minBytes: 4,
  read: (reader) => reader.anyString() ?? '',
  write: (writer, value) => writer.ustring(value),
};

/** A vector. null is read as an empty one. */
export function vector<T>(item: Codec<T>): Codec<readonly T[]> {
  return {
    minBytes: 4,
    read: (reader) => reader.vector(item) ?? [],
    write: (writer, values) => writer.vector(values, item),
  };
}

/** A vector that may be null. */
export function nullableVector<T>(item: Codec<T>): Codec<readonly T[] | null> {
  return {
    minBytes: 4,
    read: (reader) => reader.vector(item),
    write: (writer, values) => writer.vector(values, item),
  };
}

/** A message: its fields are encoded in the order of the list. */
export function record<T extends object>(
  fields: {
    readonly [K in keyof T]-?: Codec<T[K]>;
  },
): Codec<T> {
  const keys = Object.keys(fields) as (keyof T)[];
  return {
    minBytes: keys.reduce((sum, key) => sum + fields[key].minBytes, 0),
    read(reader) {
      const value = {} as T;
      for (const key of keys) value[key] = fields[key].read(reader);
      return value;
    },
    write(writer, value) {
      for (const key of keys) fields[key].write(writer, value[key]);
    },
  };
}

/** Decodes all of `bytes` as one value. */
export function decode<T>(codec: Codec<T>, bytes: Uint8Array, what: string): T {
  const reader = new JuteReader(bytes);
  const value = codec.read(reader);
  reader.expectEnd(what);
  return value;
}

export function encode<T>(codec: Codec<T>, value: T): Uint8Array {
  const writer = new JuteWriter();
  codec.write(writer, value);
  return writer.written();
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
