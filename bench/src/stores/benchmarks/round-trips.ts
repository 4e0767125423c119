import type { Meter, Traveller } from '@incumbent/servers';
import { RoundTrips } from '@incumbent/servers';
import type { Benchmark } from '../../benchmark.ts';
import { monotonicMs } from '../../clock.ts';
import { figureOf } from '../../figure.ts';
import { makeSamples } from '../../samples.ts';
import { contenders } from '../messages.ts';
import type { Stage } from '../stage.ts';
import { handOnce, startPair } from './hand-over.ts';

/** Where the store can wake us. */
const goal = 3;

/** How many round trips stand one behind the other in a hand-over: counted by proxies, not timed. */
export function roundTrips(stage: Stage): Benchmark {
  const samples = makeSamples();
  let rounds = 0;
  return {
    name: 'round-trips',
    about: 'round trips of a hand-over',
    roundsOf: () => 1,
    async round() {
      // At first connections are opened and statements prepared.
      const { warmUps, handOvers } = stage.scale.roundTrips;
      await Promise.all(
        stage.names.map(async (name) => {
          const trips = new RoundTrips();
          const travellers = [withLog(trips), withLog(trips)] as const;
          const meters: Meter[] = [];
          for (const traveller of travellers) {
            const meter = await stage.meter(name, traveller);
            if (meter !== undefined) meters.push(meter);
          }
          if (meters.length === 0) return;
          const addresses = meters.map(({ port }) => ({ ...stage.address(name), port }));
          const pair = await startPair(stage, name, rounds, addresses);
          const both = [pair.leader, pair.follower];
          try {
            for (let turn = 0; turn < warmUps + handOvers; turn += 1) {
              const who = pair.follower === both[0] ? 0 : 1;
              const { next } = pair;
              await handOnce(pair, undefined, () => trips.restart());
              const { atMs } = await next;
              if (turn >= warmUps) samples.add(name, travellers[who].takenAt(atMs));
              for (const { forget } of travellers) forget();
            }
          } finally {
            await Promise.all(both.map((candidate) => candidate.kill()));
            await Promise.all(meters.map((meter) => meter.close()));
          }
        }),
      );
      rounds += 1;
    },
    figures: () =>
      stage.names.flatMap((name) => {
        const all = samples.of(name);
        if (all.length === 0) return [];
        const { isOurs, isWoken } = contenders[name];
        const label = `round trips of a hand-over, counted: ${name}`;
        return [figureOf('round-trips', label, '', all, isOurs && isWoken ? goal : undefined)];
      }),
  };
}

/** We hear of the successor's work a moment later, when it has already asked for other things. */
function withLog(trips: RoundTrips): Traveller & {
  /** @param atMs monotonic */
  takenAt(atMs: number): number;
  forget(): void;
} {
  const traveller = trips.traveller();
  let log: { readonly atMs: number; readonly taken: number }[] = [];
  return {
    connected: () => traveller.connected(),
    sent: () => traveller.sent(),
    received() {
      traveller.received();
      log.push({ atMs: monotonicMs(), taken: traveller.taken });
    },
    takenAt: (untilMs) => log.findLast(({ atMs }) => atMs <= untilMs)?.taken ?? 0,
    forget() {
      log = [];
    },
  };
}
