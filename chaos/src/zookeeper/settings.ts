import { brokenFrom, brokenUsage, readTimedRun } from '../harness/read-options.ts';
import type { Broken } from './broken.ts';
import { brokenClients } from './broken.ts';

export interface Settings {
  readonly minutes: number;
  readonly clients: number;
  readonly seed: number;
  readonly broken: Broken | undefined;
}

export const usage: string = `npm run chaos -- zookeeper [options]

  --minutes N      how long (default 30)
  --short          one minute: part of npm test
  --clients N      default 4
  --seed S         as an earlier run printed it: the same faults, in the same order
  --broken NAME    a client that is broken on purpose: the run must fail
${brokenUsage(brokenClients, 16)}`;

/** @throws an Error for people */
export function readSettings(argv: readonly string[]): Settings | 'help' {
  const run = readTimedRun(argv, { name: 'clients', usual: 4, least: 2 }, 1);
  if (run === 'help') return run;
  const { count: clients, broken, ...rest } = run;
  return { ...rest, clients, broken: brokenFrom(brokenClients, broken) };
}
