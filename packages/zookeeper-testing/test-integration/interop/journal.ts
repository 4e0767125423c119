/**
 * The bytes on the wire, made comparable between two servers. Transactions are counted from the
 * first reply on, and sessions are named in the order of their appearance. Times only tell whether
 * they are there.
 */
import { createHash } from 'node:crypto';
import { connectRequest, connectResponse } from '../../../zookeeper/src/protocol/connect.ts';
import { opcodes, xids } from '../../../zookeeper/src/protocol/constants.ts';
import { JuteReader } from '../../../zookeeper/src/protocol/jute.ts';
import {
  replyHeader,
  requestHeader,
  watcherEvent,
} from '../../../zookeeper/src/protocol/messages.ts';
import type { RequestKind } from '../../../zookeeper/src/protocol/requests.ts';
import { requests } from '../../../zookeeper/src/protocol/requests.ts';

// biome-ignore lint/suspicious/noExplicitAny: each kind has bodies of its own
type AnyKind = RequestKind<any, any>;

const kinds: ReadonlyMap<number, AnyKind> = new Map(
  (Object.values(requests) as AnyKind[]).map((kind) => [kind.opcode, kind]),
);

const zxidFields: ReadonlySet<string> = new Set(['czxid', 'mzxid', 'pzxid']);
const timeFields: ReadonlySet<string> = new Set(['ctime', 'mtime']);
const sessionFields: ReadonlySet<string> = new Set(['ephemeralOwner', 'sessionId']);

/** The messages of several clients of one server, with common numbers. */
export class Journal {
  /** One line per message, by client. */
  readonly lines: Record<string, string[]> = {};
  readonly #sessions = new Map<bigint, string>();
  #firstZxid: bigint | undefined;

  write(client: string, line: string): void {
    append(this.lines, client, line);
  }

  zxid(value: bigint): string {
    if (value <= 0n) return String(value);
    this.#firstZxid ??= value;
    return `z${value - this.#firstZxid}`;
  }

  session(id: bigint): string {
    if (id === 0n) return 'none';
    const known = this.#sessions.get(id);
    if (known !== undefined) return known;
    const name = `session-${this.#sessions.size + 1}`;
    this.#sessions.set(id, name);
    return name;
  }

  /** A message's body as a line of text. */
  body(value: object): string {
    const journal = this;
    return JSON.stringify(value, function (this: Record<string, unknown>, key, field: unknown) {
      const bytes = this[key];
      if (bytes instanceof Uint8Array) {
        return `${bytes.length} bytes of ${createHash('sha1').update(bytes).digest('hex')}`;
      }
      // Their order is that of the server's hash tables.
      if (key === 'children' || key === 'ephemerals') return [...(field as string[])].sort();
      if (key === 'identities') return (field as object[]).map((one) => JSON.stringify(one)).sort();
      if (timeFields.has(key)) return (field as number) > 0 ? 'a time' : field;
      if (typeof field === 'bigint') {
        if (zxidFields.has(key)) return journal.zxid(field);
        return sessionFields.has(key) ? journal.session(field) : String(field);
      }
      return field;
    });
  }
}

/** Reads both directions of one connection and writes what it sees into the journal. */
export class Conversation {
  readonly #journal: Journal;
  readonly #client: string;
  readonly #waiting: { readonly xid: number; readonly kind: AnyKind | undefined }[] = [];
  #greeted = false;
  #answered = false;

  constructor(journal: Journal, client: string) {
    this.#journal = journal;
    this.#client = client;
  }

  fromClient(bytes: Uint8Array, start: number, end: number): void {
    const reader = new JuteReader(bytes, start, end);
    if (!this.#greeted) {
      this.#greeted = true;
      const { sessionId, timeoutMs } = connectRequest.read(reader);
      this.#write(`> connect ${this.#journal.session(sessionId)} timeout ${timeoutMs}`);
      return;
    }
    const { xid, opcode } = requestHeader.read(reader);
    if (opcode === opcodes.ping) return;
    if (opcode !== opcodes.auth) this.#waiting.push({ xid, kind: kinds.get(opcode) });
  }

  fromServer(bytes: Uint8Array, start: number, end: number): void {
    const reader = new JuteReader(bytes, start, end);
    if (!this.#answered) {
      this.#answered = true;
      const { sessionId, timeoutMs, readOnly, password } = connectResponse.read(reader);
      const session = this.#journal.session(sessionId);
      this.#write(
        `< connected ${session} timeout ${timeoutMs} readOnly ${readOnly} ` +
          `password ${password?.length} bytes`,
      );
      return;
    }
    const { xid, zxid, error } = replyHeader.read(reader);
    if (xid === xids.ping) return;
    const header = `zxid ${this.#journal.zxid(zxid)} error ${error}`;
    if (xid === xids.auth) {
      this.#write(`< auth ${header}`);
    } else if (xid === xids.notification) {
      this.#write(`< event ${header} ${JSON.stringify(watcherEvent.read(reader))}`);
    } else {
      const request = this.#waiting.shift();
      if (request?.xid !== xid) throw new Error(`a reply to ${xid} instead of ${request?.xid}`);
      const { kind } = request;
      const codec = error === 0 ? kind?.response : undefined;
      const text = codec === undefined ? '' : this.#journal.body(codec.read(reader));
      this.#write(`< ${kind?.name ?? 'unknown'} ${header} ${text}`);
    }
    reader.expectEnd('a reply');
  }

  #write(line: string): void {
    this.#journal.write(this.#client, line);
  }
}

export function append(lines: Record<string, string[]>, key: string, line: string): void {
  const known = lines[key];
  if (known === undefined) lines[key] = [line];
  else known.push(line);
}
