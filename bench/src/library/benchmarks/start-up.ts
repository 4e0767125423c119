import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cliFile } from '@incumbent/cli/trial';
import type { Benchmark } from '../../benchmark.ts';
import { monotonicMs } from '../../clock.ts';
import type { Figure } from '../../figure.ts';
import { figureOf, median } from '../../figure.ts';
import type { Surroundings } from '../../surroundings.ts';
import { RunCandidate } from '../run-candidate.ts';

const startsPerRound = 7;

/** How long a command takes, and `run` until its program has started, beside a Node that does nothing. */
export function startUp(surroundings: Surroundings): Benchmark {
  const directory = surroundings.newDirectory();
  const script = join(directory, 'empty.cjs');
  const module = join(directory, 'empty.mjs');
  writeFileSync(script, '');
  writeFileSync(module, '');
  const emptyMs: number[] = [];
  const moduleMs: number[] = [];
  const helpMs: number[] = [];
  const runMs: number[] = [];
  const helpRatio: number[] = [];
  const runRatio: number[] = [];
  let elections = 0;

  async function startRun(): Promise<number> {
    elections += 1;
    const election = `start-${elections}`;
    const options = { directory, election, script: 'echo "$$ $INCUMBENT_TOKEN"' };
    const candidate = new RunCandidate(surroundings, options);
    try {
      const { atMs } = await candidate.program();
      await candidate.finish();
      return atMs - candidate.startedAtMs;
    } finally {
      await candidate.kill();
    }
  }

  return {
    name: 'startup',
    about: 'start-up of the command',
    roundsOf: (rounds) => rounds,
    async round() {
      const empty: number[] = [];
      const help: number[] = [];
      const run: number[] = [];
      for (let start = 0; start < startsPerRound; start += 1) {
        empty.push(timeOf(script));
        help.push(timeOf(cliFile, '--help'));
        moduleMs.push(timeOf(module));
        run.push(await startRun());
      }
      emptyMs.push(...empty);
      helpMs.push(...help);
      runMs.push(...run);
      helpRatio.push(median(help) / median(empty));
      runRatio.push(median(run) / median(empty));
    },
    figures: (): readonly Figure[] => [
      figureOf('startup', '`incumbent --help` beside an empty Node process', '×', helpRatio, 1.6),
      figureOf(
        'startup',
        '`incumbent run` until its program starts beside an empty Node process',
        '×',
        runRatio,
        4,
      ),
      figureOf('startup', '`incumbent --help`', 'ms', helpMs),
      figureOf('startup', '`incumbent run` until its program starts', 'ms', runMs),
      figureOf('startup', 'floor: an empty Node process', 'ms', emptyMs),
      figureOf('startup', 'floor: an empty Node process with an ES module', 'ms', moduleMs),
    ],
  };
}

function timeOf(...args: readonly string[]): number {
  const startMs = monotonicMs();
  const { status } = spawnSync(process.execPath, args, { stdio: 'ignore' });
  const ms = monotonicMs() - startMs;
  if (status !== 0) throw new Error(`node ${args.join(' ')} ended with ${status}`);
  return ms;
}
