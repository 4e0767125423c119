import { parseArgs } from 'node:util';
import { brokenFrom, brokenUsage, seedFrom, wholeNumber } from '../harness/read-options.ts';
import type { Broken } from './broken.ts';
import { brokenCandidates } from './broken.ts';
import type { StoreName } from './stage.ts';

export const storeNames: readonly StoreName[] = ['postgres', 'redis', 'etcd'];

export interface Settings {
  readonly stores: readonly StoreName[];
  /** Of each store; they run side by side. */
  readonly seconds: number;
  readonly candidates: number;
  readonly seed: number;
  readonly broken: Broken | undefined;
}

/** With what the run of one store takes to start and to end. */
const shortSeconds = 45;

export const usage: string = `npm run chaos -- stores [options]

  --store NAME     postgres, redis or etcd (default: all, side by side)
  --minutes N      how long (default 10)
  --short          ${shortSeconds} seconds: part of npm test
  --candidates N   default 6, with --short 4
  --seed S         as an earlier run printed it: the same faults, in the same order
  --broken NAME    candidates or a store that are broken on purpose: the run must fail
${brokenUsage(brokenCandidates, 16)}`;

/** @throws an Error for people */
export function readSettings(argv: readonly string[]): Settings | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      store: { type: 'string' },
      minutes: { type: 'string' },
      short: { type: 'boolean', default: false },
      candidates: { type: 'string' },
      seed: { type: 'string' },
      broken: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  const { store, short, minutes } = values;
  if (store !== undefined && !storeNames.some((name) => name === store)) {
    throw new Error(`--store knows ${storeNames.join(', ')}, not "${store}"`);
  }
  const broken = brokenFrom(brokenCandidates, values.broken);
  const stores = storesOf(store as StoreName | undefined, broken);
  return {
    stores,
    seconds:
      short && minutes === undefined
        ? shortSeconds
        : 60 * wholeNumber('--minutes', minutes ?? '10', 1, 10_000),
    // Two are struck at a time, and whoever is restarted takes a while.
    candidates: wholeNumber('--candidates', values.candidates ?? (short ? '4' : '6'), 4, 50),
    seed: seedFrom(values.seed),
    broken,
  };
}

/**
 * The stores that have what is to be broken: some of it is in one store only.
 * @throws an Error for people
 */
function storesOf(store: StoreName | undefined, broken: Broken | undefined): readonly StoreName[] {
  const wanted = store === undefined ? storeNames : [store];
  const only = broken === undefined ? storeNames : brokenCandidates[broken].stores;
  const stores = wanted.filter((name) => only.includes(name));
  if (stores.length > 0) return stores;
  throw new Error(`--broken ${broken} is for ${only.join(' and ')}, not for ${store}`);
}
