import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isGroupGone } from '@incumbent/cli/trial';
import type { Benchmark } from '../../benchmark.ts';
import { WrongElectionError } from '../../benchmark.ts';
import { jitter, monotonicMs, sleep } from '../../clock.ts';
import type { Figure } from '../../figure.ts';
import { figureOf } from '../../figure.ts';
import type { Surroundings } from '../../surroundings.ts';
import { TermLog } from '../../term-log.ts';
import { settled, startPair } from '../library-candidate.ts';
import { RunCandidate, untilGone } from '../run-candidate.ts';

/** The shortest that `run` takes. */
const leaseMs = 2_000;
const lease = `${leaseMs}ms`;
const renewEveryMs = leaseMs / 5;
const goal = 1.15;
/** Whatever a process that is awake again would do wrong, it does by then. */
const resurrectWithinMs = 700;

/** Both in leases. */
interface Series {
  readonly directory: string;
  readonly terms: TermLog;
  readonly fromStop: number[];
  readonly fromRenewal: number[];
}

/**
 * A leader is frozen while a follower waits, and goes on when the follower leads. The lease counts
 * from the last renewal that the follower saw, up to R = D/5 before the freeze. So the time is
 * given from both.
 */
export function freezeTakeover(surroundings: Surroundings): Benchmark {
  const seriesOf = (election: string): Series => ({
    directory: surroundings.newDirectory(),
    terms: new TermLog(election),
    fromStop: [],
    fromRenewal: [],
  });
  const library = seriesOf('freeze');
  const run = seriesOf('freeze-run');

  async function freezeLibrary({ directory, terms, fromStop, fromRenewal }: Series) {
    const argument = { directory, election: 'freeze', lease, noteEveryMs: 20 };
    const { leader, follower, first } = await startPair(surroundings, argument);
    try {
      terms.begins(BigInt(first.token), first.atMs);
      await sleep(jitter(renewEveryMs));
      const stoppedAtMs = monotonicMs();
      leader.signal('SIGSTOP');
      const renewedAtMs = await lastWriteMs(join(directory, 'freeze'));
      const { token, atMs } = await follower.next('leading');
      leader.signal('SIGCONT');
      const { ledAtMs } = await leader.next('ended');
      terms.ends(ledAtMs);
      terms.begins(BigInt(token), atMs);
      fromStop.push((atMs - stoppedAtMs) / leaseMs);
      fromRenewal.push((atMs - renewedAtMs) / leaseMs);
      // It competes again, and must wait.
      leader.order({ do: 'campaign' });
      await settled(leader);
      if (leader.hasSaid('leading')) {
        throw new WrongElectionError('freeze: the frozen leader leads again beside its successor');
      }
      follower.order({ do: 'resign' });
      terms.ends((await follower.next('ended')).ledAtMs);
      const again = await leader.next('leading');
      terms.begins(BigInt(again.token), again.atMs);
      leader.order({ do: 'resign' });
      terms.ends((await leader.next('ended')).ledAtMs);
    } finally {
      await Promise.all([leader.kill(), follower.kill()]);
    }
  }

  async function freezeRun({ directory, terms, fromStop, fromRenewal }: Series): Promise<void> {
    const options = { directory, election: 'freeze-run', lease };
    const leader = new RunCandidate(surroundings, options);
    const all = [leader];
    try {
      const program = await leader.program();
      terms.begins(program.token, program.atMs);
      const follower = new RunCandidate(surroundings, options);
      all.push(follower);
      await follower.waits();
      await sleep(2 * renewEveryMs + jitter(renewEveryMs));
      const stoppedAtMs = monotonicMs();
      leader.signal('SIGSTOP');
      const renewedAtMs = await lastWriteMs(join(directory, 'freeze-run'));
      const next = await follower.program();
      const isGone = isGroupGone(program.pid);
      terms.ends(stoppedAtMs);
      terms.begins(next.token, next.atMs);
      fromStop.push((next.atMs - stoppedAtMs) / leaseMs);
      fromRenewal.push((next.atMs - renewedAtMs) / leaseMs);
      leader.signal('SIGCONT');
      await sleep(resurrectWithinMs);
      if (!isGone || leader.hasStartedAnother) {
        throw new WrongElectionError(
          `freeze-run: the program of term ${program.token} ${isGone ? 'came back' : 'was there'} ` +
            `while that of term ${next.token} ran`,
        );
      }
      await leader.kill();
      await follower.finish();
      terms.ends(monotonicMs());
      await untilGone(next);
    } finally {
      await Promise.all(all.map((candidate) => candidate.kill()));
    }
  }

  return {
    name: 'freeze',
    about: 'takeover after SIGSTOP',
    roundsOf: (rounds) => rounds,
    async round() {
      // Nearly all of it is waiting.
      await Promise.all([freezeLibrary(library), freezeRun(run)]);
    },
    figures: (): readonly Figure[] =>
      (
        [
          ['library', library],
          ['`run`', run],
        ] as const
      ).flatMap(([what, { fromStop, fromRenewal }]) => [
        figureOf(
          'freeze',
          `takeover after SIGSTOP, ${what}, from the last renewal`,
          '× D',
          fromRenewal,
          goal,
        ),
        figureOf('freeze', `takeover after SIGSTOP, ${what}, from the stop`, '× D', fromStop, goal),
      ]),
  };
}

/**
 * The time of the newest record of a leader that was just frozen. The follower sees that record
 * even if the leader was frozen before it learnt of its own success. The clock of the file system
 * ticks every few ms.
 */
async function lastWriteMs(directory: string): Promise<number> {
  // A thread of the frozen process may be about to come out of its system call.
  await sleep(50);
  const modified = readdirSync(directory)
    .filter((name) => /^\d+$/.test(name))
    .map((name) => statSync(join(directory, name)).mtimeMs);
  return Math.max(...modified) - Date.now() + monotonicMs();
}
