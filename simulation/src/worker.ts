/** Runs seeds in a thread of its own. */
import { parentPort, workerData } from 'node:worker_threads';
import { loadLibrary } from './library.ts';
import type { Mechanism } from './run-seed.ts';
import { runSeed } from './run-seed.ts';
import type { SeedResult } from './simulation.ts';

export interface Job {
  readonly mechanism: Mechanism;
  readonly from: number;
  readonly seeds: number;
  /** Go no further than the first violation. */
  readonly stopAtFirst: boolean;
  /** Guarantees that are not judged. */
  readonly ignored?: readonly string[];
}

export interface Report {
  readonly seeds: number;
  readonly failed: readonly SeedResult[];
  readonly events: number;
  readonly virtualMs: number;
  readonly coverage: readonly (readonly [string, number])[];
}

const library = await loadLibrary((workerData as { readonly library: string }).library);

parentPort?.on('message', (job: Job) => {
  void perform(job).then((report) => parentPort?.postMessage(report));
});

async function perform({ mechanism, from, seeds, stopAtFirst, ignored }: Job): Promise<Report> {
  const failed: SeedResult[] = [];
  const counts = new Map<string, number>();
  let done = 0;
  let events = 0;
  let virtualMs = 0;
  for (let seed = from; seed < from + seeds; seed += 1) {
    const result = await runSeed(library, seed, false, mechanism, ignored);
    done += 1;
    events += result.events;
    virtualMs += result.virtualMs;
    for (const [what, times] of result.coverage) counts.set(what, (counts.get(what) ?? 0) + times);
    if (result.violation === undefined) continue;
    failed.push(await replay(result, mechanism, ignored));
    if (stopAtFirst) break;
  }
  return { seeds: done, failed, events, virtualMs, coverage: [...counts] };
}

/** The same seed again, for somebody to read; it has to take the same course. */
async function replay(
  result: SeedResult,
  mechanism: Mechanism,
  ignored?: readonly string[],
): Promise<SeedResult> {
  const again = await runSeed(library, result.seed, true, mechanism, ignored);
  if (again.hash === result.hash) return again;
  return {
    ...again,
    violation: {
      guarantee: 'replay',
      atMs: again.virtualMs,
      message:
        `seed ${result.seed} took another course the second time (${result.hash}, ${again.hash}); ` +
        `the first time: ${result.violation?.guarantee}: ${result.violation?.message}`,
    },
  };
}
