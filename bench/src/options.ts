import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { commandOf } from './subject.ts';

export interface Options {
  /** Names of benchmarks; undefined: all. */
  readonly only: readonly string[] | undefined;
  readonly rounds: number;
  readonly format: 'text' | 'json' | 'markdown';
  /** Absolute; the file store is put on its file system. */
  readonly directory: string;
  readonly help: boolean;
  /** Keeps the results, for the page of the benchmarks. */
  readonly save: boolean;
  /** Only to see whether it works: one round of little. */
  readonly quick?: true;
}

export const defaultRounds = 10;

/**
 * @param hasQuick whether there is a short form
 * @throws Error that says what is wrong
 */
export function readOptions(
  args: readonly string[],
  known: readonly string[],
  hasQuick = false,
): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string' },
      rounds: { type: 'string', default: String(defaultRounds) },
      json: { type: 'boolean', default: false },
      markdown: { type: 'boolean', default: false },
      directory: { type: 'string', default: tmpdir() },
      help: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      save: { type: 'boolean', default: false },
    },
  });
  const { only, rounds, json, markdown, directory, help, quick, save } = values;
  if (quick && !hasQuick) throw new Error('--quick: these benchmarks have no short form');
  if (!/^[1-9]\d{0,3}$/.test(rounds)) {
    throw new Error(`--rounds takes a whole number from 1 to 9999, not "${rounds}"`);
  }
  if (json && markdown) throw new Error('--json and --markdown exclude each other');
  if (save && (only !== undefined || quick)) {
    const option = quick ? '--quick' : '--only';
    throw new Error(`--save keeps the results of all benchmarks of a subject: leave ${option} out`);
  }
  const names = only?.split(',').map((name) => name.trim());
  for (const name of names ?? []) {
    if (!known.includes(name)) {
      throw new Error(`there is no benchmark "${name}"; there are: ${known.join(', ')}`);
    }
  }
  return {
    only: names,
    rounds: quick ? 1 : Number(rounds),
    format: json ? 'json' : markdown ? 'markdown' : 'text',
    directory: resolve(directory),
    help,
    save,
    ...(quick ? { quick } : {}),
  };
}

/** The subject of a command that measures, and its options. */
export interface Askable {
  /** `stores`: see `subject.ts`. */
  readonly subject: string;
  /** For `--only`. */
  readonly names: readonly string[];
  readonly defaultRounds: number;
  /** It has a short form, `--quick`. */
  readonly quick?: true;
}

/** @param directory what is kept in `--directory`: `where the file store is` */
export function usageOf(
  { subject, names, defaultRounds: rounds, quick }: Askable,
  directory: string,
): string {
  const short = '  --quick      one round of little, only to see whether it works\n';
  return `${commandOf(subject)} [--only NAME,...] [--rounds N] [--json | --markdown] [--save]

  --only       ${names.join(', ')}
  --rounds     how often each is measured, default ${rounds}
${quick === true ? short : ''}  --json       one object a line
  --markdown   a table
  --save       keeps the results in bench/results/${subject}.json
  --directory  ${directory}, default the folder for temporary files
`;
}
