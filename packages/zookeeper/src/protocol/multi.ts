/**
 * `multi` and `multiRead`:
 *
 *     multi  = { item } end          item = (type int, done false, error int) body
 *     end    = (-1, true, -1)
 *
 * In a request the body is that of the operation, in a reply that of its reply. An item of a reply
 * that failed has type -1, and its body is the error code. A failed multi has error 0 in its
 * header, so only the items tell.
 *
 * The `flags` decide how a creation is answered, whatever opcode asked for it. It is answered as a
 * create (no Stat), but for containers and nodes with a TTL as a create2.
 */
import { errorCodes, opcodes } from './constants.ts';
import type { Codec, JuteReader, JuteWriter } from './jute.ts';
import { boolean, int32, MalformedError } from './jute.ts';
import type {
  Create2Response,
  CreateRequest,
  CreateTtlRequest,
  GetChildrenResponse,
  GetDataResponse,
  Nothing,
  PathMessage,
  ReadRequest,
  SetDataRequest,
  StatResponse,
  VersionedPath,
} from './messages.ts';
import {
  create2Response,
  createRequest,
  createTtlRequest,
  getChildrenResponse,
  getDataResponse,
  nothing,
  pathMessage,
  readRequest,
  setDataRequest,
  statResponse,
  versionedPath,
} from './messages.ts';

export type MultiOperation =
  | { readonly opcode: typeof opcodes.create; readonly body: CreateRequest }
  | { readonly opcode: typeof opcodes.create2; readonly body: CreateRequest }
  | { readonly opcode: typeof opcodes.createContainer; readonly body: CreateRequest }
  | { readonly opcode: typeof opcodes.createTtl; readonly body: CreateTtlRequest }
  | { readonly opcode: typeof opcodes.delete; readonly body: VersionedPath }
  | { readonly opcode: typeof opcodes.setData; readonly body: SetDataRequest }
  | { readonly opcode: typeof opcodes.check; readonly body: VersionedPath }
  | { readonly opcode: typeof opcodes.getData; readonly body: ReadRequest }
  | { readonly opcode: typeof opcodes.getChildren; readonly body: ReadRequest };

export type MultiResult =
  | { readonly opcode: typeof opcodes.create; readonly body: PathMessage }
  | { readonly opcode: typeof opcodes.create2; readonly body: Create2Response }
  | { readonly opcode: typeof opcodes.createContainer; readonly body: Create2Response }
  | { readonly opcode: typeof opcodes.createTtl; readonly body: Create2Response }
  | { readonly opcode: typeof opcodes.delete; readonly body: Nothing }
  | { readonly opcode: typeof opcodes.setData; readonly body: StatResponse }
  | { readonly opcode: typeof opcodes.check; readonly body: Nothing }
  | { readonly opcode: typeof opcodes.getData; readonly body: GetDataResponse }
  | { readonly opcode: typeof opcodes.getChildren; readonly body: GetChildrenResponse }
  | { readonly opcode: typeof opcodes.error; readonly error: number };

// biome-ignore lint/suspicious/noExplicitAny: each opcode has a body of its own
const requestBodies: ReadonlyMap<number, Codec<any>> = new Map<number, Codec<any>>([
  [opcodes.create, createRequest],
  [opcodes.create2, createRequest],
  [opcodes.createContainer, createRequest],
  [opcodes.createTtl, createTtlRequest],
  [opcodes.delete, versionedPath],
  [opcodes.setData, setDataRequest],
  [opcodes.check, versionedPath],
  [opcodes.getData, readRequest],
  [opcodes.getChildren, readRequest],
]);

// biome-ignore lint/suspicious/noExplicitAny: each opcode has a body of its own
const replyBodies: ReadonlyMap<number, Codec<any>> = new Map<number, Codec<any>>([
  [opcodes.create, pathMessage],
  [opcodes.create2, create2Response],
  [opcodes.createContainer, create2Response],
  [opcodes.createTtl, create2Response],
  [opcodes.delete, nothing],
  [opcodes.setData, statResponse],
  [opcodes.check, nothing],
  [opcodes.getData, getDataResponse],
  [opcodes.getChildren, getChildrenResponse],
]);

export const multiRequest: Codec<readonly MultiOperation[]> = {
  minBytes: 9,
  read(reader) {
    return readItems(reader, (opcode): MultiOperation => {
      const body = bodyOf(requestBodies, opcode).read(reader);
      return { opcode, body } as MultiOperation;
    });
  },
  write(writer, operations) {
    for (const { opcode, body } of operations) {
      writeItemHeader(writer, opcode, false, -1);
      bodyOf(requestBodies, opcode).write(writer, body);
    }
    writeItemHeader(writer, -1, true, -1);
  },
};

export const multiResponse: Codec<readonly MultiResult[]> = {
  minBytes: 9,
  read(reader) {
    return readItems(reader, (opcode): MultiResult => {
      if (opcode === opcodes.error) return { opcode, error: int32.read(reader) };
      return { opcode, body: bodyOf(replyBodies, opcode).read(reader) } as MultiResult;
    });
  },
  write(writer, results) {
    for (const result of results) {
      if (result.opcode === opcodes.error) {
        writeItemHeader(writer, opcodes.error, false, result.error);
        int32.write(writer, result.error);
      } else {
        writeItemHeader(writer, result.opcode, false, errorCodes.ok);
        bodyOf(replyBodies, result.opcode).write(writer, result.body);
      }
    }
    writeItemHeader(writer, -1, true, -1);
  },
};

function readItems<T>(reader: JuteReader, readBody: (opcode: number) => T): readonly T[] {
  const items: T[] = [];
  for (;;) {
    const opcode = int32.read(reader);
    const done = boolean.read(reader);
    int32.read(reader); // The error again, or -1.
    if (done) return items;
    items.push(readBody(opcode));
  }
}

function writeItemHeader(writer: JuteWriter, opcode: number, done: boolean, error: number): void {
  int32.write(writer, opcode);
  boolean.write(writer, done);
  int32.write(writer, error);
}

// biome-ignore lint/suspicious/noExplicitAny: each opcode has a body of its own
function bodyOf(bodies: ReadonlyMap<number, Codec<any>>, opcode: number): Codec<any> {
  const body = bodies.get(opcode);
  if (body === undefined) throw new MalformedError(`opcode ${opcode} cannot stand in a multi`);
  return body;
}
