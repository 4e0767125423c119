import type { CandidateName } from '../messages.ts';
import type { Scenario, Stage } from '../scenario.ts';
import { candidatesOf, inSlices, smallNode, withClients } from '../scenario.ts';

const names: readonly CandidateName[] = ['ours', 'NZC', 'native', 'kazoo', 'raw'];
const watchTimes = 100;
/** The native client needs more than a second to close. */
const connectTimes: Readonly<Partial<Record<CandidateName, number>>> = { native: 1, kazoo: 2 };
const defaultConnectTimes = 15;

/** One connection sets a node that another one watches. */
export function watchDelivery(stage: Stage): Scenario {
  const { results, admin, serverPort: port } = stage;
  return {
    name: 'watch',
    about: 'delivery of watches',
    prepare: () => admin.create('/watch'),
    async round(round) {
      const there = candidatesOf(stage, names, round);
      const connect = { port, sessionTimeoutMs: 30_000 };
      await withClients(stage, 'watch', there, connect, async (clients) => {
        await inSlices(stage, 'watch', round, clients, async (name, client, moment) => {
          const params = { port, path: '/watch', times: watchTimes };
          const { p50Ms } = await client.call('watchDelivery', params);
          results.add('watchP50', name, moment, p50Ms * 1e3);
        });
      });
    },
  };
}

/** A new client, a new session, a first get. */
export function connectToReady(stage: Stage): Scenario {
  const { results, serverPort: port } = stage;
  return {
    name: 'connect',
    about: 'connects',
    async round(round) {
      const there = candidatesOf(stage, names, round);
      const connect = { port, sessionTimeoutMs: 30_000 };
      await withClients(stage, 'connect', there, connect, async (clients) => {
        await inSlices(stage, 'connect', round, clients, async (name, client, moment) => {
          const times = connectTimes[name] ?? defaultConnectTimes;
          const { p50Ms } = await client.call('connectToReady', { port, path: smallNode, times });
          results.add('connectP50', name, moment, p50Ms * 1e3);
        });
      });
    },
  };
}
