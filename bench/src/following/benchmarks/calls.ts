import type { Benchmark } from '../../benchmark.ts';
import { figureOf, median, p99Of } from '../../figure.ts';
import { makeSamples } from '../../samples.ts';
import type { CallerName, Transport } from '../messages.ts';
import { transports } from '../messages.ts';
import type { Stage } from '../stage.ts';
import { startScene } from '../stage.ts';

const names: Readonly<Record<Transport, string>> = { grpc: 'gRPC', http: 'HTTP' };
const callers = ['following', 'static'] as const satisfies readonly CallerName[];
const whos: Readonly<Record<(typeof callers)[number], string>> = {
  following: 'to the leader, checked there',
  static: 'floor, to an address, unchecked',
};
const leadsWithinMs = 60_000;
/** Both in turn, so many at a time. */
const bunch = 50;

/**
 * The cost of a call while nothing changes. Calls follow one another, beside the same calls to a
 * fixed address.
 */
export function calls(stage: Stage): Benchmark {
  const samples = makeSamples();
  let rounds = 0;
  return {
    name: 'calls',
    about: 'calls while nothing changes',
    roundsOf: (all) => all,
    async round() {
      const { warmUps, perRound } = stage.scale.calls;
      const scene = await startScene(stage, `calls-${rounds}`);
      rounds += 1;
      try {
        const [{ process: leader, ports }] = scene.services;
        await leader.call('campaign', {}, leadsWithinMs);
        for (const transport of transports) {
          const own = makeSamples();
          const call = async (caller: (typeof callers)[number], times: number) =>
            (await scene.follower.call('calls', { transport, caller, ports, times })).ms;
          for (const caller of callers) await call(caller, warmUps);
          for (let i = 0; i < perRound; i += bunch) {
            for (const caller of callers) own.add(caller, ...(await call(caller, bunch)));
          }
          for (const caller of callers) samples.add(`${transport} ${caller}`, ...own.of(caller));
          const [ours, floor] = callers.map((caller) => median(own.of(caller)));
          samples.add(transport, (ours ?? 0) / (floor ?? 0));
        }
      } finally {
        await scene.close();
      }
    },
    figures: () =>
      transports.flatMap((transport) => [
        ...callers.flatMap((caller) => {
          const label = `a call: ${names[transport]}: ${whos[caller]}`;
          const all = samples.of(`${transport} ${caller}`);
          return [figureOf('calls', label, 'ms', all), p99Of('calls', label, 'ms', all)];
        }),
        figureOf(
          'calls',
          `a call: ${names[transport]}, beside that floor`,
          '×',
          samples.of(transport),
        ),
      ]),
  };
}
