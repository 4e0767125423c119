import { parseArgs } from 'node:util';
import type { Layout } from '@incumbent/servers/interop';
import { layouts } from '@incumbent/servers/interop';
import { seedFrom, wholeNumber } from '../harness/read-options.ts';

export interface Settings {
  /** Of the leader, with each library. */
  readonly changes: number;
  readonly layouts: readonly Layout[];
  readonly seed: number;
  readonly sessionMs: number;
}

export const usage: string = `npm run chaos -- interop [options]

  --changes N      changes of the leader with each library (default 100)
  --layout NAME    one of ${layouts.join(', ')} (default: all of them)
  --seed S         as an earlier run printed it: the same strikes, in the same order
  --session MS     session timeout (default 2000)`;

/** @throws an Error for people */
export function readSettings(argv: readonly string[]): Settings | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      changes: { type: 'string', default: '100' },
      layout: { type: 'string' },
      seed: { type: 'string' },
      session: { type: 'string', default: '2000' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return 'help';
  const { layout } = values;
  const chosen = layout === undefined ? layouts : layouts.filter((name) => name === layout);
  if (chosen.length === 0) {
    throw new Error(`--layout knows ${layouts.join(', ')}, not "${layout}"`);
  }
  return {
    changes: wholeNumber('--changes', values.changes, 2, 100_000),
    layouts: chosen,
    seed: seedFrom(values.seed),
    sessionMs: wholeNumber('--session', values.session, 1_000, 60_000),
  };
}
