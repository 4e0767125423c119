/** What arrives on a connection: who it is for, and what it makes happen. */
import type { Tally } from '../counters.ts';
import { isWatched, publish } from '../diagnostics.ts';
import { ProtocolError } from '../errors.ts';
import type { ConnectResponse } from '../protocol/connect.ts';
import { errorCodes, eventTypes, xids } from '../protocol/constants.ts';
import { JuteReader } from '../protocol/jute.ts';
import { watcherEvent } from '../protocol/messages.ts';
import type { Authenticator } from './authenticator.ts';
import { readConnectAnswer } from './handshake.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { Pipeline } from './pipeline.ts';
import type { SessionEvent } from './session-states.ts';
import type { View } from './view.ts';
import type { RawEventType, WatchRegistry } from './watch-registry.ts';

/** Whom it is for. */
export interface Recipients {
  /** Of the client, for diagnostics. */
  readonly number: number;
  readonly tally: Tally;
  readonly auth: Authenticator;
  readonly heartbeat: Heartbeat;
  readonly pipeline: Pipeline;
  readonly view: View;
  readonly watches: WatchRegistry;
  /** The server of the connection has granted a session. */
  readonly isGranted: boolean;
  /** It was told who we are and what we watch. */
  readonly isIntroduced: boolean;
  /** It has all our watches. */
  readonly hasWatches: boolean;
  happen(event: SessionEvent): void;
  /** A session is granted. */
  offer(response: ConnectResponse): void;
  /** The credentials are refused. */
  refuse(): void;
}

export class Inbound {
  readonly #to: Recipients;
  #reader: JuteReader | undefined;
  #readerBytes: Uint8Array | undefined;

  constructor(to: Recipients) {
    this.#to = to;
  }

  /**
   * One frame, of the server at `host:port`.
   * @throws ProtocolError, MalformedError: the connection cannot go on
   */
  take(bytes: Uint8Array, start: number, end: number, server: string): void {
    if (this.#to.isGranted) this.#onFrame(bytes, start, end, server);
    else this.#onConnectAnswer(bytes, start, end, server);
  }

  #onConnectAnswer(bytes: Uint8Array, start: number, end: number, server: string): void {
    const answer = readConnectAnswer(bytes, start, end, this.#to.isIntroduced);
    if (answer.kind === 'auth') {
      this.#onAuthReply(answer.error);
      return;
    }
    const { response } = answer;
    if (response.timeoutMs > 0 && response.sessionId !== 0n) {
      this.#to.offer(response);
      return;
    }
    const error = new Error(`${server} says that the session has expired`);
    this.#to.happen({ on: 'not-granted', readOnly: response.readOnly, error });
  }

  #onFrame(bytes: Uint8Array, start: number, end: number, server: string): void {
    const { pipeline, heartbeat, view } = this.#to;
    let reader = this.#reader;
    if (reader !== undefined && bytes === this.#readerBytes) {
      reader.seek(start, end);
    } else {
      reader = new JuteReader(bytes, start, end);
      this.#reader = reader;
      this.#readerBytes = bytes;
    }
    const xid = reader.int32();
    const zxid = reader.int64();
    const error = reader.int32();
    switch (xid) {
      case xids.notification:
        this.#onNotification(reader, zxid);
        return;
      case xids.ping:
        if (!heartbeat.pinged()) throw new ProtocolError('a ping was answered unasked');
        view.saw(zxid, this.#to.hasWatches);
        return;
      case xids.auth:
        this.#onAuthReply(error);
        return;
      case xids.setWatches:
        this.#to.happen({ on: 'watches-restored' });
        if (error !== errorCodes.ok) {
          throw new ProtocolError(`the server refuses to restore watches: error ${error}`);
        }
        // Unless nobody had asked: then the connection is gone.
        if (this.#to.isGranted) view.saw(zxid, this.#to.hasWatches);
        return;
      default:
        // Nothing of a reply is believed before it is known to be one.
        pipeline.checkNext(xid);
        view.saw(zxid, this.#to.hasWatches);
        if (isWatched('incumbent:zookeeper:reply')) this.#publishReply(error);
        pipeline.onReply(zxid, error, reader, heartbeat.lastReceivedMs);
        if (error === errorCodes.sessionMoved) {
          throw new ProtocolError('the session has moved to another server');
        }
        if (error === errorCodes.sessionExpired || error === errorCodes.unknownSession) {
          const over = new Error(`${server} says that the session has expired`);
          this.#to.happen({ on: 'over', error: over });
        }
    }
  }

  #onNotification(reader: JuteReader, zxid: bigint): void {
    const { number, tally, watches } = this.#to;
    tally.notifications += 1;
    const { type, path } = watcherEvent.read(reader);
    reader.expectEnd('notification');
    const name = eventNames.get(type);
    // Events about the session (type -1) say nothing that the connection does not.
    if (name === undefined) return;
    publish('incumbent:zookeeper:event', number, { type: name, path });
    watches.dispatch({ type: name, path, zxid: zxid > 0n ? zxid : undefined });
  }

  #onAuthReply(error: number): void {
    const { auth } = this.#to;
    if (error !== errorCodes.ok) {
      this.#to.refuse();
      return;
    }
    if (!auth.onTaken()) throw new ProtocolError('authentication was answered unasked');
    if (auth.isAnswered) this.#to.happen({ on: 'credentials-taken' });
  }

  #publishReply(error: number): void {
    const { heartbeat, number, pipeline } = this.#to;
    const head = pipeline.oldest;
    if (head === undefined) return;
    publish('incumbent:zookeeper:reply', number, {
      operation: head.operation,
      path: head.path,
      error,
      elapsedMs: heartbeat.lastReceivedMs - head.sentAt.monotonicMs,
    });
  }
}

const eventNames: ReadonlyMap<number, RawEventType> = new Map([
  [eventTypes.created, 'created'],
  [eventTypes.deleted, 'deleted'],
  [eventTypes.dataChanged, 'changed'],
  [eventTypes.childrenChanged, 'children-changed'],
]);
