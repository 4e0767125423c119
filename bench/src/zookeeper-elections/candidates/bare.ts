/**
 * A bare socket: the requests of the recipe and nothing else. It shows how much of a hand-over is
 * the machine, Node and the servers.
 */
import { RawSocket, xidOf } from '../../zookeeper/adapters/raw-socket.ts';
import {
  bool,
  buffer,
  createBody,
  deleteBody,
  int32,
  multiRequest,
  opcodes,
  replyBodyAt,
  request,
  xids,
} from '../../zookeeper/wire.ts';
import type { OpenCandidate } from './candidate.ts';
import type { RecipeClient } from './recipe.ts';
import { recipe } from './recipe.ts';

const exists = 3;
const getChildren = 8;
const check = 13;
const noNode = -101;
const nodeExists = -110;
const ephemeralSequential = 3;
const anyVersion = -1;
/** Of the body of a notification: type and state are before it. */
const notifiedPathAt = replyBodyAt + 8;

/** @param checks a winner has the quorum confirm its node before it leads, as ours does */
export function bare(checks: boolean): OpenCandidate {
  return async (port, sessionTimeoutMs) => {
    const { check: confirm, ...client } = await connect(port, sessionTimeoutMs);
    const root = checks ? '/bench-bare-check' : '/bench-bare';
    return recipe(checks ? { ...client, check: confirm } : client, root);
  };
}

/** Also for what only sends checks. */
export interface BareClient extends Required<RecipeClient> {
  /** One multi that checks them all. */
  checkAll(paths: readonly string[]): Promise<void>;
}

export async function connect(port: number, sessionTimeoutMs: number): Promise<BareClient> {
  let xid = 0;
  const waiting: ((reply: Buffer) => void)[] = [];
  const watches = new Map<string, () => void>();
  const raw = new RawSocket({
    port,
    sessionTimeoutMs,
    lastZxid: 0n,
    first: new Uint8Array(0),
    // The measuring process notices: a candidate that has lost its connection never leads.
    onClose: () => process.exit(1),
  });
  raw.onFrame = (bytes, start, end) => {
    const answered = xidOf(bytes, start);
    if (answered === xids.notification) {
      const path = stringAt(bytes, start + notifiedPathAt);
      const changed = watches.get(path);
      watches.delete(path);
      changed?.();
    } else if (answered >= 0) {
      waiting.shift()?.(bytes.subarray(start, end));
    }
  };
  await raw.connected;
  const ping = request(xids.ping, opcodes.ping);
  setInterval(() => raw.socket.write(ping), sessionTimeoutMs / 3).unref();

  const send = (encode: (xid: number) => Uint8Array) =>
    new Promise<Buffer>((resolve) => {
      waiting.push(resolve);
      xid += 1;
      raw.socket.write(encode(xid));
    });
  /** @returns the whole frame @throws Error for an error that is not allowed */
  const call = async (
    opcode: number,
    parts: readonly Uint8Array[],
    allowed?: number,
  ): Promise<{ readonly frame: Buffer; readonly code: number }> => {
    const frame = await send((number) => request(number, opcode, ...parts));
    const code = frame.readInt32BE(replyBodyAt - 4);
    if (code !== 0 && code !== allowed) throw new Error(`reply ${code} to opcode ${opcode}`);
    return { frame, code };
  };
  const none = new Uint8Array(0);

  return {
    async ensure(path) {
      const names = path.split('/').slice(1);
      for (const index of names.keys()) {
        const above = `/${names.slice(0, index + 1).join('/')}`;
        await call(opcodes.create, [createBody(above, none)], nodeExists);
      }
    },
    async enter(prefix) {
      const body = createBody(prefix, none);
      body.writeInt32BE(ephemeralSequential, body.length - 4);
      return stringAt((await call(opcodes.create, [body])).frame, replyBodyAt);
    },
    async children(path) {
      const { frame } = await call(getChildren, [buffer(path), bool(false)]);
      let at = replyBodyAt + 4;
      return Array.from({ length: frame.readInt32BE(replyBodyAt) }, () => {
        const name = stringAt(frame, at);
        at += 4 + name.length;
        return name;
      });
    },
    async watch(path, changed) {
      watches.set(path, changed);
      const { code } = await call(exists, [buffer(path), bool(true)], noNode);
      return code === 0;
    },
    async remove(path) {
      await call(opcodes.delete, [deleteBody(path)]);
    },
    check: (path) => checkAll([path]),
    checkAll,
  };

  async function checkAll(paths: readonly string[]): Promise<void> {
    const operations = paths.map((path) => ({
      opcode: check,
      body: Buffer.concat([buffer(path), int32(anyVersion)]),
    }));
    const frame = await send((number) => multiRequest(number, operations));
    // A refused one has its error within, where its first result has the type -1.
    if (frame.readInt32BE(replyBodyAt) === -1) throw new Error('a check was refused');
  }
}

function stringAt(bytes: Buffer, at: number): string {
  return bytes.toString('utf8', at + 4, at + 4 + bytes.readInt32BE(at));
}
