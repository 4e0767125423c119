import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Benchmark } from '../../benchmark.ts';
import { monotonicMs } from '../../clock.ts';
import type { Figure } from '../../figure.ts';
import { figureOf, median } from '../../figure.ts';
import type { Surroundings } from '../../surroundings.ts';
import { PackedPackages } from '../packed.ts';
import { RunCandidate } from '../run-candidate.ts';

const startsPerRound = 7;

/**
 * Without what makes Node itself start slower, such as NODE_EXTRA_CA_CERTS: all that we add would look small
 * beside it.
 */
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.startsWith('NODE_')),
);

/** How long a command takes, and `run` until its program has started, beside a Node that does nothing. */
export function startUp(surroundings: Surroundings): Benchmark {
  const directory = surroundings.newDirectory();
  const write = (name: string, text: string): string => {
    const path = join(directory, name);
    writeFileSync(path, text);
    return path;
  };
  const script = write('empty.cjs', '');
  const module = write('empty.mjs', '');
  const library = write(
    'library.mjs',
    "import { createElection } from 'incumbent';\nimport { file } from 'incumbent/file';\n" +
      `createElection({ name: 'x', backend: file(${JSON.stringify(join(directory, 'library'))}) });\n`,
  );
  let packed: PackedPackages | undefined;
  const emptyMs: number[] = [];
  const moduleMs: number[] = [];
  const libraryMs: number[] = [];
  const helpMs: number[] = [];
  const runMs: number[] = [];
  const libraryMoreMs: number[] = [];
  const helpRatio: number[] = [];
  const runRatio: number[] = [];
  let elections = 0;

  async function startRun(command: string): Promise<number> {
    elections += 1;
    const election = `start-${elections}`;
    const options = { directory, election, script: 'echo "$$ $INCUMBENT_TOKEN"' };
    const candidate = new RunCandidate(surroundings, { ...options, command, env });
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
    about: 'start-up of the command and of the library, as they are installed',
    roundsOf: (rounds) => rounds,
    async round() {
      packed ??= new PackedPackages(directory);
      const { cliFile } = packed;
      const empty: number[] = [];
      const imported: number[] = [];
      const help: number[] = [];
      const run: number[] = [];
      for (let start = 0; start < startsPerRound; start += 1) {
        empty.push(timeOf(script));
        help.push(timeOf(cliFile, '--help'));
        moduleMs.push(timeOf(module));
        imported.push(timeOf(library));
        run.push(await startRun(cliFile));
      }
      libraryMs.push(...imported);
      libraryMoreMs.push(median(imported) - median(empty));
      emptyMs.push(...empty);
      helpMs.push(...help);
      runMs.push(...run);
      helpRatio.push(median(help) / median(empty));
      runRatio.push(median(run) / median(empty));
    },
    figures: (): readonly Figure[] => [
      figureOf('startup', '`incumbent --help` beside an empty Node process', '×', helpRatio, 1.3),
      figureOf(
        'startup',
        '`incumbent run` until its program starts beside an empty Node process',
        '×',
        runRatio,
        2,
      ),
      figureOf(
        'startup',
        'the library and a file store, above an empty Node process',
        'ms',
        libraryMoreMs,
        25,
      ),
      figureOf('startup', '`incumbent --help`', 'ms', helpMs),
      figureOf('startup', '`incumbent run` until its program starts', 'ms', runMs),
      figureOf('startup', 'the library and a file store', 'ms', libraryMs),
      figureOf('startup', 'floor: an empty Node process', 'ms', emptyMs),
      figureOf('startup', 'floor: an empty Node process with an ES module', 'ms', moduleMs),
    ],
  };
}

function timeOf(...args: readonly string[]): number {
  const startMs = monotonicMs();
  const { status } = spawnSync(process.execPath, args, { stdio: 'ignore', env });
  const ms = monotonicMs() - startMs;
  if (status !== 0) throw new Error(`node ${args.join(' ')} ended with ${status}`);
  return ms;
}
