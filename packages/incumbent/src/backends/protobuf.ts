/**
 * As much of the protobuf encoding (proto3) as etcd's messages and Cloud Storage's objects need. A
 * message is a table of its fields. A field that is not in the table is skipped, whatever its type.
 *
 *     message := (tag value)*      tag := varint(number << 3 | wire type)
 *     wire types: 0 varint, 1 eight bytes, 2 varint length and so many bytes, 5 four bytes,
 *                 3 and 4 begin and end of a group: no longer in use, and skipped
 */

/** Bytes that are no message of the expected kind. */
export class MalformedMessageError extends Error {
  override readonly name: string = 'MalformedMessageError';
}

export interface Codec<T> {
  /** What is left out has its default. */
  encode(value: Partial<T>): Uint8Array;
  /** @throws MalformedMessageError */
  decode(bytes: Uint8Array): T;
}

const varint = 0;
const eightBytes = 1;
const lengthPrefixed = 2;
const groupBegin = 3;
const groupEnd = 4;
const fourBytes = 5;

const maxFieldNumber = 2 ** 29 - 1;
/** Longer ones are refused before anything is allocated for them. */
const maxBytes = 64 * 1024 * 1024;

/** How a single value is written. */
interface Kind<V> {
  readonly wireType: number;
  readonly initial: V;
  isInitial(value: V): boolean;
  write(writer: Writer, value: V): void;
  read(reader: Reader): V;
}

interface Field<V> {
  readonly number: number;
  readonly initial: V;
  write(writer: Writer, value: V): void;
  /** @param before what has been read of this field already */
  read(reader: Reader, wireType: number, before: V): V;
}

export type Fields<T> = { readonly [Name in keyof T]-?: Field<T[Name]> };

// --- kinds ---

export const int64: Kind<bigint> = {
  wireType: varint,
  initial: 0n,
  isInitial: (value) => value === 0n,
  write: (writer, value) => writer.varint(BigInt.asUintN(64, value)),
  read: (reader) => BigInt.asIntN(64, reader.varint()),
};

export const uint64: Kind<bigint> = { ...int64, read: (reader) => reader.varint() };

export const int32: Kind<number> = {
  wireType: varint,
  initial: 0,
  isInitial: (value) => value === 0,
  write: (writer, value) => writer.varint(BigInt.asUintN(64, BigInt(value))),
  read: (reader) => Number(BigInt.asIntN(32, reader.varint())),
};

/** An enumeration, by its numbers. */
export const enumeration: Kind<number> = int32;

export const bool: Kind<boolean> = {
  wireType: varint,
  initial: false,
  isInitial: (value) => !value,
  write: (writer, value) => writer.varint(value ? 1n : 0n),
  read: (reader) => reader.varint() !== 0n,
};

const empty = new Uint8Array();

export const bytes: Kind<Uint8Array> = {
  wireType: lengthPrefixed,
  initial: empty,
  isInitial: (value) => value.length === 0,
  write: (writer, value) => writer.prefixed(value),
  read: (reader) => reader.prefixed(),
};

const encoder = new TextEncoder();
/** A byte order mark is part of the text. */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export const string: Kind<string> = {
  wireType: lengthPrefixed,
  initial: '',
  isInitial: (value) => value === '',
  write: (writer, value) => writer.prefixed(encoder.encode(value)),
  read: (reader) => {
    const encoded = reader.prefixed();
    try {
      return decoder.decode(encoded);
    } catch (cause) {
      throw new MalformedMessageError('a text is no UTF-8', { cause });
    }
  },
};

/** A message inside a message. Its default is a message of defaults. */
export function embedded<T>(codec: Codec<T>): Kind<T> {
  return {
    wireType: lengthPrefixed,
    initial: codec.decode(empty),
    isInitial: () => false,
    write: (writer, value) => writer.prefixed(codec.encode(value as Partial<T>)),
    read: (reader) => codec.decode(reader.prefixed()),
  };
}

// --- fields ---

/** Not written when it has its default, as proto3 has it. */
export function field<V>(number: number, kind: Kind<V>): Field<V> {
  return {
    number,
    initial: kind.initial,
    write: (writer, value) => {
      if (!kind.isInitial(value)) writeOne(writer, number, kind, value);
    },
    read: (reader, wireType) => readOne(reader, wireType, number, kind),
  };
}

/** One of a `oneof`, or an embedded message: there or not there, and written even as zero. */
export function optional<V>(number: number, kind: Kind<V>): Field<V | undefined> {
  return {
    number,
    initial: undefined,
    write: (writer, value) => {
      if (value !== undefined) writeOne(writer, number, kind, value);
    },
    read: (reader, wireType) => readOne(reader, wireType, number, kind),
  };
}

