/**
 * `npm run bench`: what the library and the command cost, beside what the machine itself costs in
 * the same run. Ends with 0 also when a goal is missed; with 1 when something could not be measured
 * or an election was wrong.
 */
import type { Benchmark, MakeBenchmark } from './benchmark.ts';
import { WrongElectionError } from './benchmark.ts';
import { freezeTakeover } from './benchmarks/freeze-takeover.ts';
import { guardMemory } from './benchmarks/guard-memory.ts';
import { idleFollowers } from './benchmarks/idle-followers.ts';
import { killTakeover } from './benchmarks/kill-takeover.ts';
import { manyElections } from './benchmarks/many-elections.ts';
import { resignTakeover } from './benchmarks/resign-takeover.ts';
import { startUp } from './benchmarks/start-up.ts';
import { describeMachine } from './machine.ts';
import type { Options } from './options.ts';
import { defaultRounds, readOptions } from './options.ts';
import type { Report } from './report.ts';
import { reports } from './report.ts';
import { Surroundings } from './surroundings.ts';

const makers: Readonly<Record<string, MakeBenchmark>> = {
  resign: resignTakeover,
  kill: killTakeover,
  freeze: freezeTakeover,
  many: manyElections,
  idle: idleFollowers,
  startup: startUp,
  guard: guardMemory,
};

const usage = `npm run bench -- [--only NAME,...] [--rounds N] [--json | --markdown] [--directory DIR]

  --only       ${Object.keys(makers).join(', ')}
  --rounds     how often each is measured, default ${defaultRounds}; 3 takes two to three minutes
  --json       one object a line
  --markdown   the table of docs/benchmarks.md
  --directory  where the file store is put, default the folder for temporary files
`;

// The reaper ends our processes as soon as we are gone.
for (const [name, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const) {
  process.on(name, () => process.exit(code));
}

const options = optionsOrUsage();
process.exitCode = await measureAll(options, reports[options.format]);

async function measureAll({ only, rounds, directory }: Options, report: Report): Promise<number> {
  const print = (text: string) => process.stdout.write(text);
  const surroundings = new Surroundings(directory);
  const benchmarks = Object.entries(makers)
    .filter(([name]) => only?.includes(name) ?? true)
    .map(([, make]) => make(surroundings));
  const runnable = benchmarks.filter(({ cannotRun }) => cannotRun === undefined);
  print(report.start(describeMachine(surroundings.directory), rounds));
  const failed = await measure(runnable, rounds);
  await surroundings.reaper.close();
  let exitCode = 0;
  for (const benchmark of benchmarks) {
    const { name, cannotRun } = benchmark;
    if (cannotRun !== undefined) print(report.trouble(name, 'skipped', cannotRun));
    const error = failed.get(benchmark);
    if (error !== undefined) {
      exitCode = 1;
      const kind = error instanceof WrongElectionError ? 'wrong' : 'failed';
      print(report.trouble(name, kind, error.message));
    } else if (cannotRun === undefined) {
      print(report.figures(benchmark.figures()));
    }
  }
  return exitCode;
}

/**
 * The rounds of all benchmarks in turn, so that a quarter of an hour in which the machine is slow
 * is in all of them.
 * @returns those that failed: they take part in no further round
 */
async function measure(
  benchmarks: readonly Benchmark[],
  rounds: number,
): Promise<Map<Benchmark, Error>> {
  const failed = new Map<Benchmark, Error>();
  const startMs = performance.now();
  for (let round = 0; round < rounds; round += 1) {
    for (const benchmark of benchmarks) {
      const own = benchmark.roundsOf(rounds);
      const takesPart = Math.ceil(((round + 1) * own) / rounds) > Math.ceil((round * own) / rounds);
      if (!takesPart || failed.has(benchmark)) continue;
      const seconds = Math.round((performance.now() - startMs) / 1000);
      process.stderr.write(`${seconds} s: round ${round + 1} of ${rounds}: ${benchmark.about}\n`);
      try {
        await benchmark.round();
      } catch (error) {
        failed.set(benchmark, error instanceof Error ? error : new Error(String(error)));
      }
    }
  }
  return failed;
}

function optionsOrUsage(): Options {
  let read: Options;
  try {
    read = readOptions(process.argv.slice(2), Object.keys(makers));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${usage}`);
    process.exit(64);
  }
  if (read.help) {
    process.stdout.write(usage);
    process.exit(0);
  }
  return read;
}
