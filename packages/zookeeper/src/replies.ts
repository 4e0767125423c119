import type { Instant } from './clock.ts';
import type { Acl, ClientIdentity } from './protocol/messages.ts';
import type { Stat } from './protocol/stat.ts';

/** The fields of every reply. */
export interface Reply {
  /** Of a write: its transaction. Of a read: the last transaction that the server had applied. */
  readonly zxid: bigint;
  /**
   * Both clocks, read before the request was handed to the socket. The facts in the reply were true
   * at some time after it. So a lease or a view that relies on a reply counts from here.
   */
  readonly sentAt: Instant;
}

/** The data of a node, and its Stat. */
export class GetReply implements Reply {
  /** A copy that belongs to the caller (a Node.js Buffer); null if the node has no data. */
  readonly data: Uint8Array | null;
  readonly stat: Stat;
  readonly zxid: bigint;
  readonly sentAt: Instant;

  constructor(data: Uint8Array | null, stat: Stat, { zxid, sentAt }: Reply) {
    this.data = data;
    this.stat = stat;
    this.zxid = zxid;
    this.sentAt = sentAt;
  }

  /** The data as UTF-8 text; empty for null. */
  get text(): string {
    return this.data === null ? '' : decoder.decode(this.data);
  }
}

const decoder = new TextDecoder();

/** The Stat after a write. */
export interface StatReply extends Reply {
  readonly stat: Stat;
}

/** The Stat of a node that may not exist. */
export interface MaybeStatReply extends Reply {
  /** null: there is no such node. */
  readonly stat: Stat | null;
}

/** The names of a node's children. */
export interface ChildrenReply extends Reply {
  /** Names, not paths, in no order. */
  readonly children: readonly string[];
  /** The Stat of the parent. */
  readonly stat: Stat;
}

/** The node that was made. */
export interface CreateReply extends Reply {
  /** The path that was made: its name includes the sequence number, and the guid of `protected`. */
  readonly path: string;
  /** null only with `compatibility: '3.4'`. */
  readonly stat: Stat | null;
}

/** The ACL of a node. */
export interface AclReply extends Reply {
  readonly acl: readonly Acl[];
  readonly stat: Stat;
}

/** The ephemeral nodes of this session. */
export interface EphemeralsReply extends Reply {
  readonly paths: readonly string[];
}

/** The number of nodes below a node. */
export interface CountReply extends Reply {
  /** All nodes below, at any depth. */
  readonly count: number;
}

/** The identities of this session. */
export interface IdentitiesReply extends Reply {
  readonly identities: readonly ClientIdentity[];
}
