import type { Benchmark } from '../../benchmark.ts';
import type { Figure } from '../../figure.ts';
import { figureOf } from '../../figure.ts';
import type { Surroundings } from '../../surroundings.ts';
import { startCandidate } from '../library-candidate.ts';
import { WorkerProcess } from '../worker-process.ts';
import type { FollowersArgument, FromFollowers } from '../workers/followers.ts';

const windowMs = 30_000;
const crowd = 20;

interface Series {
  readonly followers: number;
  readonly cpu: number[];
  readonly readsPerSecond: number[];
  readonly proofsPerSecond: number[];
}

/** Followers that wait, at default timing, while a leader in another process renews. */
export function idleFollowers(surroundings: Surroundings): Benchmark {
  const directory = surroundings.newDirectory();
  const series = [1, crowd].map(
    (followers): Series => ({ followers, cpu: [], readsPerSecond: [], proofsPerSecond: [] }),
  );

  return {
    name: 'idle',
    about: 'followers that wait',
    // Half a minute each.
    roundsOf: (rounds) => Math.min(2, Math.ceil(rounds / 5)),
    async round() {
      const leader = startCandidate(surroundings, { directory, election: 'idle' });
      const workers: WorkerProcess<FromFollowers>[] = [];
      try {
        await leader.next('leading');
        // All wait at once: they hardly take anything from each other.
        const results = series.map(({ followers }) => {
          const argument: FollowersArgument = { directory, election: 'idle', followers, windowMs };
          const worker = new WorkerProcess<FromFollowers>(surroundings, 'followers', argument);
          workers.push(worker);
          return worker.next('measured', 2 * windowMs);
        });
        for (const [index, result] of (await Promise.all(results)).entries()) {
          const { followers, cpu, readsPerSecond, proofsPerSecond } = series[index] as Series;
          const perFollowerAndSecond = 1e3 / windowMs / followers;
          cpu.push(100 * result.cpuShare);
          readsPerSecond.push(result.reads * perFollowerAndSecond);
          proofsPerSecond.push(result.proofs * perFollowerAndSecond);
        }
        if (leader.hasSaid('ended')) throw new Error('the leader lost its term');
      } finally {
        await Promise.all([leader.kill(), ...workers.map((worker) => worker.kill())]);
      }
    },
    figures: (): readonly Figure[] =>
      series.flatMap(({ followers, cpu, readsPerSecond, proofsPerSecond }) => {
        const who = followers === 1 ? '1 idle follower' : `${followers} idle followers`;
        return [
          figureOf('idle', `${who}: CPU`, '% of a core', cpu),
          figureOf('idle', `${who}: reads of the store, each`, 'per s', readsPerSecond),
          figureOf('idle', `${who}: proofs of death tried, each`, 'per s', proofsPerSecond),
        ];
      }),
  };
}
