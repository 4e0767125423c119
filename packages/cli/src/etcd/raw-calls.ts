import type { Client, Metadata } from '@grpc/grpc-js';
import type { EtcdConnections } from './connect.ts';

/** Calls that elections have no need of. Their messages are so small that they are written by hand. */

const callMs = 5_000;

/** Whether a cluster that we have not logged in to wants to know users. */
export async function wantsUsers(client: Client, key: string): Promise<boolean> {
  try {
    await call(client, '/etcdserverpb.KV/Range', field(1, key));
    return false;
  } catch (error) {
    // Any other error comes again in the operation that depends on it, and is reported there.
    return /user name is empty/i.test(error instanceof Error ? error.message : '');
  }
}

/** Deletes one key. */
export async function deleteKey(
  connections: Pick<EtcdConnections, 'clients' | 'auth'>,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  await callOne(connections, '/etcdserverpb.KV/DeleteRange', field(1, key), signal);
}

/** To whichever member answers first, as the user that we are. */
async function callOne(
  { clients, auth }: Pick<EtcdConnections, 'clients' | 'auth'>,
  path: string,
  request: Buffer,
  signal: AbortSignal,
): Promise<Buffer> {
  let failure: unknown;
  for (const client of clients) {
    signal.throwIfAborted();
    try {
      const metadata = auth && new auth.Metadata();
      if (auth !== undefined) {
        const { user, password } = auth;
        const login = Buffer.concat([field(1, user), field(2, password)]);
        const answer = await call(client, '/etcdserverpb.Auth/Authenticate', login);
        metadata?.set('token', textField(answer, 2));
      }
      return await call(client, path, request, metadata as Metadata | undefined);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

function call(client: Client, path: string, request: Buffer, metadata?: Metadata): Promise<Buffer> {
  const same = (bytes: Buffer) => bytes;
  const options = { deadline: Date.now() + callMs };
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, answer?: Buffer) => {
      if (error !== null || answer === undefined) reject(error ?? new Error('no answer'));
      else resolve(answer);
    };
    if (metadata === undefined) {
      client.makeUnaryRequest(path, same, same, request, options, done);
    } else client.makeUnaryRequest(path, same, same, request, metadata, options, done);
  });
}

/** A field of protocol buffers that has a length: text or bytes. */
function field(number: number, text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.from([(number << 3) | 2]), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let left = value; ; left = Math.floor(left / 128)) {
    if (left < 128) return Buffer.from([...bytes, left]);
    bytes.push((left % 128) | 128);
  }
}

function textField(message: Buffer, wanted: number): string {
  return fieldsOf(message, wanted)[0]?.toString('utf8') ?? '';
}

/** Those of that number that have a length, in a message of such fields and of whole numbers. */
function fieldsOf(message: Buffer, wanted: number): Buffer[] {
  const found: Buffer[] = [];
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let shift = 1; at < message.length; shift *= 128) {
      const byte = message[at] ?? 0;
      at += 1;
      value += (byte & 127) * shift;
      if (byte < 128) break;
    }
    return value;
  };
  while (at < message.length) {
    const tag = next();
    const value = next();
    if ((tag & 7) !== 2) continue;
    if (tag >> 3 === wanted) found.push(message.subarray(at, at + value));
    at += value;
  }
  return found;
}
