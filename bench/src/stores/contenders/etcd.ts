import { Client, credentials } from '@grpc/grpc-js';
import { etcd } from 'incumbent/etcd';
import type { OpenContender } from './contender.ts';
import { probeName, probeText } from './contender.ts';
import { ours } from './ours.ts';

export const open: OpenContender = async ({ port }, leaseMs) => {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const call = (method: string, message: Buffer) =>
    new Promise<void>((resolve, reject) => {
      const asIs = (bytes: Buffer) => bytes;
      client.makeUnaryRequest(`/etcdserverpb.KV/${method}`, asIs, asIs, message, (error) => {
        if (error === null) resolve();
        else reject(error);
      });
    });
  const key = field(1, probeName);
  const put = Buffer.concat([key, field(2, probeText)]);
  return ours(
    etcd(client, { ttl: leaseMs }),
    {},
    { read: () => call('Range', key), write: () => call('Put', put) },
  );
};

/** A string of less than 16 KiB as a field of a message. */
function field(number: number, text: string): Buffer {
  const bytes = Buffer.from(text);
  const { length } = bytes;
  const size = length < 0x80 ? [length] : [(length & 0x7f) | 0x80, length >> 7];
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...size]), bytes]);
}
