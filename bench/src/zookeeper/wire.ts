/** The few messages that *raw* and the canned responder need, encoded by hand. */

export interface Session {
  readonly id: Uint8Array;
  readonly password: Uint8Array;
}

export const newSession: Session = { id: new Uint8Array(8), password: new Uint8Array(16) };

export const opcodes = {
  create: 1,
  delete: 2,
  getData: 4,
  setData: 5,
  ping: 11,
  multi: 14,
  create2: 15,
  auth: 100,
  setWatches: 101,
  closeSession: -11,
} as const;

export const xids = { notification: -1, ping: -2, auth: -4, setWatches: -8 } as const;

/** Where a frame that came whole has its xid, and where the body of a reply begins. */
export const xidAt = 4;
export const replyBodyAt = 20;

type Part = Uint8Array;

export function frame(...parts: readonly Part[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([int32(content.length), content]);
}

export function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

export function int64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

export function bool(value: boolean): Buffer {
  return Buffer.of(value ? 1 : 0);
}

export function buffer(value: Uint8Array | string): Buffer {
  const bytes = Buffer.from(value as string);
  return Buffer.concat([int32(bytes.length), bytes]);
}

export function request(xid: number, opcode: number, ...parts: readonly Part[]): Buffer {
  return frame(int32(xid), int32(opcode), ...parts);
}

export function connectRequest(
  timeoutMs: number,
  session: Session = newSession,
  lastZxid = 0n,
): Buffer {
  return frame(
    int32(0),
    int64(lastZxid),
    int32(timeoutMs),
    session.id,
    buffer(session.password),
    bool(false),
  );
}

export function authRequest(scheme: string, auth: string): Buffer {
  return request(xids.auth, opcodes.auth, int32(0), buffer(scheme), buffer(auth));
}

export function setWatchesRequest(lastZxid: bigint, dataPaths: readonly string[]): Buffer {
  return request(
    xids.setWatches,
    opcodes.setWatches,
    int64(lastZxid),
    int32(dataPaths.length),
    ...dataPaths.map((path) => buffer(path)),
    int32(0),
    int32(0),
  );
}

export function getRequest(xid: number, path: string, watch = false): Buffer {
  return request(xid, opcodes.getData, buffer(path), bool(watch));
}

export function setRequest(xid: number, path: string, data: Uint8Array): Buffer {
  return request(xid, opcodes.setData, buffer(path), buffer(data), int32(-1));
}

/** A persistent node that everybody may use. */
export function createBody(path: string, data: Uint8Array): Buffer {
  const openAcl = [int32(1), int32(31), buffer('world'), buffer('anyone')];
  return Buffer.concat([buffer(path), buffer(data), ...openAcl, int32(0)]);
}

/** As create2, whose reply has the Stat of the new node. */
export function createRequest(xid: number, path: string, data: Uint8Array): Buffer {
  return request(xid, opcodes.create2, createBody(path, data));
}

export function deleteBody(path: string): Buffer {
  return Buffer.concat([buffer(path), int32(-1)]);
}

export function multiRequest(
  xid: number,
  operations: readonly { readonly opcode: number; readonly body: Uint8Array }[],
): Buffer {
  const header = (opcode: number, done: boolean) => [int32(opcode), bool(done), int32(-1)];
  return request(
    xid,
    opcodes.multi,
    ...operations.flatMap(({ opcode, body }) => [...header(opcode, false), body]),
    ...header(-1, true),
  );
}
