import type { Codec } from './jute.ts';

/** ZooKeeper's data about a node, besides its content. 68 bytes on the wire. */
export interface Stat {
  /** The zxid of the transaction that created the node. No two nodes have the same. */
  readonly czxid: bigint;
  /** The zxid of the last change of the data. */
  readonly mzxid: bigint;
  /** When the node was created, in ms since 1970, by the clock of the server that led then. */
  readonly ctime: number;
  /** When the data last changed, in ms since 1970, by the clock of the server that led then. */
  readonly mtime: number;
  /** How often the data have changed; 0 for a new node. A signed 32-bit counter, which can wrap. */
  readonly version: number;
  /** How often the list of children has changed. */
  readonly cversion: number;
  /** How often the ACL has changed. */
  readonly aversion: number;
  /** The session that owns an ephemeral node; 0 for every other kind. */
  readonly ephemeralOwner: bigint;
  /** The length of the data, in bytes. */
  readonly dataLength: number;
  /** The number of children. */
  readonly numChildren: number;
  /** The zxid of the last change of the list of children. */
  readonly pzxid: bigint;
}

/** Written by hand, not by `record`, because it is part of nearly every reply. */
export const stat: Codec<Stat> = {
  minBytes: 68,
  read(reader) {
    return {
      czxid: reader.int64(),
      mzxid: reader.int64(),
      ctime: reader.safeInt64(),
      mtime: reader.safeInt64(),
      version: reader.int32(),
      cversion: reader.int32(),
      aversion: reader.int32(),
      ephemeralOwner: reader.int64(),
      dataLength: reader.int32(),
      numChildren: reader.int32(),
      pzxid: reader.int64(),
    };
  },
  write(writer, value) {
    writer.int64(value.czxid);
    writer.int64(value.mzxid);
    writer.safeInt64(value.ctime);
    writer.safeInt64(value.mtime);
    writer.int32(value.version);
    writer.int32(value.cversion);
    writer.int32(value.aversion);
    writer.int64(value.ephemeralOwner);
    writer.int32(value.dataLength);
    writer.int32(value.numChildren);
    writer.int64(value.pzxid);
  },
};
