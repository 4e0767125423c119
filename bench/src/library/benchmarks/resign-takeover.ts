import { closeSync, fsyncSync, linkSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Benchmark } from '../../benchmark.ts';
import { monotonicMs } from '../../clock.ts';
import type { Figure } from '../../figure.ts';
import { figureOf } from '../../figure.ts';
import type { Surroundings } from '../../surroundings.ts';
import { TermLog } from '../../term-log.ts';
import { settled, startPair } from '../library-candidate.ts';
import { WorkerProcess } from '../worker-process.ts';
import type { FromWatcher } from '../workers/directory-watcher.ts';

const election = 'resign';
// A leader that resigned stands aside for a second, so a handover takes longer than its takeover.
const handoversPerRound = 5;
/** Like a record. */
const content = Buffer.alloc(1_000, 'x');

/**
 * Two processes hand the seat to and fro. The floor is what the machine itself takes: a third
 * process that watches a directory, and what one record costs on the disk.
 */
export function resignTakeover(surroundings: Surroundings): Benchmark {
  const directory = surroundings.newDirectory();
  const watched = surroundings.newDirectory();
  const terms = new TermLog(election);
  const fromEndedMs: number[] = [];
  const fromResignMs: number[] = [];
  const watchMs: number[] = [];
  const diskMs: number[] = [];
  let links = 0;

  async function touch(watcher: WorkerProcess<FromWatcher>): Promise<void> {
    links += 1;
    const startMs = monotonicMs();
    const linkedAtMs = writeRecord(watched, String(links));
    diskMs.push(monotonicMs() - startMs);
    const { atMs } = await watcher.next('seen');
    watchMs.push(atMs - linkedAtMs);
  }

  return {
    name: 'resign',
    about: 'takeover after a clean resign',
    roundsOf: (rounds) => rounds,
    async round() {
      const watcher = new WorkerProcess<FromWatcher>(surroundings, 'directory-watcher', watched);
      let { leader, follower, first } = await startPair(surroundings, { directory, election });
      try {
        await watcher.next('watching');
        terms.begins(BigInt(first.token), first.atMs);
        for (let handover = 0; handover < handoversPerRound; handover += 1) {
          await touch(watcher);
          leader.order({ do: 'resign' });
          const { resignedAtMs = Number.NaN, endedAtMs, ledAtMs } = await leader.next('ended');
          const { token, atMs } = await follower.next('leading');
          terms.ends(ledAtMs);
          terms.begins(BigInt(token), atMs);
          fromEndedMs.push(atMs - endedAtMs);
          fromResignMs.push(atMs - resignedAtMs);
          [leader, follower] = [follower, leader];
          follower.order({ do: 'campaign' });
          await settled(follower);
        }
        leader.order({ do: 'resign' });
        terms.ends((await leader.next('ended')).ledAtMs);
      } finally {
        await Promise.all([watcher.kill(), leader.kill(), follower.kill()]);
      }
    },
    figures: (): readonly Figure[] => [
      figureOf('resign', 'takeover after a clean resign, from its end', 'ms', fromEndedMs, 10),
      figureOf(
        'resign',
        'takeover after a clean resign, from the call of `resign()`',
        'ms',
        fromResignMs,
      ),
      figureOf('resign', 'floor: write, fsync, link, fsync of the directory', 'ms', diskMs),
      figureOf('resign', 'floor: `fs.watch` in another process', 'ms', watchMs),
    ],
  };
}

/** As the file store does it. @returns just before it got its name */
function writeRecord(directory: string, name: string): number {
  const temporary = join(directory, `.tmp-${name}`);
  const file = openSync(temporary, 'wx');
  writeSync(file, content);
  fsyncSync(file);
  closeSync(file);
  const linkedAtMs = monotonicMs();
  linkSync(temporary, join(directory, name));
  unlinkSync(temporary);
  const names = openSync(directory, 'r');
  fsyncSync(names);
  closeSync(names);
  return linkedAtMs;
}
