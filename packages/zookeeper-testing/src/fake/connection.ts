import type { Socket } from 'node:net';
import type {
  AuthRequest,
  Codec,
  RequestHeader,
  RequestKind,
  SaslMessage,
} from '@incumbent/zookeeper/internal';
import {
  errorCodes,
  FrameSplitter,
  JuteReader,
  keeperStates,
  MalformedError,
  opcodes,
  requestHeader,
  requests,
  xids,
} from '@incumbent/zookeeper/internal';
import type { Identity } from './acl.ts';
import { authenticate } from './acl.ts';
import type { Asker } from './answers.ts';
import { answers } from './answers.ts';
import { answerFourLetterWord } from './four-letter-word.ts';
import { greet, readGreeting } from './handshake.ts';
import { Outbox } from './outbox.ts';
import { Refusal } from './refusal.ts';
import { notificationFrame, replyFrame } from './replies.ts';
import type { Server } from './server.ts';
import { codeOf, writes } from './state.ts';
import { strike } from './strike.ts';
import type { Watcher } from './watches.ts';

const kinds = new Map<number, RequestKind<unknown, unknown>>(
  Object.values(requests).map((kind) => [kind.opcode, kind as RequestKind<unknown, unknown>]),
);
/** The answer to a request. */
export interface Reply {
  readonly bytes: Uint8Array;
  /** The effect on the connection, once it is sent. */
  readonly afterwards?: 'end' | 'mute';
}

/** One client's connection to one server. */
export class Connection implements Watcher {
  readonly outbox: Outbox;
  readonly server: Server;
  readonly #socket: Socket;
  readonly #splitter: FrameSplitter;
  /** Frames that wait until the server may go on. */
  #inbox: Uint8Array[] = [];
  #stops = 0;
  #silent = false;
  #ended = false;
  #begun = false;
  #sessionId: bigint | undefined;
  #identities: readonly Identity[];

  constructor(server: Server, socket: Socket) {
    this.server = server;
    this.#socket = socket;
    this.outbox = new Outbox(socket);
    this.#identities = [{ scheme: 'ip', id: '127.0.0.1' }];
    this.#splitter = new FrameSplitter(server.settings.maxFrameBytes, (bytes, start, end) => {
      const content = bytes.subarray(start, end);
      // A waiting frame must be a copy, because the splitter's bytes are valid only during the
      // call.
      if (this.#stopped || this.#inbox.length > 0) this.#inbox.push(new Uint8Array(content));
      else this.#take(content);
    });
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('error', () => {}); // 'close' follows
    socket.on('close', () => this.#gone());
  }

  /** 0n before the handshake. */
  get sessionId(): bigint {
    return this.#sessionId ?? 0n;
  }

  notify(type: number, path: string, zxid: bigint): void {
    const shown = this.server.settings.notificationZxid ? zxid : -1n;
    // Also without a quorum the state is this one.
    this.outbox.send(notificationFrame(type, keeperStates.connected, path, shown));
  }

  /** Closes the connection as a server does, behind what was sent. The session lives on. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#splitter.end();
    this.#inbox = [];
    this.server.forget(this);
    this.outbox.end();
    this.#readOn();
  }

  /** Closes it at once. */
  destroy(): void {
    this.end();
    this.#socket.destroy();
  }

  /**
   * Reads nothing and says nothing. When it is over, frames that have arrived meanwhile are served.
   */
  silence(on: boolean): void {
    if (this.#silent === on) return;
    this.#silent = on;
    this.outbox.silence(on);
    this.#readOn();
  }

  /** Serves no further request until the function that comes back is called. */
  stop(): () => void {
    this.#stops += 1;
    this.#readOn();
    return () => {
      this.#stops -= 1;
      this.#readOn();
    };
  }

  send({ bytes, afterwards }: Reply): void {
    this.outbox.send(bytes);
    if (afterwards === 'end') this.end();
    if (afterwards === 'mute') this.stop();
  }

  /** A closed connection still reads and discards, so that it sees the client's end. */
  get #stopped(): boolean {
    return this.#silent || (this.#stops > 0 && !this.#ended);
  }

  #readOn(): void {
    if (this.#stopped) {
      this.#socket.pause();
      return;
    }
    while (this.#inbox.length > 0 && !this.#stopped) {
      this.#take(this.#inbox.shift() as Uint8Array);
    }
    if (!this.#stopped) this.#socket.resume();
  }

