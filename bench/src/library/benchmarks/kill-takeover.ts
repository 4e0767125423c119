import { isGroupGone } from '@incumbent/cli/trial';
import type { Benchmark } from '../../benchmark.ts';
import { WrongElectionError } from '../../benchmark.ts';
import { jitter, monotonicMs, sleep } from '../../clock.ts';
import type { Figure } from '../../figure.ts';
import { figureOf } from '../../figure.ts';
import type { Surroundings } from '../../surroundings.ts';
import { TermLog } from '../../term-log.ts';
import { EmptyProcess } from '../empty-process.ts';
import { settled, startCandidate, startPair } from '../library-candidate.ts';
import { RunCandidate, untilGone } from '../run-candidate.ts';
import { WorkerProcess } from '../worker-process.ts';
import type { FromPoller } from '../workers/poller.ts';

const leases = ['3s', '15s'];
const killsPerRound = 2;
const goalMs = 300;
/** A supervisor that waits has its guard started by then. */
const runSettleMs = 500;

interface Series {
  readonly lease: string;
  readonly directory: string;
  readonly terms: TermLog;
  readonly samplesMs: number[];
}

/**
 * A leader is killed while a follower waits. The floor is how fast a process that asks every 100 ms,
 * as a follower does, sees that another one is dead.
 */
export function killTakeover(surroundings: Surroundings): Benchmark {
  const seriesOf = (kind: string) =>
    leases.map(
      (lease): Series => ({
        lease,
        directory: surroundings.newDirectory(),
        terms: new TermLog(`${kind}-${lease}`),
        samplesMs: [],
      }),
    );
  const library = seriesOf('kill');
  const run = seriesOf('kill-run');
  const polledMs: number[] = [];

  /** Each successor is the next victim. */
  async function killLibrary({ lease, directory, terms, samplesMs }: Series): Promise<void> {
    const argument = { directory, election: `kill-${lease}`, lease };
    let { leader, follower, first } = await startPair(surroundings, argument);
    try {
      terms.begins(BigInt(first.token), first.atMs);
      for (let kill = 1; kill <= killsPerRound; kill += 1) {
        const killedAtMs = monotonicMs();
        leader.signal('SIGKILL');
        terms.ends(killedAtMs);
        const { token, atMs } = await follower.next('leading');
        terms.begins(BigInt(token), atMs);
        samplesMs.push(atMs - killedAtMs);
        await leader.kill();
        leader = follower;
        if (kill === killsPerRound) break;
        follower = startCandidate(surroundings, argument);
        await settled(follower);
      }
      leader.order({ do: 'resign' });
      terms.ends((await leader.next('ended')).ledAtMs);
    } finally {
      await Promise.all([leader.kill(), follower.kill()]);
    }
  }

  async function killRun({ lease, directory, terms, samplesMs }: Series): Promise<void> {
    const options = { directory, election: `kill-run-${lease}`, lease };
    const all = [new RunCandidate(surroundings, options)];
    try {
      let [leader] = all as [RunCandidate];
      let program = await leader.program();
      terms.begins(program.token, program.atMs);
      for (let kill = 1; kill <= killsPerRound; kill += 1) {
        const follower = new RunCandidate(surroundings, options);
        all.push(follower);
        await follower.waits();
        await sleep(runSettleMs + jitter(100));
        const killedAtMs = monotonicMs();
        leader.signal('SIGKILL');
        terms.ends(killedAtMs);
        const next = await follower.program();
        if (!isGroupGone(program.pid)) {
          throw new WrongElectionError(
            `${options.election}: the program of term ${next.token} started while that of term ` +
              `${program.token} (pid ${program.pid}) was there`,
          );
        }
        terms.begins(next.token, next.atMs);
        samplesMs.push(next.atMs - killedAtMs);
        leader = follower;
        program = next;
      }
      await leader.finish();
      terms.ends(monotonicMs());
      await untilGone(program);
    } finally {
      await Promise.all(all.map((candidate) => candidate.kill()));
    }
  }

  async function killPolled(): Promise<void> {
    for (let kill = 1; kill <= killsPerRound; kill += 1) {
      const victim = new EmptyProcess(surroundings);
      const poller = new WorkerProcess<FromPoller>(surroundings, 'poller', victim.pid);
      try {
        await poller.next('polling');
        await sleep(200 + jitter(100));
        const killedAtMs = monotonicMs();
        const gone = victim.kill();
        polledMs.push((await poller.next('dead')).atMs - killedAtMs);
        await gone;
      } finally {
        await Promise.all([victim.kill(), poller.kill()]);
      }
    }
  }

  return {
    name: 'kill',
    about: 'takeover after SIGKILL',
    roundsOf: (rounds) => rounds,
    async round() {
      for (const [index, series] of library.entries()) {
        await killLibrary(series);
        await killRun(run[index] as Series);
      }
      await killPolled();
    },
    figures: (): readonly Figure[] => [
      ...library.map(({ lease, samplesMs }) =>
        figureOf('kill', `takeover after SIGKILL, library, D = ${lease}`, 'ms', samplesMs, goalMs),
      ),
      ...run.map(({ lease, samplesMs }) =>
        figureOf('kill', `takeover after SIGKILL, \`run\`, D = ${lease}`, 'ms', samplesMs, goalMs),
      ),
      figureOf('kill', 'floor: seeing a death by asking every 100 ms', 'ms', polledMs),
    ],
  };
}
