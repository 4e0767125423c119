/** Shared by all commands that run benchmarks, for any subject. */
import { loadavg } from 'node:os';
import type { Benchmark } from './benchmark.ts';
import { WrongElectionError } from './benchmark.ts';
import { keepResults } from './kept-results.ts';
import { describeMachine, rest } from './machine.ts';
import type { Askable, Options } from './options.ts';
import { readOptions } from './options.ts';
import type { Line } from './report.ts';
import { formats, lineOf } from './report.ts';
import { commandOf } from './subject.ts';
import { Surroundings } from './surroundings.ts';

/** Its benchmarks take turns in the order of `names`. */
export interface Suite extends Askable {
  readonly usage: string;
  /** The kind of data in `--directory`, such as `file store`. */
  readonly stored: string;
  /** Starts what they share. @throws what keeps everything from being measured */
  prepare(
    surroundings: Surroundings,
    progress: (text: string) => void,
    options: { readonly quick: boolean },
  ): Prepared | Promise<Prepared>;
}

export interface Prepared {
  readonly make: Readonly<Record<string, () => Benchmark>>;
  /** Lines for the head of the report. */
  readonly notes: readonly string[];
  /** Ends what `prepare` started. */
  close?(): Promise<void>;
}

/** For `prepare`: each is made of what they share, and only if it is chosen. */
export function makeOf<Shared>(
  makers: Readonly<Record<string, (shared: Shared) => Benchmark>>,
  shared: Shared,
): Prepared['make'] {
  return Object.fromEntries(
    Object.entries(makers).map(([name, make]) => [name, () => make(shared)]),
  );
}

/** @returns the exit code: 0 also when a goal is missed */
export async function runSuite(suite: Suite, args: readonly string[]): Promise<number> {
  endWithSignals();
  const { only, rounds, directory, format, save, quick = false } = optionsOrUsage(suite, args);
  const { subject, stored } = suite;
  const startMs = performance.now();
  const progress = (text: string) => {
    process.stderr.write(`${Math.round((performance.now() - startMs) / 1000)} s: ${text}\n`);
  };
  if (!quick) await rest(progress);
  const surroundings = new Surroundings(directory);
  const machine = describeMachine(surroundings.directory);
  let prepared: Prepared;
  try {
    prepared = await suite.prepare(surroundings, progress, { quick });
  } catch (error) {
    process.stderr.write(`nothing can be measured: ${(error as Error).message}\n`);
    await surroundings.reaper.close();
    return 1;
  }
  const benchmarks = Object.entries(prepared.make)
    .filter(([name]) => only?.includes(name) ?? true)
    .map(([, make]) => make());
  const runnable = benchmarks.filter(({ cannotRun }) => cannotRun === undefined);
  const { notes } = prepared;
  const result: Line[] = [
    { kind: 'machine', ...machine, command: commandOf(subject), rounds, stored, notes },
  ];
  const failed = await measure(runnable, rounds, progress);
  await prepared.close?.();
  await surroundings.reaper.close();
  let exitCode = 0;
  for (const benchmark of benchmarks) {
    const { name, cannotRun } = benchmark;
    if (cannotRun !== undefined) {
      result.push({ kind: 'skipped', benchmark: name, message: cannotRun });
    }
    const error = failed.get(benchmark);
    const troubles = benchmark.troubles?.() ?? [];
    if (error !== undefined) {
      exitCode = 1;
      const kind = error instanceof WrongElectionError ? 'wrong' : 'failed';
      result.push({ kind, benchmark: name, message: error.message });
    } else if (cannotRun === undefined) {
      result.push(...benchmark.figures().map(lineOf));
      if (troubles.length > 0) exitCode = 1;
    }
    for (const message of troubles) result.push({ kind: 'failed', benchmark: name, message });
  }
  result.push({ kind: 'end', load: loadavg()[0] ?? 0 });
  process.stdout.write(formats[format](result));
  if (save) progress(`kept in ${keepResults(subject, result)}`);
  return exitCode;
}

/** The reaper ends our processes as soon as we are gone. */
export function endWithSignals(): void {
  for (const [name, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    process.on(name, () => process.exit(code));
  }
}

/**
 * The rounds of all benchmarks in turn, so that a quarter of an hour in which the machine is slow
 * is in all of them.
 * @returns those that failed: they take part in no further round
 */
async function measure(
  benchmarks: readonly Benchmark[],
  rounds: number,
  progress: (text: string) => void,
): Promise<Map<Benchmark, Error>> {
  const failed = new Map<Benchmark, Error>();
  for (let round = 0; round < rounds; round += 1) {
    for (const benchmark of benchmarks) {
      const own = benchmark.roundsOf(rounds);
      const takesPart = Math.ceil(((round + 1) * own) / rounds) > Math.ceil((round * own) / rounds);
      if (!takesPart || failed.has(benchmark)) continue;
      progress(`round ${round + 1} of ${rounds}: ${benchmark.about}`);
      try {
        await benchmark.round();
      } catch (error) {
        failed.set(benchmark, error instanceof Error ? error : new Error(String(error)));
      }
    }
  }
  return failed;
}

export function optionsOrUsage(
  { names, defaultRounds, usage, quick }: Askable & { readonly usage: string },
  args: readonly string[],
): Options {
  let read: Options;
  try {
    // Of an option that is given twice the last one counts.
    read = readOptions(['--rounds', String(defaultRounds), ...args], names, quick === true);
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
