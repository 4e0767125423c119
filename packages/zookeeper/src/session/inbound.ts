/** Takes what arrives on a connection to the part of the session that it concerns. */
import { isWatched, publish } from '../diagnostics.ts';
import { credentialsRefused, ProtocolError } from '../errors.ts';
import type { ConnectResponse } from '../protocol/connect.ts';
import { errorCodes, eventTypes, xids } from '../protocol/constants.ts';
import { JuteReader } from '../protocol/jute.ts';
import { watcherEvent } from '../protocol/messages.ts';
import { readConnectAnswer } from './handshake.ts';
import type { SessionParts } from './session-parts.ts';
import type { RawEventType } from './watch-registry.ts';

export class Inbound {
  readonly #to: SessionParts;
  readonly #onGranted: (response: ConnectResponse) => void;
  #reader: JuteReader | undefined;
  #readerBytes: Uint8Array | undefined;

  constructor(to: SessionParts, onGranted: (response: ConnectResponse) => void) {
    this.#to = to;
    this.#onGranted = onGranted;
  }

  /**
   * Takes one frame from the server at `host:port`.
   * @throws ProtocolError or MalformedError if the connection cannot go on
   */
  take(bytes: Uint8Array, start: number, end: number, server: string): void {
    if (this.#to.machine.isGranted) this.#onFrame(bytes, start, end, server);
    else this.#onConnectAnswer(bytes, start, end, server);
  }

  #onConnectAnswer(bytes: Uint8Array, start: number, end: number, server: string): void {
    const answer = readConnectAnswer(bytes, start, end, this.#to.machine.isIntroduced);
    if (answer.kind === 'auth') {
      this.#onAuthReply(answer.error);
      return;
    }
    const { response } = answer;
    if (response.timeoutMs > 0 && response.sessionId !== 0n) {
      this.#onGranted(response);
      return;
    }
    const error = new Error(`${server} says that the session has expired`);
    this.#to.machine.happen({ on: 'not-granted', readOnly: response.readOnly, error });
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
        view.saw(zxid, this.#to.machine.hasWatches);
        return;
      case xids.auth:
        this.#onAuthReply(error);
        return;
      case xids.setWatches:
        this.#to.machine.happen({ on: 'watches-restored' });
        if (error !== errorCodes.ok) {
          throw new ProtocolError(`the server refuses to restore watches: error ${error}`);
        }
        // Not if the answer was unasked: then the connection is gone.
        if (this.#to.machine.isGranted) view.saw(zxid, this.#to.machine.hasWatches);
        return;
      default:
        // Nothing of a reply counts before it is known to answer the request that is due.
        pipeline.checkNext(xid);
        view.saw(zxid, this.#to.machine.hasWatches);
        if (isWatched('incumbent:zookeeper:reply')) this.#publishReply(error);
        pipeline.onReply(zxid, error, reader, heartbeat.lastReceivedMs);
        if (error === errorCodes.sessionMoved) {
          throw new ProtocolError('the session has moved to another server');
        }
        if (error === errorCodes.sessionExpired || error === errorCodes.unknownSession) {
          const over = new Error(`${server} says that the session has expired`);
          this.#to.machine.happen({ on: 'over', error: over });
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
    const { auth, machine } = this.#to;
    if (error !== errorCodes.ok) {
      const refused = credentialsRefused({ operation: 'auth' });
      machine.happen({ on: 'credentials-refused', error: refused });
      return;
    }
    if (!auth.onTaken()) throw new ProtocolError('authentication was answered unasked');
    if (auth.isAnswered) machine.happen({ on: 'credentials-taken' });
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
