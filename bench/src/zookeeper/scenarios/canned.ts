import { fileURLToPath } from 'node:url';
import { Remote } from '../../calls/remote.ts';
import { monotonicMs } from '../../clock.ts';
import type { ResponderMethods } from '../messages.ts';
import { candidateNames } from '../messages.ts';
import type { Scenario, Stage } from '../scenario.ts';
import { candidatesOf, inSlices, smallNode, withClients } from '../scenario.ts';
import { firstWarmUpMs, laterWarmUpMs, measureMs } from './gets.ts';

const windows = [
  { window: 100, cpu: 'canned100Cpu', rate: 'canned100Rate', responder: 'canned100Responder' },
  { window: 1000, cpu: 'canned1000Cpu', rate: 'canned1000Rate', responder: 'canned1000Responder' },
] as const;

/** The same gets, from a process that answers faster than any client asks. */
export function canned(stage: Stage): Scenario {
  const { results, surroundings } = stage;
  const file = fileURLToPath(new URL('../workers/canned-responder.js', import.meta.url));

  async function measure(round: number, responder: Remote<ResponderMethods>): Promise<void> {
    const { port } = await responder.call('hello', {});
    const names = candidatesOf(stage, candidateNames, round);
    await withClients(
      stage,
      'canned',
      names,
      { port, sessionTimeoutMs: 30_000 },
      async (clients) => {
        for (const { window, cpu, rate, responder: share } of windows) {
          await inSlices(stage, 'canned', round, clients, async (name, client, moment, first) => {
            const warmUpMs = first ? firstWarmUpMs : laterWarmUpMs;
            const before = await responder.call('cpu', {});
            const startMs = monotonicMs();
            const params = { path: smallNode, window, warmUpMs, measureMs };
            const { perS, cpuUs } = await client.call('gets', params);
            const usedMs = ((await responder.call('cpu', {})).us - before.us) / 1e3;
            results.add(share, name, moment, (100 * usedMs) / (monotonicMs() - startMs));
            results.add(cpu, name, moment, cpuUs);
            results.add(rate, name, moment, perS);
          });
        }
      },
    );
  }

  return {
    name: 'canned',
    about: 'gets from a canned responder',
    async round(round) {
      const command = [process.execPath, file];
      const responder = new Remote<ResponderMethods>(surroundings, 'responder', command);
      try {
        await measure(round, responder);
      } finally {
        await responder.kill();
      }
    },
  };
}
