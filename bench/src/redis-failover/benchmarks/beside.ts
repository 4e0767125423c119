/** The same without us: with Sentinel, and with a move that needs no detection. */
import type { RedisServer } from '@incumbent/servers';
import type { Benchmark } from '../../benchmark.ts';
import { jitter, monotonicMs, sleep } from '../../clock.ts';
import type { Figure } from '../../figure.ts';
import { figureOf } from '../../figure.ts';
import type { Samples } from '../../samples.ts';
import type { Stage } from '../stage.ts';
import { lostOn, startSentinelScene, startSet } from '../stage.ts';

/** Sentinel takes a primary for gone when it was silent for so long. */
export const downAfterMs = 500;

/**
 * One Sentinel, which decides alone, and a client of it. It waits for nobody's view to lapse: a client
 * that is cut off from it goes on with the old primary.
 */
export function sentinel(stage: Stage, samples: Samples): Benchmark {
  let lostWrites = 0;
  return {
    name: 'sentinel',
    about: 'a killed primary, with Sentinel',
    roundsOf: (all) => all,
    async round() {
      for (let i = 0; i < stage.scale.sentinel; i += 1) {
        const { servers, writer, close } = await startSentinelScene(stage, downAfterMs);
        try {
          const primary = servers[0] as RedisServer;
          await sleep(500 + jitter(500));
          const written = writer.call('writesElsewhere', { than: primary.port });
          written.catch(() => {});
          const killedMs = monotonicMs();
          await primary.kill();
          const { atMs, port } = await written;
          samples.add('sentinel', atMs - killedMs);
          const next = servers.find((server) => server.port === port) as RedisServer;
          lostWrites += (await lostOn(next, writer)).lost;
        } finally {
          await close();
        }
      }
    },
    figures(): readonly Figure[] {
      const all = samples.of('sentinel');
      if (all.length === 0) return [];
      const name = `Sentinel, down after ${downAfterMs} ms: first acknowledged write`;
      return [
        figureOf('sentinel', name, 'ms', all),
        figureOf('sentinel', `— acknowledged writes lost in ${all.length}`, '', [lostWrites]),
      ];
    },
  };
}

/** `REPLICAOF NO ONE` on a replica whose primary is killed at that moment, and a write to it. */
export function bare(stage: Stage, samples: Samples): Benchmark {
  return {
    name: 'bare',
    about: 'a killed primary, if everybody knew everything',
    roundsOf: (all) => all,
    async round() {
      const servers = await startSet();
      const [primary, replica, other] = servers as [RedisServer, RedisServer, RedisServer];
      try {
        for (let i = 0; i < stage.scale.bare; i += 1) {
          const killedMs = monotonicMs();
          await primary.kill();
          await replica.command('REPLICAOF', 'NO', 'ONE');
          await other.command('REPLICAOF', '127.0.0.1', replica.port);
          for (;;) {
            // Refused while there is no replica.
            const answer = await replica.command('SET', 'k', i).catch(() => undefined);
            if (answer === 'OK') break;
          }
          samples.add('bare', monotonicMs() - killedMs);
          await primary.start();
          await Promise.all([replica.follow(primary), other.follow(primary)]);
        }
      } finally {
        await Promise.all(servers.map((server) => server.close()));
      }
    },
    figures(): readonly Figure[] {
      const all = samples.of('bare');
      if (all.length === 0) return [];
      return [figureOf('bare', 'floor: REPLICAOF NO ONE at once, and a write', 'ms', all)];
    },
  };
}
