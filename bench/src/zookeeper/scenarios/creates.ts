import { candidateNames } from '../messages.ts';
import type { Scenario, Stage } from '../scenario.ts';
import { candidatesOf, eachInTurn, withClients } from '../scenario.ts';

const window = 100;
const warmUp = 2_000;
const operations = 4_000;

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
        await eachInTurn(stage, 'create', clients, async (name, client) => {
          const parent = `/create-${round}-${name}`;
          await admin.create(parent);
          const params = { parent, window, warmUp, operations };
          const { perS, cpuUs } = await client.call('creates', params);
          results.add('createCpu', name, round, cpuUs);
          results.add('createRate', name, round, perS);
          await admin.deleteNumbered(parent, warmUp + operations);
        });
      });
    },
  };
}
