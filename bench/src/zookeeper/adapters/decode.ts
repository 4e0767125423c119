/** A get's reply decoded completely, by hand. */
import { replyBodyAt } from '../wire.ts';

export interface DecodedGet {
  readonly zxid: bigint;
  readonly data: Uint8Array | null;
  readonly stat: {
    readonly czxid: bigint;
    readonly mzxid: bigint;
    readonly ctime: number;
    readonly mtime: number;
    readonly version: number;
    readonly cversion: number;
    readonly aversion: number;
    readonly ephemeralOwner: bigint;
    readonly dataLength: number;
    readonly numChildren: number;
    readonly pzxid: bigint;
  };
}

export function decodeGet(bytes: Buffer, start: number): DecodedGet {
  const zxid = bytes.readBigInt64BE(start + 8);
  let at = start + replyBodyAt;
  const length = bytes.readInt32BE(at);
  at += 4;
  let data: Uint8Array | null = null;
  if (length >= 0) {
    // The received bytes belong to the socket.
    const copy = Buffer.allocUnsafe(length);
    bytes.copy(copy, 0, at, at + length);
    data = copy;
    at += length;
  }
  return {
    zxid,
    data,
    stat: {
      czxid: bytes.readBigInt64BE(at),
      mzxid: bytes.readBigInt64BE(at + 8),
      ctime: readTime(bytes, at + 16),
      mtime: readTime(bytes, at + 24),
      version: bytes.readInt32BE(at + 32),
      cversion: bytes.readInt32BE(at + 36),
      aversion: bytes.readInt32BE(at + 40),
      ephemeralOwner: bytes.readBigInt64BE(at + 44),
      dataLength: bytes.readInt32BE(at + 52),
      numChildren: bytes.readInt32BE(at + 56),
      pzxid: bytes.readBigInt64BE(at + 60),
    },
  };
}

function readTime(bytes: Buffer, at: number): number {
  return bytes.readInt32BE(at) * 2 ** 32 + bytes.readUInt32BE(at + 4);
}
