import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

export interface Options {
  /** Names of benchmarks; undefined: all. */
  readonly only: readonly string[] | undefined;
  readonly rounds: number;
  readonly format: 'text' | 'json' | 'markdown';
  /** Absolute; the file store is put on its file system. */
  readonly directory: string;
  readonly help: boolean;
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
    },
  });
  const { only, rounds, json, markdown, directory, help, quick } = values;
  if (quick && !hasQuick) throw new Error('--quick: these benchmarks have no short form');
  if (!/^[1-9]\d{0,3}$/.test(rounds)) {
    throw new Error(`--rounds takes a whole number from 1 to 9999, not "${rounds}"`);
  }
  if (json && markdown) throw new Error('--json and --markdown exclude each other');
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
    ...(quick ? { quick } : {}),
  };
}
