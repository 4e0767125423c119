import { expect, test } from 'vitest';
import { ElectionDirectory } from '../src/backends/file/election-directory.ts';
import type { FileOperations } from '../src/backends/file/file-operations.ts';
import type { Entry } from '../src/backends/file/numbered-records.ts';
import { NumberedRecords } from '../src/backends/file/numbered-records.ts';
import { prune } from '../src/backends/file/pruning.ts';
import { recordNumber } from '../src/backends/file/record-file.ts';
import { intercept, MemoryDisk, systemError } from './support/memory-disk.ts';
import { StepScheduler } from './support/step-scheduler.ts';

const directory = '/store/e';
const forever = new AbortController().signal;

interface Outcome {
  readonly wins: number;
  readonly strays: number;
}

/**
 * Four processes append as fast as they are let, with fewer records kept than in reality so that
 * a stale one soon meets pruned numbers. Fails on the first broken promise.
 */
async function runSchedule(seed: number, faults: boolean): Promise<Outcome> {
  const disk = new MemoryDisk();
  await disk.makeDirectory(directory, true);
  const scheduler = new StepScheduler(seed);
  const { random } = scheduler;
  const everLinked = new Set<number>();
  /** The content of each number, as any process was told. */
  const accepted = new Map<number, string>();
  let newest = 0;
  let wins = 0;
  let strays = 0;

  const learn = (entry: Entry, how: string) => {
    const known = accepted.get(entry.number);
    if (known !== undefined && known !== entry.digest) {
      throw new Error(`seed ${seed}: number ${entry.number} was two records (${how})`);
    }
    accepted.set(entry.number, entry.digest);
    newest = Math.max(newest, entry.number);
  };

  const open = async (files: FileOperations): Promise<NumberedRecords> => {
    const place = new ElectionDirectory(directory, files, undefined);
    await place.open();
    return new NumberedRecords(place, files);
  };

  const withFaults = (step: () => Promise<void>): FileOperations => {
    const fails = (operation: string, path: string, rate: number) => {
      if (faults && random() < rate) throw systemError('EIO', operation, path);
    };
    const stepped = intercept(disk, {
      before: async (operation, path) => {
        await step();
        fails(operation, path, 0.01);
      },
      after: (operation, path) => fails(operation, path, 0.01),
    });
    return {
      ...stepped,
      list: (path) => disk.listSlowly(path, step, () => random() < 0.5),
      async link(existing, path) {
        const linked = await stepped.link(existing, path);
        const number = recordNumber(path.slice(directory.length + 1))!;
        if (linked && everLinked.has(number)) strays += 1;
        if (linked) everLinked.add(number);
        return linked;
      },
    };
  };

  for (let process = 0; process < 4; process += 1) {
    scheduler.spawn(async (step) => {
      const files = withFaults(step);
      let records: NumberedRecords | undefined;
      let seen: Entry | undefined;
      for (let round = 0; round < 14; round += 1) {
        try {
          records ??= await open(files);
          // Sometimes it writes over an entry that it saw long ago.
          if (seen === undefined || random() < 0.8) {
            const atLeast = newest;
            seen = await records.read();
            if ((seen?.number ?? 0) < atLeast) {
              throw new Error(`seed ${seed}: ${seen?.number} was read when ${atLeast} was known`);
            }
            if (seen !== undefined) learn(seen, 'read');
          }
          const won = await records.append(seen, `${process}.${round}`, forever);
          if (won === undefined) continue;
          learn(won, 'won');
          wins += 1;
          seen = won;
          if (won.number % 2 === 0) await prune(directory, files, won.number, 3);
        } catch (error) {
          if (!(error instanceof Error) || !error.message.startsWith('EIO')) throw error;
          // A process that crashed and came back knows nothing.
          if (random() < 0.3) [records, seen] = [undefined, undefined];
        }
      }
    });
  }
  await scheduler.run();

  const survivor = await open(disk);
  const last = await survivor.read();
  if (last !== undefined) learn(last, 'read at the end');
  expect(last?.number ?? 0, `seed ${seed}`).toBeGreaterThanOrEqual(newest);
  expect(await survivor.append(last, 'more', forever), `seed ${seed}`).toBeDefined();
  return { wins, strays };
}

for (const faults of [false, true]) {
  test(`in any order of steps a number has one winner${faults ? ', failing steps included' : ''}`, async () => {
    const firstSeed = Number(process.env['INCUMBENT_FILE_SEED'] ?? 1);
    const seeds = Number(process.env['INCUMBENT_FILE_SEEDS'] ?? 400);
    let wins = 0;
    let strays = 0;
    for (let seed = firstSeed; seed < firstSeed + seeds; seed += 1) {
      const outcome = await runSchedule(seed, faults);
      wins += outcome.wins;
      strays += outcome.strays;
    }
    // Otherwise the schedules were too tame to show anything.
    expect(wins).toBeGreaterThan(seeds * 10);
    expect(strays).toBeGreaterThan(seeds / 20);
  });
}
