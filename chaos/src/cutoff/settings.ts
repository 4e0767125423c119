import { parseArgs } from 'node:util';
import { parseDuration } from 'incumbent';
import type { CandidatePlan } from './messages.ts';
import { shortestTimeoutMs, usualTimeoutMs } from './plan.ts';

export type Broken = NonNullable<CandidatePlan['broken']>;

export const broken: Readonly<Record<Broken, string>> = {
  'no-wait': 'the successor does not wait (predecessorWait: "off")',
  arithmetic: 'the session is reckoned to last T - (R + tick) after a check, and nobody waits',
  pings: 'confirmations are answered by the server alone, as pings are',
};

export interface Settings {
  readonly runs: number;
  readonly timeoutsMs: readonly number[];
  readonly length: 'short' | 'long';
  readonly peer: 'kazoo' | 'none' | 'only';
  readonly json: boolean;
  readonly broken: Broken | undefined;
  /** Where to write what happened in the first round. */
  readonly record: string | undefined;
}

export const usage: string = `npm run chaos:cutoff -- [options]

Leaders whose ZooKeeper server is cut off from the others, while they still reach it.

  --runs N         default 20
  --short          one run of the first two rounds: part of npm test
  --timeout LIST   session timeouts, from 4s (two ticks); default 4s,10s
  --peer NAME      kazoo (default): kazoo's Election beside ours, where it is installed; none; only
  --json           the results as JSON on the last line but one
  --record FILE    what happened in the first round, for docs/zookeeper-safety.md
  --broken NAME    candidates that are broken on purpose: the run must fail
${Object.entries(broken)
  .map(([name, about]) => `                     ${name.padEnd(10)} ${about}`)
  .join('\n')}`;

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
      broken: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  return {
    runs: readRuns(values.runs ?? (values.short ? '1' : '20')),
    timeoutsMs: (values.timeout ?? `${shortestTimeoutMs},${usualTimeoutMs}`)
      .split(',')
      .map(readTimeout),
    length: values.short ? 'short' : 'long',
    peer: oneOf('--peer', values.peer, ['kazoo', 'none', 'only']),
    json: values.json,
    broken:
      values.broken === undefined
        ? undefined
        : oneOf('--broken', values.broken, Object.keys(broken) as Broken[]),
    record: values.record,
  };
}

function readRuns(text: string): number {
  const runs = Number(text);
  if (/^\d+$/.test(text) && runs >= 1 && runs <= 10_000) return runs;
  throw new Error(`--runs must be a whole number from 1 to 10000, not "${text}"`);
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
