// A second, slow implementation of the wire format, for the capture alone. It shares nothing with
// src/protocol, so the two can check each other. Values are as in the JSON files. A long is
// {"$long": "1"} if it can exceed 2^53, and a number if it is a time. Bytes are {"$hex": "00"}.

const stat = {
  czxid: 'long',
  mzxid: 'long',
  ctime: 'time',
  mtime: 'time',
  version: 'int',
  cversion: 'int',
  aversion: 'int',
  ephemeralOwner: 'long',
  dataLength: 'int',
  numChildren: 'int',
  pzxid: 'long',
};
const acl = { perms: 'int', scheme: 'string', id: 'string' };
const path = { path: 'string' };
const versioned = { path: 'string', version: 'int' };
const read = { path: 'string', watch: 'bool' };
const create = { path: 'string', data: 'buffer', acl: [acl], flags: 'int' };
const created = { path: 'string', stat };
const watcherType = { path: 'string', type: 'int' };
const token = { token: 'buffer' };
const watches = {
  relativeZxid: 'long',
  dataWatches: ['string'],
  existWatches: ['string'],
  childWatches: ['string'],
};

/** name: [opcode, request, reply] */
export const messages = {
  create: [1, create, path],
  create2: [15, create, created],
  createContainer: [19, create, created],
  createTtl: [21, { ...create, ttlMs: 'time' }, created],
  delete: [2, versioned, {}],
  exists: [3, read, { stat }],
  getData: [4, read, { data: 'buffer', stat }],
  setData: [5, { path: 'string', data: 'buffer', version: 'int' }, { stat }],
  getAcl: [6, path, { acl: [acl], stat }],
  setAcl: [7, { path: 'string', acl: [acl], version: 'int' }, { stat }],
  getChildren: [8, read, { children: ['string'] }],
  sync: [9, path, path],
  ping: [11, {}, {}],
  getChildren2: [12, read, { children: ['string'], stat }],
  check: [13, versioned, {}],
  multi: [14, 'multi', 'results'],
  reconfig: [
    16,
    {
      joiningServers: 'string',
      leavingServers: 'string',
      newMembers: 'string',
      curConfigId: 'long',
    },
    { data: 'buffer', stat },
  ],
  checkWatches: [17, watcherType, {}],
  removeWatches: [18, watcherType, {}],
  multiRead: [22, 'multi', 'results'],
  auth: [100, { type: 'int', scheme: 'string', auth: 'buffer' }, {}],
  setWatches: [101, watches, {}],
  sasl: [102, token, token],
  getEphemerals: [103, { prefixPath: 'string' }, { ephemerals: ['string'] }],
  getAllChildrenNumber: [104, path, { totalNumber: 'int' }],
  setWatches2: [
    105,
    { ...watches, persistentWatches: ['string'], persistentRecursiveWatches: ['string'] },
    {},
  ],
  addWatch: [106, { path: 'string', mode: 'int' }, { error: 'int' }],
  whoAmI: [107, {}, { identities: [{ scheme: 'string', user: 'string' }] }],
  closeSession: [-11, {}, {}],
};

export const requestHeader = { xid: 'int', opcode: 'int' };
export const replyHeader = { xid: 'int', zxid: 'long', error: 'int' };
export const watcherEvent = { type: 'int', state: 'int', path: 'string' };
export const connectRequest = {
  protocolVersion: 'int',
  lastZxidSeen: 'long',
  timeoutMs: 'int',
  sessionId: 'long',
  password: 'buffer',
  readOnly: 'optionalBool',
};
export const connectResponse = {
  protocolVersion: 'int',
  timeoutMs: 'int',
  sessionId: 'long',
  password: 'buffer',
  readOnly: 'optionalBool',
};

export const long = (value) => ({ $long: String(value) });
export const bytes = (value) => ({ $hex: Buffer.from(value).toString('hex') });

/** The frame, with its length, of values written one after the other: [schema, value, ...]. */
export function frameOf(...parts) {
  const chunks = [];
  for (let i = 0; i < parts.length; i += 2) put(chunks, parts[i], parts[i + 1]);
  const content = Buffer.concat(chunks);
  return Buffer.concat([int(content.length), content]);
}

