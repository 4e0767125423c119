import { parseArgs } from 'node:util';
import { brokenFrom, brokenUsage, seedFrom, wholeNumber } from '../harness/read-options.ts';
import type { Broken } from './broken.ts';
import { brokenWays } from './broken.ts';
import type { Transport } from './messages.ts';
import { transports } from './messages.ts';

export interface Settings {
  /** Of the leader. */
  readonly changes: number;
  readonly transports: readonly Transport[];
  readonly seed: number;
  /** The outcome as one line of JSON, and no progress. */
  readonly json: boolean;
  readonly broken: Broken | undefined;
}

export const usage: string = `npm run chaos -- following [options]

Three processes serve over gRPC and HTTP while they lead, and clients follow the leader, whoever it is.

  --changes N       of the leader; default 100
  --short           8 changes: part of npm test
  --transport NAME  ${transports.join(', ')} or both (default)
  --seed S          as an earlier run printed it: the same faults at the same moments
  --json            no progress and no table, but the outcome as one line of JSON
  --broken NAME     services or clients that are broken on purpose: the run must fail
${brokenUsage(brokenWays, 15)}`;

/** @throws an Error for people */
export function readSettings(argv: readonly string[]): Settings | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      changes: { type: 'string' },
      short: { type: 'boolean', default: false },
      transport: { type: 'string', default: 'both' },
      seed: { type: 'string' },
      json: { type: 'boolean', default: false },
      broken: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  const { transport } = values;
  const chosen = transports.filter((name) => transport === 'both' || transport === name);
  if (chosen.length === 0) {
    throw new Error(`--transport knows ${transports.join(', ')} and both, not "${transport}"`);
  }
  return {
    changes: wholeNumber('--changes', values.changes ?? (values.short ? '8' : '100'), 1, 100_000),
    transports: chosen,
    seed: seedFrom(values.seed),
    json: values.json,
    broken: brokenFrom<Broken>(brokenWays, values.broken),
  };
}
