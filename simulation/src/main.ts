/**
 * `npm run simulate -- --seeds N --from S [--mechanism lease|queue] [--trace] [--library DIRECTORY]`:
 * runs N seeds from S on every core, against a compiled library; without a mechanism half of them
 * for each. Prints each broken guarantee with its schedule, what the seeds contained, and last
 * `N passed, N failed`.
 */
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Coverage } from './coverage.ts';
import { loadLibrary } from './library.ts';
import { SeedRunner } from './pool.ts';
import { coverageTable, describeFailure, missing } from './report.ts';
import type { Mechanism } from './run-seed.ts';
import { mechanisms, runSeed } from './run-seed.ts';
import type { SeedResult } from './simulation.ts';

/** Failures are rare and long: so many are shown in full. */
const shownFailures = 5;
const shownLines = 60;
const seedsPerJob = 25;
/** From so many seeds on, every kind of schedule has to have occurred. */
const seedsToCoverAll = 1_000;

const { seeds, from, trace, library, chosen } = readArguments();
if (trace) await traceSeeds();
else await runAll();

async function runAll(): Promise<void> {
  let passed = 0;
  let failed = 0;
  for (const [index, mechanism] of chosen.entries()) {
    const share = Math.floor((seeds + index) / chosen.length);
    if (share === 0) continue;
    const outcome = await runMechanism(mechanism, share);
    passed += outcome.passed;
    failed += outcome.failed;
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}

async function runMechanism(
  mechanism: Mechanism,
  count: number,
): Promise<{ passed: number; failed: number }> {
  const startMs = performance.now();
  const coverage = new Coverage();
  const failed: SeedResult[] = [];
  let next = from;
  let done = 0;
  let events = 0;
  let virtualMs = 0;
  const progress = startProgress(
    () => `${mechanism}: ${done} of ${count} seeds, ${failed.length} failed`,
  );
  const threads = Math.min(availableParallelism(), Math.ceil(count / seedsPerJob));
  const work = async () => {
    const runner = new SeedRunner(library);
    while (next < from + count) {
      const job = {
        mechanism,
        from: next,
        seeds: Math.min(seedsPerJob, from + count - next),
        stopAtFirst: false,
      };
      next += job.seeds;
      const report = await runner.run(job);
      done += report.seeds;
      events += report.events;
      virtualMs += report.virtualMs;
      coverage.add(report.coverage);
      for (const failure of report.failed) {
        failed.push(failure);
        if (failed.length <= shownFailures) {
          console.log(`${describeFailure(failure, shownLines)}\n`);
        }
      }
    }
    await runner.close();
  };
  await Promise.all(Array.from({ length: threads }, work));
  progress.stop();
  if (failed.length > shownFailures) {
    const rest = failed.slice(shownFailures);
    console.log(
      `and: ${rest.map(({ seed, violation }) => `${seed} (${violation?.guarantee})`).join(', ')}\n`,
    );
  }
  console.log(coverageTable(mechanism, coverage));
  const seconds = (performance.now() - startMs) / 1000;
  console.log(
    `\n${mechanism}, seeds ${from} to ${from + count - 1}: ${(virtualMs / 3_600_000).toFixed(1)} h of ` +
      `virtual time, ${events} events, in ${seconds.toFixed(1)} s on ${threads} threads\n`,
  );
  const blind = count >= seedsToCoverAll ? missing(mechanism, coverage) : [];
  for (const name of blind) console.log(`blind: no seed contained "${name}"`);
  return { passed: count - failed.length, failed: failed.length + blind.length };
}

/** Everything that happens, for a few seeds. */
async function traceSeeds(): Promise<void> {
  const loaded = await loadLibrary(library);
  let failures = 0;
  for (const mechanism of chosen) {
    for (let seed = from; seed < from + seeds; seed += 1) {
      const result = await runSeed(loaded, seed, true, mechanism);
      console.log(result.lines.join('\n'));
      console.log(`${mechanism}, seed ${seed}: ${result.events} events, hash ${result.hash}`);
      if (result.violation !== undefined) {
        failures += 1;
        console.log(describeFailure(result, 0));
      }
    }
  }
  console.log(`${seeds * chosen.length - failures} passed, ${failures} failed`);
  process.exitCode = failures > 0 ? 1 : 0;
}

interface Arguments {
  readonly seeds: number;
  readonly from: number;
  readonly trace: boolean;
  readonly library: string;
  readonly chosen: readonly Mechanism[];
}

function readArguments(): Arguments {
  try {
    const { values } = parseArgs({
      options: {
        seeds: { type: 'string', default: '1000' },
        from: { type: 'string', default: '1' },
        trace: { type: 'boolean', default: false },
        mechanism: { type: 'string' },
        library: {
          type: 'string',
          default: fileURLToPath(new URL('../../packages/incumbent/dist', import.meta.url)),
        },
      },
    });
    const whole = (name: string, text: string) => {
      if (!/^\d{1,9}$/.test(text) || Number(text) === 0) {
        throw new Error(`--${name} takes a whole number from 1, not "${text}"`);
      }
      return Number(text);
    };
    const { mechanism } = values;
    const chosen = mechanisms.filter((each) => mechanism === undefined || each === mechanism);
    if (chosen.length === 0) {
      throw new Error(`--mechanism takes ${mechanisms.join(' or ')}, not "${mechanism}"`);
    }
    return {
      chosen,
      seeds: whole('seeds', values.seeds),
      from: whole('from', values.from),
      trace: values.trace,
      library: resolve(values.library),
    };
  } catch (error) {
    console.error(
      `${(error as Error).message}\nusage: npm run simulate -- --seeds N --from S [--mechanism lease|queue] [--trace] [--library DIRECTORY]`,
    );
    process.exit(64);
  }
}

/** On stderr: a line that renews itself on a terminal, else one now and then. */
function startProgress(describe: () => string): { stop: () => void } {
  const { isTTY } = process.stderr;
  const timer = setInterval(
    () => process.stderr.write(isTTY ? `\r${describe()}` : `${describe()}\n`),
    isTTY ? 500 : 20_000,
  );
  return {
    stop() {
      clearInterval(timer);
      if (isTTY) process.stderr.write(`\r${' '.repeat(60)}\r`);
    },
  };
}
