import { parseArgs } from 'node:util';
import { parseDuration } from 'incumbent';
import { brokenFrom, brokenUsage, wholeNumber } from '../harness/read-options.ts';
import type { CandidatePlan } from './messages.ts';
import { shortestTimeoutMs, usualTimeoutMs } from './plan.ts';

export type Broken = NonNullable<CandidatePlan['broken']>;

export const brokenCandidates: Readonly<Record<Broken, { readonly about: string }>> = {
  'no-wait': { about: 'the successor does not wait (predecessorWait: "off")' },
  arithmetic: { about: 'belief is T - (R + tick) from a check on, and no successor waits' },
  pings: { about: 'confirmations are answered by the server alone, as pings are' },
};

export interface Settings {
  readonly runs: number;
  readonly timeoutsMs: readonly number[];
  readonly length: 'short' | 'long';
  readonly peer: 'kazoo' | 'none' | 'only';
  readonly json: boolean;
  readonly broken: Broken | undefined;
  /** Where to write what happened in the first round: JSON, and a picture beside it. */
  readonly record: string | undefined;
  /** Do nothing but draw what such a file says. */
  readonly draw: string | undefined;
}

export const usage: string = `npm run chaos -- cutoff [options]

Leaders whose ZooKeeper server is cut off from the others, while they still reach it.

  --runs N         default 20
  --short          one run of the first two rounds: part of npm test
  --timeout LIST   session timeouts, from 4s (two ticks); default 4s,10s
  --peer NAME      kazoo (default): kazoo's Election beside ours, where it is installed; none; only
  --json           no progress and no table, but the outcomes as one line of JSON
  --record FILE    write what happened in the first round, NAME.json, and its timeline, NAME.svg
  --draw FILE      only draw NAME.svg again from NAME.json
  --broken NAME    candidates that are broken on purpose: the run must fail
${brokenUsage(brokenCandidates, 10)}`;

/** @throws an Error for people */
export function readSettings(argv: readonly string[]): Settings | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      runs: { type: 'string' },
      short: { type: 'boolean', default: false },
      timeout: { type: 'string' },
      peer: { type: 'string', default: 'kazoo' },
      json: { type: 'boolean', default: false },
      record: { type: 'string' },
      draw: { type: 'string' },
      broken: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  return {
    runs: wholeNumber('--runs', values.runs ?? (values.short ? '1' : '20'), 1, 10_000),
    timeoutsMs: (values.timeout ?? `${shortestTimeoutMs},${usualTimeoutMs}`)
      .split(',')
      .map(readTimeout),
    length: values.short ? 'short' : 'long',
    peer: oneOf('--peer', values.peer, ['kazoo', 'none', 'only']),
    json: values.json,
    broken: brokenFrom<Broken>(brokenCandidates, values.broken),
    record: values.record === undefined ? undefined : jsonFile('--record', values.record),
    draw: values.draw === undefined ? undefined : jsonFile('--draw', values.draw),
  };
}

function jsonFile(option: string, path: string): string {
  if (path.endsWith('.json')) return path;
  throw new Error(`${option} takes a file that ends in .json, not "${path}"`);
}

function readTimeout(text: string): number {
  const ms = parseDuration('--timeout', /^\d+$/.test(text) ? Number(text) : text);
  if (ms >= shortestTimeoutMs && ms <= 40_000) return ms;
  throw new Error(`--timeout must be from 4s to 40s (2 to 20 ticks), not "${text}"`);
}

function oneOf<Name extends string>(option: string, text: string, names: readonly Name[]): Name {
  const found = names.find((name) => name === text);
  if (found !== undefined) return found;
  throw new Error(`${option} knows ${names.join(', ')}, not "${text}"`);
}
