import { parseArgs } from 'node:util';
import type { Broken } from './broken.ts';
import { brokenCandidates } from './broken.ts';

export interface Settings {
  readonly rounds: number;
  readonly candidates: number;
  readonly seed: number;
  /** Default: a directory of its own, removed after a run that passed. */
  readonly store: string | undefined;
  readonly lease: string;
  readonly broken: Broken | undefined;
}

export const usage: string = `npm run chaos -- [options]

  --short          20 rounds with 8 candidates, about a minute
  --rounds N       default 200
  --candidates N   default 20
  --seed S         as an earlier run printed it: the same faults at the same moments
  --store URL      as of \`incumbent run\`; default: a directory of its own
  --lease TIME     default 3s
  --broken NAME    candidates that are broken on purpose: the run must fail
${Object.entries(brokenCandidates)
  .map(([name, { about }]) => `                     ${name.padEnd(12)} ${about}`)
  .join('\n')}

npm run chaos:zookeeper has the ZooKeeper client under load for 30 minutes; see its --help.`;

/** @throws an Error for people */
export function readSettings(argv: readonly string[]): Settings | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      short: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      candidates: { type: 'string' },
      seed: { type: 'string' },
      store: { type: 'string' },
      lease: { type: 'string', default: '3s' },
      broken: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  const { short, store, lease, broken } = values;
  if (broken !== undefined && !Object.hasOwn(brokenCandidates, broken)) {
    throw new Error(`--broken knows ${Object.keys(brokenCandidates).join(', ')}, not "${broken}"`);
  }
  return {
    rounds: wholeNumber('--rounds', values.rounds ?? (short ? '20' : '200'), 1, 1_000_000),
    // With fewer than that everybody could be frozen at once.
    candidates: wholeNumber('--candidates', values.candidates ?? (short ? '8' : '20'), 6, 200),
    seed: wholeNumber('--seed', values.seed ?? String(Date.now() % 2 ** 32), 0, 2 ** 32 - 1),
    store,
    lease,
    broken: broken as Broken | undefined,
  };
}

function wholeNumber(name: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new Error(`${name} must be a whole number from ${least} to ${most}, not "${text}"`);
  }
  return value;
}
