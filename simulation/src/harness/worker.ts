/** Runs seeds in a thread of its own. */
import { parentPort, workerData } from 'node:worker_threads';
import { mechanismNamed } from '../mechanisms.ts';
import { runInBackground } from './background.ts';
import { Coverage } from './coverage.ts';
import type { Prepare } from './mechanism.ts';
import type { Copies } from './packages.ts';
import { distOf } from './packages.ts';
import type { SeedResult } from './run-seed.ts';
import { runSeed } from './run-seed.ts';

export interface WorkerData {
  readonly copies: Copies;
  readonly isBackground: boolean;
}

export interface Job {
  readonly mechanism: string;
  readonly from: number;
  readonly seeds: number;
  /** Go no further than the first violation. */
  readonly stopAtFirst: boolean;
  /** Guarantees that are not judged. */
  readonly ignored?: readonly string[];
}

export interface Report {
  readonly hashes: readonly { readonly seed: number; readonly hash: string }[];
  readonly failed: readonly SeedResult[];
  readonly events: number;
  readonly virtualMs: number;
  readonly coverage: readonly (readonly [string, number])[];
}

const { copies, isBackground } = (workerData ?? {}) as Partial<WorkerData>;
if (isBackground) runInBackground();

const loaded = new Map<string, Promise<Prepare>>();

parentPort?.on('message', (job: Job) => {
  void perform(job).then((report) => parentPort?.postMessage(report));
});

async function perform({
  mechanism,
  from,
  seeds,
  stopAtFirst,
  ignored = [],
}: Job): Promise<Report> {
  const prepare = await load(mechanism);
  const hashes: { seed: number; hash: string }[] = [];
  const failed: SeedResult[] = [];
  const coverage = new Coverage();
  let events = 0;
  let virtualMs = 0;
  for (let seed = from; seed < from + seeds; seed += 1) {
    const result = await runSeed(prepare, seed, { ignored });
    hashes.push({ seed, hash: result.hash });
    events += result.events;
    virtualMs += result.virtualMs;
    coverage.add(result.coverage);
    if (result.violation === undefined) continue;
    failed.push(await replay(prepare, result, ignored));
    if (stopAtFirst) break;
  }
  return { hashes, failed, events, virtualMs, coverage: [...coverage.counts] };
}

function load(name: string): Promise<Prepare> {
  const prepare = loaded.get(name) ?? mechanismNamed(name).load(distOf(copies));
  loaded.set(name, prepare);
  return prepare;
}

/** The same seed again, for somebody to read; it has to take the same course. */
async function replay(
  prepare: Prepare,
  result: SeedResult,
  ignored: readonly string[],
): Promise<SeedResult> {
  const again = await runSeed(prepare, result.seed, { readable: true, ignored });
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
