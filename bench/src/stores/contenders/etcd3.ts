/** The Election of the package `etcd3`, as its documentation shows it. */
import { Etcd3 } from 'etcd3';
import type { OpenContender } from './contender.ts';
import { probeName, probeText } from './contender.ts';

export const open: OpenContender = async ({ port }, leaseMs) => {
  const client = new Etcd3({ hosts: `http://127.0.0.1:${port}` });
  return {
    async campaign(name) {
      const campaign = client.election(name, leaseMs / 1_000).campaign(String(process.pid));
      let isOver = false;
      const listeners: (() => void)[] = [];
      const end = () => {
        isOver = true;
        for (const listener of listeners) listener();
      };
      await campaign.wait();
      campaign.on('error', end);
      return {
        token: null,
        isLeading: () => !isOver,
        async resign() {
          await campaign.resign();
          end();
        },
        onEnd: (listener) => listeners.push(listener),
      };
    },
    probe: {
      read: async () => client.get(probeName),
      write: async () => client.put(probeName).value(probeText),
    },
  };
};
