import { redis } from 'incumbent/redis';
import { Redis } from 'ioredis';
import type { OpenContender } from './contender.ts';
import { probeName, probeText } from './contender.ts';
import { ours } from './ours.ts';

export const open: OpenContender = async ({ port }, leaseMs) => {
  const client = new Redis({ host: '127.0.0.1', port });
  client.on('error', () => {});
  const subscriber = client.duplicate({ lazyConnect: true });
  subscriber.on('error', () => {});
  return ours(
    redis(client),
    { lease: leaseMs },
    {
      read: () => client.get(probeName),
      write: () => client.set(probeName, probeText),
      wake: (topic) => client.multi().set(probeName, probeText).publish(topic, '').exec(),
      async listen(topic, onWoken) {
        if (subscriber.status === 'wait') await subscriber.connect();
        subscriber.once('message', onWoken);
        await subscriber.subscribe(topic);
      },
    },
  );
};
