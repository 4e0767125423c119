import type { Benchmark } from '../../benchmark.ts';
import { figureOf } from '../../figure.ts';
import { ratesOf, readCounters } from '../server-counters.ts';
import type { Stage } from '../stage.ts';
import { startMany } from '../stage.ts';

const count = 10_000;
const goalKiB = 8;
/** Long, so that the leader of them all does not take the machine from what is measured. */
const sessionTimeoutMs = 30_000;
const entersWithinMs = 120_000;
/** Each looks once in it whether a notification was lost (`recheck`). */
const windowMs = 30_000;
const measuresWithinMs = 60_000;

/** One process waits in 10,000 elections, on one connection, behind another one that leads them. */
export function joined(stage: Stage): Benchmark {
  const heapKiB: number[] = [];
  const rssKiB: number[] = [];
  const cpu: number[] = [];
  const packets: number[] = [];
  let rounds = 0;

  return {
    name: 'joined',
    about: '10,000 elections joined',
    // A minute each.
    roundsOf: (all) => Math.min(3, all),
    async round() {
      const [server] = await stage.servers('standalone');
      if (server === undefined) throw new Error('there is no server');
      rounds += 1;
      const elections = { prefix: `joined-${rounds}`, count };
      const leader = startMany(stage, 'ours');
      const follower = startMany(stage, 'ours');
      try {
        for (const many of [leader, follower]) {
          await many.call('open', { port: server.port, sessionTimeoutMs });
        }
        await leader.call('lead', elections, entersWithinMs);
        const before = await follower.call('memory', {});
        await follower.call('join', elections, entersWithinMs);
        const after = await follower.call('memory', {});
        heapKiB.push((after.heapBytes - before.heapBytes) / count / 1024);
        rssKiB.push((after.rssBytes - before.rssBytes) / count / 1024);
        const start = await readCounters(server);
        const { share } = await follower.call('cpuShare', { windowMs }, measuresWithinMs);
        packets.push(ratesOf(start, await readCounters(server)).packetsReceived);
        cpu.push(100 * share);
      } finally {
        await Promise.all([leader.kill(), follower.kill()]);
      }
    },
    figures: () => [
      figureOf('joined', '10,000 joined: heap per election', 'KiB', heapKiB, goalKiB),
      figureOf('joined', '10,000 joined: resident memory per election', 'KiB', rssKiB, goalKiB),
      figureOf('joined', '10,000 joined: CPU', '% of a core', cpu),
      figureOf(
        'joined',
        '10,000 joined: packets received, with those of their leader',
        'per s',
        packets,
      ),
    ],
  };
}
