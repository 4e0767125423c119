import { candidateNames } from '../messages.ts';
import type { MetricId } from '../metrics.ts';
import type { Scenario, Stage } from '../scenario.ts';
import { candidatesOf, inSlices, smallNode, withClients } from '../scenario.ts';

export const firstWarmUpMs = 400;
export const laterWarmUpMs = 50;
export const measureMs = 250;

const windows: readonly { window: number; cpu: MetricId; rate?: MetricId; p50?: MetricId }[] = [
  { window: 1, cpu: 'get1Cpu', p50: 'get1P50' },
  { window: 100, cpu: 'get100Cpu', rate: 'get100Rate' },
  { window: 1000, cpu: 'get1000Cpu', rate: 'get1000Rate' },
];

/** One node of 100 bytes is read from the real server. */
export function gets(stage: Stage): Scenario {
  const { results, serverPort: port } = stage;
  return {
    name: 'get',
    about: 'gets from the real server',
    async round(round) {
      const names = candidatesOf(stage, candidateNames, round);
      const connect = { port, sessionTimeoutMs: 30_000 };
      await withClients(stage, 'get', names, connect, async (clients) => {
        for (const { window, cpu, rate, p50 } of windows) {
          await inSlices(stage, 'get', round, clients, async (name, client, moment, first) => {
            const warmUpMs = first ? firstWarmUpMs : laterWarmUpMs;
            const params = { path: smallNode, window, warmUpMs, measureMs };
            const { perS, cpuUs, p50Ms } = await client.call('gets', params);
            results.add(cpu, name, moment, cpuUs);
            if (rate !== undefined) results.add(rate, name, moment, perS);
            if (p50 !== undefined && p50Ms !== null) results.add(p50, name, moment, p50Ms * 1e3);
          });
        }
      });
    },
  };
}
