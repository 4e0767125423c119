import { Client, credentials } from '@grpc/grpc-js';
import { etcd } from 'incumbent/etcd';
import type { OpenContender } from './contender.ts';
import { probeName, probeText } from './contender.ts';
import { ours } from './ours.ts';

export const open: OpenContender = async ({ port }, leaseMs) => {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const asIs = (bytes: Buffer) => bytes;
  const call = (method: string, message: Buffer) =>
    new Promise<void>((resolve, reject) => {
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
    {
      read: () => call('Range', key),
      write: () => call('Put', put),
      wake: (topic) => call('Put', Buffer.concat([field(1, topic), field(2, probeText)])),
      listen: (topic, onWoken) =>
        new Promise<void>((resolve) => {
          const watch = client.makeBidiStreamRequest('/etcdserverpb.Watch/Watch', asIs, asIs);
          watch.on('error', () => {});
          watch.once('data', () => {
            // It is made. The next message is the event.
            resolve();
            watch.once('data', () => {
              onWoken();
              watch.cancel();
            });
          });
          watch.write(field(1, field(1, topic)));
        }),
    },
  );
};

/** A string, or a message, of less than 16 KiB as a field of a message. */
function field(number: number, content: string | Buffer): Buffer {
  const bytes = Buffer.from(content);
  const { length } = bytes;
  const size = length < 0x80 ? [length] : [(length & 0x7f) | 0x80, length >> 7];
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...size]), bytes]);
}
