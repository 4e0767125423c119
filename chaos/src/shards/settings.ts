import { parseArgs } from 'node:util';
import { brokenFrom, brokenUsage, seedFrom, wholeNumber } from '../harness/read-options.ts';
import type { Broken } from './broken.ts';
import { brokenWays } from './broken.ts';
import type { StoreName } from './messages.ts';
import { storeNames } from './messages.ts';

export interface Settings {
  readonly stores: readonly StoreName[];
  /** Of each store; they run side by side. */
  readonly seconds: number;
  readonly members: number;
  readonly shards: number;
  readonly seed: number;
  readonly broken: Broken | undefined;
}

/** With what the run of one store takes to start and to end. */
const shortSeconds = 36;

export const usage: string = `npm run chaos -- shards [options]

Processes share shards on one store. They are killed, frozen, cut off and drained, and others join.

  --store NAME     ${storeNames.join(', ')} (default: all, side by side)
  --minutes N      how long (default 10)
  --short          ${shortSeconds} seconds: part of npm test
  --members N      processes; default 5, with --short 3
  --shards N       default 24, with --short 12
  --seed S         as an earlier run printed it: the same faults, in the same order
  --broken NAME    processes that are broken on purpose: the run must fail
${brokenUsage(brokenWays, 15)}`;

/** @throws an Error for people */
export function readSettings(argv: readonly string[]): Settings | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      store: { type: 'string' },
      minutes: { type: 'string' },
      short: { type: 'boolean', default: false },
      members: { type: 'string' },
      shards: { type: 'string' },
      seed: { type: 'string' },
      broken: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  const { store, short, minutes } = values;
  const stores = storeNames.filter((name) => store === undefined || name === store);
  if (stores.length === 0) {
    throw new Error(`--store knows ${storeNames.join(', ')}, not "${store}"`);
  }
  const isShort = short && minutes === undefined;
  return {
    stores,
    seconds: isShort ? shortSeconds : 60 * wholeNumber('--minutes', minutes ?? '10', 1, 10_000),
    // Two are struck at a time, and one may be away.
    members: wholeNumber('--members', values.members ?? (short ? '3' : '5'), 3, 50),
    shards: wholeNumber('--shards', values.shards ?? (short ? '12' : '24'), 1, 256),
    seed: seedFrom(values.seed),
    broken: brokenFrom<Broken>(brokenWays, values.broken),
  };
}