/** Numbers are packed when written, and taken in both forms. */
export function repeated<V>(number: number, kind: Kind<V>): Field<readonly V[]> {
  const packs = kind.wireType === varint;
  return {
    number,
    initial: [],
    write: (writer, values) => {
      if (!packs) {
        for (const value of values) writeOne(writer, number, kind, value);
      } else if (values.length > 0) {
        const packed = new Writer();
        for (const value of values) kind.write(packed, value);
        writeOne(writer, number, bytes, packed.finish());
      }
    },
    read: (reader, wireType, before) => {
      if (!packs || wireType === varint) {
        return [...before, readOne(reader, wireType, number, kind)];
      }
      const packed = new Reader(readOne(reader, wireType, number, bytes));
      const values = [...before];
      while (!packed.isAtEnd) values.push(kind.read(packed));
      return values;
    },
  };
}

function writeOne<V>(writer: Writer, number: number, kind: Kind<V>, value: V): void {
  writer.varint(BigInt((number << 3) | kind.wireType));
  kind.write(writer, value);
}

function readOne<V>(reader: Reader, wireType: number, number: number, kind: Kind<V>): V {
  if (wireType !== kind.wireType) {
    throw new MalformedMessageError(`field ${number} has wire type ${wireType}`);
  }
  return kind.read(reader);
}

// --- messages ---

export function message<T extends object>(fields: Fields<T>): Codec<T> {
  const names = Object.keys(fields) as (keyof T & string)[];
  const byNumber = new Map(names.map((name) => [fields[name].number, name]));
  return {
    encode(value) {
      const writer = new Writer();
      for (const name of names) {
        const given = value[name];
        if (given !== undefined) fields[name].write(writer, given as T[typeof name]);
      }
      return writer.finish();
    },
    decode(source) {
      const reader = new Reader(source);
      const result = {} as { [Name in keyof T]: T[Name] };
      for (const name of names) result[name] = fields[name].initial;
      while (!reader.isAtEnd) {
        const { number, wireType } = reader.tag();
        const name = byNumber.get(number);
        if (name === undefined) reader.skip(wireType, number);
        else result[name] = fields[name].read(reader, wireType, result[name]);
      }
      return result;
    },
  };
}

class Writer {
  #bytes: Uint8Array = new Uint8Array(64);
  #length = 0;

  varint(value: bigint): void {
    let rest = value;
    this.#reserve(10);
    while (rest > 0x7fn) {
      this.#bytes[this.#length++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.#bytes[this.#length++] = Number(rest);
  }

  prefixed(value: Uint8Array): void {
    this.varint(BigInt(value.length));
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  #reserve(count: number): void {
    const needed = this.#length + count;
    if (needed <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(source: Uint8Array) {
    if (source.length > maxBytes) throw new MalformedMessageError(`${source.length} bytes`);
    this.#bytes = source;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  tag(): { readonly number: number; readonly wireType: number } {
    const tag = Number(this.varint());
    const number = Math.floor(tag / 8);
    if (number < 1 || number > maxFieldNumber) {
      throw new MalformedMessageError(`there is no field ${number}`);
    }
    return { number, wireType: tag % 8 };
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw new MalformedMessageError('it ends in the middle of a number');
      this.#at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw new MalformedMessageError('a number has more than ten bytes');
  }

  prefixed(): Uint8Array {
    const length = this.varint();
    if (length > BigInt(this.#bytes.length - this.#at)) {
      throw new MalformedMessageError(`${length} bytes are announced, fewer are there`);
    }
    const from = this.#at;
    this.#at += Number(length);
    // A copy, which `slice` of a Buffer is not: the buffer belongs to the caller.
    return new Uint8Array(this.#bytes.subarray(from, this.#at));
  }

  skip(wireType: number, number: number): void {
    switch (wireType) {
      case varint:
        this.varint();
        return;
      case lengthPrefixed:
        this.prefixed();
        return;
      case eightBytes:
        this.#advance(8);
        return;
      case fourBytes:
        this.#advance(4);
        return;
      case groupBegin:
        this.#skipGroup(number);
        return;
      default:
        throw new MalformedMessageError(`there is no wire type ${wireType} here`);
    }
  }

  /** Without recursion: groups may stand in groups as deep as there are bytes. */
  #skipGroup(number: number): void {
    const open = [number];
    while (open.length > 0) {
      const inner = this.tag();
      if (inner.wireType === groupBegin) open.push(inner.number);
      else if (inner.wireType !== groupEnd) this.skip(inner.wireType, inner.number);
      else if (open.pop() !== inner.number) {
        throw new MalformedMessageError(
          `a group ends as field ${inner.number}, and did not begin so`,
        );
      }
    }
  }

  #advance(count: number): void {
    this.#at += count;
    if (this.#at > this.#bytes.length) throw new MalformedMessageError('it ends in a field');
  }
}