function int(value) {
  const chunk = Buffer.alloc(4);
  chunk.writeInt32BE(value);
  return chunk;
}

function put(chunks, schema, value) {
  if (Array.isArray(schema)) {
    chunks.push(int(value === null ? -1 : value.length));
    for (const item of value ?? []) put(chunks, schema[0], item);
  } else if (typeof schema === 'object') {
    for (const [key, type] of Object.entries(schema)) put(chunks, type, value[key]);
  } else if (schema === 'int') {
    chunks.push(int(value));
  } else if (schema === 'long' || schema === 'time') {
    const chunk = Buffer.alloc(8);
    chunk.writeBigInt64BE(BigInt(schema === 'time' ? value : value.$long));
    chunks.push(chunk);
  } else if (schema === 'bool' || schema === 'optionalBool') {
    if (value !== undefined) chunks.push(Buffer.from([value ? 1 : 0]));
  } else if (value === null) {
    chunks.push(int(-1));
  } else if (schema === 'buffer' || schema === 'string') {
    const content = schema === 'string' ? Buffer.from(value) : Buffer.from(value.$hex, 'hex');
    chunks.push(int(content.length), content);
  } else if (schema === 'multi') {
    for (const { opcode, body } of value) {
      chunks.push(int(opcode), Buffer.from([0]), int(-1));
      put(chunks, byOpcode(opcode)[1], body);
    }
    chunks.push(int(-1), Buffer.from([1]), int(-1));
  } else {
    throw new Error(`cannot write ${schema}`);
  }
}

/**
 * The server writes every UTF-16 unit by itself, even halves of a pair: one to three bytes each.
 */
function text(content) {
  let value = '';
  for (let i = 0; i < content.length; ) {
    const [a, b, c] = content.subarray(i, i + 3);
    const length = a < 0x80 ? 1 : a < 0xe0 ? 2 : 3;
    if (length === 1) value += String.fromCharCode(a);
    else if (length === 2) value += String.fromCharCode(((a & 0x1f) << 6) | (b & 0x3f));
    else value += String.fromCharCode(((a & 0x0f) << 12) | ((b & 0x3f) << 6) | (c & 0x3f));
    i += length;
  }
  return value;
}

function byOpcode(opcode) {
  return Object.values(messages).find((message) => message[0] === opcode);
}

/** Reads values one after the other; `end` throws unless everything was read. */
export class Cursor {
  #content;
  #at = 0;

  constructor(content) {
    this.#content = content;
  }

  get left() {
    return this.#content.length - this.#at;
  }

  end() {
    if (this.left !== 0) throw new Error(`${this.left} bytes left`);
  }

  get(schema) {
    if (Array.isArray(schema)) {
      const count = this.get('int');
      return count === -1 ? null : Array.from({ length: count }, () => this.get(schema[0]));
    }
    if (typeof schema === 'object') {
      const value = {};
      for (const [key, type] of Object.entries(schema)) {
        if (type !== 'optionalBool') value[key] = this.get(type);
        else if (this.left > 0) value[key] = this.get('bool');
      }
      return value;
    }
    if (schema === 'int') return this.#take(4).readInt32BE();
    if (schema === 'long') return long(this.#take(8).readBigInt64BE());
    if (schema === 'time') return Number(this.#take(8).readBigInt64BE());
    if (schema === 'bool') return this.#take(1)[0] === 1;
    if (schema === 'results') return this.#results();
    const length = this.get('int');
    if (length === -1) return null;
    const content = this.#take(length);
    return schema === 'string' ? text(content) : bytes(content);
  }

  #results() {
    const results = [];
    for (;;) {
      const opcode = this.get('int');
      const done = this.get('bool');
      this.get('int');
      if (done) return results;
      if (opcode === -1) results.push({ opcode, error: this.get('int') });
      else results.push({ opcode, body: this.get(byOpcode(opcode)[2]) });
    }
  }

  #take(length) {
    if (length > this.left) throw new Error(`${length} bytes wanted, ${this.left} left`);
    this.#at += length;
    return this.#content.subarray(this.#at - length, this.#at);
  }
}
