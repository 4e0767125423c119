import { parseArgs } from 'node:util';
import { brokenFrom, brokenUsage, seedFrom, wholeNumber } from '../read-options.ts';
import type { Broken } from './broken.ts';
import { brokenClients } from './broken.ts';

export interface Settings {
  readonly minutes: number;
  readonly clients: number;
  readonly seed: number;
  readonly broken: Broken | undefined;
}

export const usage: string = `npm run chaos:zookeeper -- [options]

  --minutes N      how long (default 30)
  --short          one minute: part of npm test
  --clients N      default 4
  --seed S         as an earlier run printed it: the same faults, in the same order
  --broken NAME    a client that is broken on purpose: the run must fail
${brokenUsage(brokenClients, 16)}`;

/** @throws an Error for people */
export function readSettings(argv: readonly string[]): Settings | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      minutes: { type: 'string' },
      short: { type: 'boolean', default: false },
      clients: { type: 'string', default: '4' },
      seed: { type: 'string' },
      broken: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  return {
    minutes: wholeNumber('--minutes', values.minutes ?? (values.short ? '1' : '30'), 1, 10_000),
    clients: wholeNumber('--clients', values.clients, 2, 50),
    seed: seedFrom(values.seed),
    broken: brokenFrom(brokenClients, values.broken),
  };
}
