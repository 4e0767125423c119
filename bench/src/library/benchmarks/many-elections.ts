import type { Benchmark } from '../../benchmark.ts';
import { WrongElectionError } from '../../benchmark.ts';
import type { Figure } from '../../figure.ts';
import { figureOf } from '../../figure.ts';
import type { Surroundings } from '../../surroundings.ts';
import { WorkerProcess } from '../worker-process.ts';
import type { FromManyElections, ManyElectionsArgument } from '../workers/many-elections.ts';
import type { FromTimers } from '../workers/many-timers.ts';

const argument: ManyElectionsArgument = { elections: 10_000, settleMs: 6_000, windowMs: 15_000 };
/** R at the default lease of 15 s. */
const renewEveryMs = 3_000;

/**
 * One process leads 10,000 elections on the memory store. The floor is what Node takes for as many
 * timers, each of which writes into a Map at the same rate.
 */
export function manyElections(surroundings: Surroundings): Benchmark {
  const share: number[] = [];
  const heapKiB: number[] = [];
  const rssKiB: number[] = [];
  const perRenewalMs: number[] = [];
  const floorShare: number[] = [];

  async function elections(): Promise<void> {
    const worker = new WorkerProcess<FromManyElections>(surroundings, 'many-elections', argument, [
      '--expose-gc',
    ]);
    try {
      const result = await worker.next('measured');
      if (result.leading < argument.elections) {
        throw new WrongElectionError(
          `${argument.elections - result.leading} of ${argument.elections} terms were lost`,
        );
      }
      share.push(100 * result.cpuShare);
      heapKiB.push(result.heapBytes / argument.elections / 1024);
      rssKiB.push(result.rssBytes / argument.elections / 1024);
      perRenewalMs.push((result.cpuShare * renewEveryMs) / argument.elections);
    } finally {
      await worker.kill();
    }
  }

  async function timers(): Promise<void> {
    const worker = new WorkerProcess<FromTimers>(surroundings, 'many-timers', {
      timers: argument.elections,
      everyMs: renewEveryMs,
      windowMs: argument.windowMs,
    });
    try {
      floorShare.push(100 * (await worker.next('measured')).cpuShare);
    } finally {
      await worker.kill();
    }
  }

  return {
    name: 'many',
    about: '10,000 elections in one process',
    // A minute each.
    roundsOf: (rounds) => Math.min(3, Math.ceil(rounds / 4)),
    async round() {
      await elections();
      await timers();
    },
    figures: (): readonly Figure[] => [
      figureOf('many', '10,000 elections: CPU', '% of a core', share, 25),
      figureOf('many', '10,000 elections: heap per election', 'KiB', heapKiB, 10),
      figureOf('many', '10,000 elections: resident memory per election', 'KiB', rssKiB),
      figureOf('many', '10,000 elections: CPU time per renewal', 'ms', perRenewalMs),
      figureOf(
        'many',
        'floor: 10,000 timers that write into a Map: CPU',
        '% of a core',
        floorShare,
      ),
    ],
  };
}
