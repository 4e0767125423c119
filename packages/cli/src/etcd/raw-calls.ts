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
    // Whatever else is the matter is told by whoever needs it.
    return /user name is empty/i.test(error instanceof Error ? error.message : '');
  }
}

/** Deletes one key. */
export async function deleteKey(
  { clients, auth }: Pick<EtcdConnections, 'clients' | 'auth'>,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  let failure: unknown;
  for (const client of clients) {
    signal.throwIfAborted();
    try {
      const metadata = auth && new auth.Metadata();
      if (auth !== undefined) {
        const { user, password } = auth;
        const request = Buffer.concat([field(1, user), field(2, password)]);
        const answer = await call(client, '/etcdserverpb.Auth/Authenticate', request);
        metadata?.set('token', textField(answer, 2));
      }
      const request = field(1, key);
      await call(client, '/etcdserverpb.KV/DeleteRange', request, metadata as Metadata | undefined);
      return;
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

/** Of an answer whose fields all have a length. */
function textField(message: Buffer, wanted: number): string {
  for (let at = 0; at < message.length; ) {
    const number = (message[at] ?? 0) >> 3;
    let length = 0;
    let shift = 1;
    for (at += 1; ; at += 1, shift *= 128) {
      const byte = message[at] ?? 0;
      length += (byte & 127) * shift;
      if (byte < 128) break;
    }
    const from = at + 1;
    if (number === wanted) return message.toString('utf8', from, from + length);
    at = from + length;
  }
  return '';
}
