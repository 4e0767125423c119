import { redis } from 'incumbent/redis';
import { createClient } from 'redis';
import type { OpenContender } from './contender.ts';
import { probeName, probeText } from './contender.ts';
import { ours } from './ours.ts';

export const open: OpenContender = async ({ port }, leaseMs) => {
  const client = createClient({ socket: { host: '127.0.0.1', port } });
  client.on('error', () => {});
  await client.connect();
  const subscriber = client.duplicate();
  subscriber.on('error', () => {});
  return ours(
    redis(client),
    { lease: leaseMs },
    {
      read: () => client.get(probeName),
      write: () => client.set(probeName, probeText),
      wake: (topic) => client.multi().set(probeName, probeText).publish(topic, '').exec(),
      async listen(topic, onWoken) {
        if (!subscriber.isOpen) await subscriber.connect();
        await subscriber.subscribe(topic, onWoken);
      },
    },
  );
};
