import type { RedisServer } from '@incumbent/servers';
import type { Benchmark } from '../../benchmark.ts';
import { jitter, sleep } from '../../clock.ts';
import { figureOf } from '../../figure.ts';
import { makeSamples } from '../../samples.ts';
import type { Stage } from '../stage.ts';
import { lostOn, startScene } from '../stage.ts';

/** Until every pause of a writer is over that a failover has caused. */
const aftermathMs = 500;
const undisturbedMs = 1_000;

/** A client asks for another primary while it writes all the time. */
export function planned(stage: Stage): Benchmark {
  const samples = makeSamples();
  const totals = { failovers: 0, lost: 0, failed: 0 };
  return {
    name: 'planned',
    about: 'the primary is moved on request, and how long a writer has to wait',
    roundsOf: (all) => all,
    async round() {
      const scene = await startScene(stage);
      const { servers, writer } = scene;
      try {
        let primary = servers[0] as RedisServer;
        for (let i = 0; i < stage.scale.planned; i += 1) {
          await scene.formed(primary);
          await sleep(undisturbedMs + jitter(500));
          const next = servers[(servers.indexOf(primary) + 1) % servers.length] as RedisServer;
          const { askedMs, answeredMs } = await writer.call('failover', { port: next.port });
          await sleep(aftermathMs);
          const during = { fromMs: askedMs, toMs: answeredMs + aftermathMs };
          const before = { fromMs: askedMs - undisturbedMs, toMs: askedMs };
          samples.add('pause', (await writer.call('longestPause', during)).ms);
          samples.add('undisturbed', (await writer.call('longestPause', before)).ms);
          samples.add('answered', answeredMs - askedMs);
          totals.failovers += 1;
          primary = next;
        }
        const { lost, failed } = await lostOn(primary, writer);
        totals.lost += lost;
        totals.failed += failed;
      } finally {
        await scene.close();
      }
    },
    figures() {
      if (totals.failovers === 0) return [];
      const in_ = `in ${totals.failovers} planned failovers`;
      return [
        figureOf(
          'planned',
          'planned failover: longest pause of the writer',
          'ms',
          samples.of('pause'),
        ),
        figureOf('planned', '— the same before it was asked for', 'ms', samples.of('undisturbed')),
        figureOf('planned', '— until it is acknowledged', 'ms', samples.of('answered')),
        figureOf('planned', `acknowledged writes lost ${in_}`, '', [totals.lost], 0),
        figureOf('planned', `writes that failed ${in_}`, '', [totals.failed], 0),
      ];
    },
    troubles: () => (totals.lost === 0 ? [] : [`${totals.lost} acknowledged writes are lost`]),
  };
}
