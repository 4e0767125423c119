/**
 * `npm run simulate`: runs seeds on every core, against compiled packages; without `--mechanism` each
 * mechanism gets its share of them. Prints each broken guarantee with its schedule, what the seeds
 * contained, and last `N passed, N failed`.
 */
import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { untilInputEnds } from './harness/background.ts';
import { Coverage } from './harness/coverage.ts';
import type { Mechanism } from './harness/mechanism.ts';
import type { Copies } from './harness/packages.ts';
import { besideIncumbent, distOf } from './harness/packages.ts';
import { SeedRunner } from './harness/pool.ts';
import { coverageTable, describeFailure, missing } from './harness/report.ts';
import type { SeedResult } from './harness/run-seed.ts';
import { runSeed } from './harness/run-seed.ts';
import { mechanisms } from './mechanisms.ts';

/** Failures are rare and long: so many are shown in full. */
const shownFailures = 5;
const shownLines = 60;
const seedsPerJob = 25;
/** From so many seeds on, every kind of schedule has to have occurred. */
const seedsToCoverAll = 1_000;

const { seeds, from, trace, hashes, copies, chosen, background } = readArguments();
if (trace) await traceSeeds();
else await runAll();

async function runAll(): Promise<void> {
  let passed = 0;
  let failed = 0;
  const lines: string[] = [];
  for (const [index, mechanism] of chosen.entries()) {
    const share = shareOf(index);
    if (share === 0) continue;
    const outcome = await runMechanism(mechanism, share);
    passed += outcome.passed;
    failed += outcome.failed;
    lines.push(...outcome.hashes);
  }
  if (hashes !== undefined) writeFileSync(hashes, lines.map((line) => `${line}\n`).join(''));
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}

/** Seeds that are left over by rounding go to the last ones. */
function shareOf(index: number): number {
  const weights = chosen.map(({ weight = 1 }) => weight);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const upTo = (count: number) =>
    Math.floor((seeds * weights.slice(0, count).reduce((total, each) => total + each, 0)) / sum);
  return upTo(index + 1) - upTo(index);
}

async function runMechanism(
  mechanism: Mechanism,
  count: number,
): Promise<{ passed: number; failed: number; hashes: readonly string[] }> {
  const { name } = mechanism;
  const startMs = performance.now();
  const coverage = new Coverage();
  const failed: SeedResult[] = [];
  const hashOf = new Map<number, string>();
  let next = from;
  let events = 0;
  let virtualMs = 0;
  const progress = startProgress(
    () => `${name}: ${hashOf.size} of ${count} seeds, ${failed.length} failed`,
  );
  const threads = Math.min(availableParallelism(), Math.ceil(count / seedsPerJob));
  const work = async () => {
    const runner = new SeedRunner(copies, background);
    while (next < from + count) {
      const job = {
        mechanism: name,
        from: next,
        seeds: Math.min(seedsPerJob, from + count - next),
        stopAtFirst: false,
      };
      next += job.seeds;
      const report = await runner.run(job);
      for (const { seed, hash } of report.hashes) hashOf.set(seed, hash);
      events += report.events;
      virtualMs += report.virtualMs;
      coverage.add(report.coverage);
      for (const failure of report.failed) {
        failed.push(failure);
        if (failed.length <= shownFailures) {
          console.log(`${describeFailure(mechanism, failure, shownLines)}\n`);
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
    `\n${name}, seeds ${from} to ${from + count - 1}: ${(virtualMs / 3_600_000).toFixed(1)} h of ` +
      `virtual time, ${events} events, in ${seconds.toFixed(1)} s on ${threads} threads\n`,
  );
  const blind = count >= seedsToCoverAll ? missing(mechanism, coverage) : [];
  for (const what of blind) console.log(`blind: no seed contained "${what}"`);
  return {
    passed: count - failed.length,
    failed: failed.length + blind.length,
    hashes: [...hashOf].sort(([a], [b]) => a - b).map(([seed, hash]) => `${name} ${seed} ${hash}`),
  };
}

/** Everything that happens, for a few seeds. */
async function traceSeeds(): Promise<void> {
  let failures = 0;
  for (const mechanism of chosen) {
    const prepare = await mechanism.load(distOf(copies));
    for (let seed = from; seed < from + seeds; seed += 1) {
      const result = await runSeed(prepare, seed, { readable: true });
      console.log(result.lines.join('\n'));
      console.log(`${mechanism.name}, seed ${seed}: ${result.events} events, hash ${result.hash}`);
      if (result.violation !== undefined) {
        failures += 1;
        console.log(describeFailure(mechanism, result, 0));
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
  readonly hashes: string | undefined;
  readonly copies: Copies;
  readonly chosen: readonly Mechanism[];
  readonly background: AbortSignal | undefined;
}

function readArguments(): Arguments {
  const names = mechanisms.map(({ name }) => name);
  const usage =
    `usage: npm run simulate -- --seeds N --from S [--mechanism ${names.join(',')}] [--trace]\n` +
    '  --hashes FILE         one line for each seed: two runs took the same courses if their files are equal\n' +
    '  --library DIRECTORY   a compiled copy of the library, in place of packages/incumbent/dist\n' +
    '  --beside DIRECTORY    of another version: half of the candidates in a queue are of it\n' +
    '  --background          at the lowest priority, until standard input ends';
  try {
    const { values } = parseArgs({
      options: {
        seeds: { type: 'string', default: '1000' },
        from: { type: 'string', default: '1' },
        trace: { type: 'boolean', default: false },
        mechanism: { type: 'string' },
        hashes: { type: 'string' },
        library: { type: 'string' },
        beside: { type: 'string' },
        background: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) {
      console.log(usage);
      process.exit(0);
    }
    const whole = (name: string, text: string) => {
      if (!/^\d{1,9}$/.test(text) || Number(text) === 0) {
        throw new Error(`--${name} takes a whole number from 1, not "${text}"`);
      }
      return Number(text);
    };
    const { mechanism, library, beside } = values;
    const wanted = mechanism?.split(',') ?? names;
    const unknown = wanted.find((each) => !names.includes(each));
    if (unknown !== undefined) {
      throw new Error(`--mechanism takes ${names.join(', ')}, not "${unknown}"`);
    }
    const chosen = mechanisms.filter(({ name }) => wanted.includes(name));
    return {
      chosen,
      seeds: whole('seeds', values.seeds),
      from: whole('from', values.from),
      trace: values.trace,
      hashes: values.hashes,
      copies: {
        ...(library !== undefined && { incumbent: resolve(library) }),
        ...(beside !== undefined && { [besideIncumbent]: resolve(beside) }),
      },
      background: values.background ? untilInputEnds() : undefined,
    };
  } catch (error) {
    console.error(`${(error as Error).message}\n${usage}`);
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
