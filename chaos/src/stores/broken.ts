/** Candidates that are broken on purpose: chaos that does not find them proves nothing. */

import { breakCandidates, brokenCandidates as brokenElsewhere } from '../file-store/broken.ts';
import type { Change } from '../harness/changed-command.ts';
import { changedCommand } from '../harness/changed-command.ts';
import type { StoreName } from './stage.ts';

export type Broken =
  | 'no-guard'
  | 'deaf-guard'
  | 'no-conflicts'
  | 'absent-vacant'
  | 'no-floor'
  | 'async-standby'
  | 'no-wait'
  | 'impatient';

interface BrokenForm {
  readonly about: string;
  readonly stores: readonly StoreName[];
  /** Further parameters of the store's URL. */
  readonly parameters?: string;
  readonly changes?: readonly Change[];
}

const all: readonly StoreName[] = ['postgres', 'redis', 'etcd'];

export const brokenCandidates: Readonly<Record<Broken, BrokenForm>> = {
  'no-guard': { ...brokenElsewhere['no-guard'], stores: all },
  'deaf-guard': { about: brokenElsewhere['deaf-guard'].about, stores: all },
  'no-conflicts': {
    about: 'an adapter writes whatever the version of the record is',
    stores: ['postgres', 'redis'],
    changes: [
      {
        file: 'incumbent/dist/backends/postgres/statements.js',
        from: 'and version = $',
        to: "and '' <= $",
      },
      {
        file: 'incumbent/dist/backends/redis/scripts.js',
        from: "or kept[2] ~= ARGV[1] then return { 'conflict', '' }",
        to: "then return { 'conflict', '' }",
      },
    ],
  },
  'absent-vacant': {
    about: 'a missing record is taken for a vacant seat, and a restart for nothing',
    stores: ['redis'],
    changes: [
      {
        file: 'incumbent/dist/mechanisms/lease/loss.js',
        from: 'return Math.max(0, sinceMs +',
        to: 'return Math.min(0, sinceMs +',
      },
    ],
  },
  'no-floor': {
    about: 'candidates that start after the store was emptied are not told of earlier tokens',
    stores: ['redis'],
    changes: [
      {
        file: 'incumbent/dist/backends/redis/store.js',
        from: 'get tokenFloor() {',
        to: 'get tokenFloor() {\nreturn 0n;',
      },
    ],
  },
  'async-standby': {
    about: 'a standby that takes over may lack what the primary has confirmed',
    stores: ['postgres'],
  },
  'no-wait': {
    about: 'a successor does not wait the belief of an unclean leader out',
    stores: ['etcd'],
    parameters: '&predecessor-wait=off',
  },
  impatient: {
    about: 'a candidate that waits takes the seat after a quarter of a lease',
    stores: ['postgres', 'redis'],
    changes: [
      {
        file: 'incumbent/dist/mechanisms/lease/race.js',
        from: 'const leftMs = record.leaseMs - unchangedMs;',
        to: 'const leftMs = record.leaseMs / 4 - unchangedMs;',
      },
    ],
  },
};

/** @returns the file to start in place of `incumbent`; undefined: that itself */
export function commandOf(broken: Broken, directory: string): string | undefined {
  if (broken === 'no-guard' || broken === 'deaf-guard') return breakCandidates(broken, directory);
  const { changes } = brokenCandidates[broken];
  return changes === undefined ? undefined : changedCommand(broken, changes, directory);
}
