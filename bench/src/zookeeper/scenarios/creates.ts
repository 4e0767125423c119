import { candidateNames } from '../messages.ts';
import type { Scenario, Stage } from '../scenario.ts';
import { candidatesOf, inSlices, withClients } from '../scenario.ts';

const window = 100;
const firstWarmUp = 2_000;
const laterWarmUp = 200;
const operations = 2_000;

/** Persistent nodes of 100 bytes are created in a new directory. */
export function creates(stage: Stage): Scenario {
  const { results, admin, serverPort: port } = stage;
  return {
    name: 'create',
    about: 'creates',
    async round(round) {
      const names = candidatesOf(stage, candidateNames, round);
      const connect = { port, sessionTimeoutMs: 30_000 };
      await withClients(stage, 'create', names, connect, async (clients) => {
        await inSlices(stage, 'create', round, clients, async (name, client, moment, first) => {
          const warmUp = first ? firstWarmUp : laterWarmUp;
          const parent = `/create-${moment}-${name}`;
          await admin.create(parent);
          const params = { parent, window, warmUp, operations };
          const { perS, cpuUs } = await client.call('creates', params);
          results.add('createCpu', name, moment, cpuUs);
          results.add('createRate', name, moment, perS);
          await admin.deleteNumbered(parent, warmUp + operations);
        });
      });
    },
  };
}
