// One connection of the capture: sends one request, awaits its reply, and records both.
import { once } from 'node:events';
import { connect } from 'node:net';
import {
  bytes,
  Cursor,
  connectRequest,
  connectResponse,
  frameOf,
  long,
  messages,
  replyHeader,
  requestHeader,
  watcherEvent,
} from './wire.mjs';

const waitMs = 10_000;
const reservedXids = { ping: -2, auth: -4, setWatches: -8, setWatches2: -8 };

export class Session {
  /** The list of recorded exchanges. */
  #exchanges;
  #socket;
  #received = Buffer.alloc(0);
  #closed = false;
  #wake = () => {};
  #events = [];
  #xid = 0;
  /** The body of the ConnectResponse. */
  attached;

  static async open(port, exchanges) {
    const session = new Session();
    session.#exchanges = exchanges;
    session.#socket = connect(port, '127.0.0.1');
    await once(session.#socket, 'connect');
    session.#socket.on('data', (chunk) => {
      session.#received = Buffer.concat([session.#received, chunk]);
      session.#wake();
    });
    session.#socket.on('error', () => {});
    session.#socket.on('close', () => {
      session.#closed = true;
      session.#wake();
    });
    return session;
  }

  /** @param changes to the ConnectRequest of a new session; `readOnly: undefined` leaves it out */
  async attach(name, changes = {}, expected = {}) {
    const body = {
      protocolVersion: 0,
      lastZxidSeen: long(0),
      timeoutMs: 10_000,
      sessionId: long(0),
      password: bytes(Buffer.alloc(16)),
      readOnly: false,
      ...changes,
    };
    const request = frameOf(connectRequest, body);
    this.#socket.write(request);
    const frame = await this.#frame();
    // A read-only server without local sessions answers with the header of a reply.
    const schema = frame.length === 20 ? replyHeader : connectResponse;
    const cursor = new Cursor(frame.subarray(4));
    const reply = cursor.get(schema);
    cursor.end();
    check(name, reply, expected);
    this.attached = reply;
    const key = schema === replyHeader ? 'header' : 'body';
    this.#exchanges.push({
      name,
      message: 'connect',
      request: { body, frame: request.toString('hex') },
      reply: { [key]: reply, frame: frame.toString('hex') },
    });
    return this;
  }

  /**
   * @param expected properties that the reply must have: `error` in the header, the rest in the
   *   body
   */
  async call(name, message, body = {}, { error = 0, body: expected = {} } = {}) {
    const [opcode, schema, replySchema] = messages[message];
    this.#xid += 1;
    const header = { xid: reservedXids[message] ?? this.#xid, opcode };
    return this.#exchange(name, message, header, [schema, body], replySchema, error, expected);
  }

  async unknownOpcode(name, opcode) {
    this.#xid += 1;
    const header = { xid: this.#xid, opcode };
    await this.#exchange(name, 'unknown', header, [{}, {}], {}, -6, {});
  }

  async #exchange(name, message, header, [schema, body], replySchema, error, expected) {
    const request = frameOf(requestHeader, header, schema, body);
    this.#socket.write(request);
    for (;;) {
      const frame = await this.#frame();
      const cursor = new Cursor(frame.subarray(4));
      const replied = cursor.get(replyHeader);
      if (replied.xid === -1) {
        this.#events.push(frame);
        continue;
      }
      check(name, replied, { xid: header.xid, error });
      const reply = { header: replied };
      // A refused sasl is the one error with a body.
      if (error === 0 || cursor.left > 0) reply.body = cursor.get(replySchema);
      cursor.end();
      check(name, reply.body, expected);
      this.#exchanges.push({
        name,
        message,
        request: { header, body, frame: request.toString('hex') },
        reply: { ...reply, frame: frame.toString('hex') },
      });
      return reply.body;
    }
  }

  async event(name, expected) {
    const frame = this.#events.shift() ?? (await this.#frame());
    const cursor = new Cursor(frame.subarray(4));
    const header = cursor.get(replyHeader);
    const body = cursor.get(watcherEvent);
    cursor.end();
    check(name, header, { xid: -1, error: 0 });
    check(name, body, { state: 3, ...expected });
    this.#exchanges.push({
      name,
      message: 'notification',
      reply: { header, body, frame: frame.toString('hex') },
    });
  }

  /** Waits until the server has closed the connection. */
  async closed() {
    while (!this.#closed) await this.#more();
  }

  drop() {
    this.#socket.destroy();
  }

  async #frame() {
    for (;;) {
      if (this.#received.length >= 4) {
        const end = 4 + this.#received.readInt32BE();
        if (this.#received.length >= end) {
          const frame = this.#received.subarray(0, end);
          this.#received = this.#received.subarray(end);
          return frame;
        }
      }
      if (this.#closed) throw new Error('the server has closed the connection');
      await this.#more();
    }
  }

  #more() {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`nothing for ${waitMs} ms`)), waitMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Every property of `expected` is the same in `actual`; vectors and objects inside likewise. */
function check(name, actual, expected) {
  for (const [key, value] of Object.entries(expected)) {
    if (typeof value === 'object' && value !== null) {
      if (Array.isArray(value)) check(name, actual[key], { length: value.length });
      check(name, actual[key], value);
    } else if (actual[key] !== value) {
      throw new Error(`${name}: ${key} is ${JSON.stringify(actual[key])}, not ${value}`);
    }
  }
}