  #gone(): void {
    this.#ended = true;
    this.#inbox = [];
    this.server.forget(this);
    this.server.closed(this);
  }

  #receive(chunk: Uint8Array): void {
    if (this.#ended) return;
    if (!this.#begun) {
      this.#begun = true;
      const answer = answerFourLetterWord(this.server, chunk);
      if (answer !== undefined) {
        this.send({ bytes: answer, afterwards: 'end' });
        return;
      }
    }
    this.#orEnd(() => this.#splitter.push(chunk));
  }

  /** Closes the connection if the client sends bytes that no client sends. */
  #orEnd(read: () => void): void {
    try {
      read();
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error;
      this.end();
    }
  }

  #take(content: Uint8Array): void {
    if (this.#ended) return;
    this.#orEnd(() => {
      if (this.#sessionId === undefined) this.#greet(content);
      else this.#request(content);
    });
  }

  #request(content: Uint8Array): void {
    const reader = new JuteReader(content);
    const header = requestHeader.read(reader);
    this.#touch();
    const kind = kinds.get(header.opcode);
    const body = kind === undefined ? undefined : decoded(kind.request, reader);
    const { sessionId } = this;
    const { port } = this.server;
    const { xid } = header;
    const paths = pathsOf(body);
    const opcode = kind?.name ?? 'unknown';
    const request = { port, sessionId, xid, opcode, path: paths[0], paths };
    this.server.log(request);
    strike(this, request, () => this.#answer(header, kind, body));
  }

  #greet(content: Uint8Array): void {
    const greeting = readGreeting(content);
    const { sessionId } = greeting.request;
    const { port } = this.server;
    const request = { port, sessionId, xid: 0, opcode: 'connect', path: undefined, paths: [] };
    this.server.log(request);
    strike(this, request, () => {
      const handshake = greet(this.server, greeting);
      switch (handshake.outcome) {
        case 'closed':
          this.end();
          return undefined;
        case 'refused':
          return { bytes: handshake.reply, afterwards: 'end' };
        case 'stuck':
          return { bytes: handshake.reply, afterwards: 'mute' };
        case 'attached':
          this.#sessionId = handshake.sessionId;
          this.server.attach(this);
          return { bytes: handshake.reply };
        default:
          return handshake satisfies never;
      }
    });
  }

  #touch(): void {
    const { sessions, nowMs } = this.server.state;
    const session = sessions.get(this.sessionId);
    if (session !== undefined) sessions.touch(session, nowMs);
  }

  #answer(
    { xid, opcode }: RequestHeader,
    kind: RequestKind<unknown, unknown> | undefined,
    body: unknown,
  ): Reply | undefined {
    if (kind === undefined) {
      const error = errorCodes.unimplemented;
      return { bytes: replyFrame({ xid, zxid: -1n, error }), afterwards: 'end' };
    }
    if (opcode === opcodes.auth) return this.#authenticate(xid, body as AuthRequest | undefined);
    if (opcode === opcodes.sasl) {
      // As a server without a login configuration: it has no token for us, and closes without one.
      if ((body as SaslMessage | undefined)?.token == null) {
        this.end();
        return undefined;
      }
      return { bytes: replyFrame({ xid, zxid: 0n, error: 0 }, kind.response, { token: null }) };
    }
    if (opcode === opcodes.closeSession && this.server.isReadOnly) {
      this.server.localSessions.delete(this.sessionId);
      return { bytes: replyFrame({ xid, zxid: this.server.zxid, error: 0 }), afterwards: 'end' };
    }
    // A closeSession counts wherever it comes from.
    if (writes.has(opcode) && opcode !== opcodes.closeSession && this.#hasMoved()) {
      this.end();
      return undefined;
    }
    let error = 0;
    let value: unknown;
    try {
      value = this.#ask(opcode, body);
    } catch (thrown) {
      error = codeOf(thrown);
    }
    const zxid = writes.has(opcode) ? this.server.state.lastZxid : this.server.zxid;
    const header = { xid: opcode === opcodes.ping ? xids.ping : xid, zxid, error };
    const bytes = replyFrame(header, kind.response, value);
    return opcode === opcodes.closeSession ? { bytes, afterwards: 'end' } : { bytes };
  }

  #ask(opcode: number, body: unknown): unknown {
    const { server } = this;
    const { state, tree, zxid, watches } = server;
    if (server.isReadOnly && (writes.has(opcode) || opcode === opcodes.sync)) {
      throw new Refusal(errorCodes.notReadOnly);
    }
    const asker: Asker = {
      ...{ state, replica: server, tree, zxid, watches, watcher: this },
      ...{ sessionId: this.sessionId, identities: this.#identities },
    };
    const answer = answers.get(opcode);
    if (body !== undefined && answer !== undefined) return answer(asker, body);
    const refusal = new Refusal(errorCodes.marshallingError);
    if (!writes.has(opcode)) throw refusal;
    return state.write(asker, () => {
      throw refusal;
    });
  }

  #authenticate(xid: number, body: AuthRequest | undefined): Reply {
    try {
      if (body === undefined) throw new Refusal(errorCodes.authFailed);
      const { superDigest } = this.server.settings;
      const added = authenticate(body.scheme, body.auth, '127.0.0.1', superDigest);
      const known = this.#identities.map(({ scheme, id }) => `${scheme}:${id}`);
      const news = added.filter(({ scheme, id }) => !known.includes(`${scheme}:${id}`));
      this.#identities = [...this.#identities, ...news];
      return { bytes: replyFrame({ xid, zxid: 0n, error: 0 }) };
    } catch (error) {
      return { bytes: replyFrame({ xid, zxid: 0n, error: codeOf(error) }), afterwards: 'end' };
    }
  }

  /** Whether the client has attached to another server since. */
  #hasMoved(): boolean {
    const session = this.server.state.sessions.get(this.sessionId);
    return session !== undefined && session.owner !== this.server;
  }
}

/** undefined for bytes that are no such request. */
function decoded(codec: Codec<unknown>, reader: JuteReader): unknown {
  try {
    return codec.read(reader);
  } catch (error) {
    if (error instanceof MalformedError) return undefined;
    throw error;
  }
}

function pathsOf(body: unknown): readonly string[] {
  if (Array.isArray(body)) return body.flatMap((operation) => pathsOf(operation.body));
  const { path, prefixPath } = (body ?? {}) as { path?: string; prefixPath?: string };
  const first = path ?? prefixPath;
  return first === undefined ? [] : [first];
}
