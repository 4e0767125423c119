import type { Instant } from './clock.ts';
import type { Acl, ClientIdentity } from './protocol/messages.ts';
import type { Stat } from './protocol/stat.ts';

/** What every reply says. */
export interface Reply {
  /** Of a write: its transaction. Of a read: the last transaction that the server had applied. */
  readonly zxid: bigint;
  /**
   * Both clocks, read before the request was handed to the socket. What the reply says was true at
   * some time after it: a belief that is built on a reply counts from here.
   */
  readonly sentAt: Instant;
}

/** The data of a node and what is known about it. */
export class GetReply implements Reply {
  /** A copy that is the caller's (a Node.js Buffer); null when the node was made with null. */
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

  /** The data as UTF-8; empty for null. */
  get text(): string {
    return this.data === null ? '' : decoder.decode(this.data);
  }
}

const decoder = new TextDecoder();

export interface StatReply extends Reply {
  readonly stat: Stat;
}

export interface MaybeStatReply extends Reply {
  /** null: there is no such node. */
  readonly stat: Stat | null;
}

export interface ChildrenReply extends Reply {
  /** Names, not paths, in no order. */
  readonly children: readonly string[];
  /** Of the node itself. */
  readonly stat: Stat;
}

export interface CreateReply extends Reply {
  /** The path that was made: with the sequence number, or the protection, in its name. */
  readonly path: string;
  /** null only with `compatibility: '3.4'`. */
  readonly stat: Stat | null;
}

export interface AclReply extends Reply {
  readonly acl: readonly Acl[];
  readonly stat: Stat;
}

export interface EphemeralsReply extends Reply {
  readonly paths: readonly string[];
}

export interface CountReply extends Reply {
  /** All nodes below, at any depth. */
  readonly count: number;
}

export interface IdentitiesReply extends Reply {
  readonly identities: readonly ClientIdentity[];
}
