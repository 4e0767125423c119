/** Candidates that are broken on purpose: chaos that does not find them proves nothing. */

import { breakCandidates, brokenCandidates as brokenElsewhere } from '../file-store/broken.ts';
import type { Change } from '../harness/changed-command.ts';
import { changedCommand } from '../harness/changed-command.ts';

export type Broken = 'no-guard' | 'deaf-guard' | 'no-wait' | 'reads-confirm' | 'leaves-place';

interface BrokenForm {
  readonly about: string;
  /** Further parameters of the store's URL. */
  readonly parameters?: string;
  readonly changes?: readonly Change[];
}

export const brokenCandidates: Readonly<Record<Broken, BrokenForm>> = {
  'no-guard': brokenElsewhere['no-guard'],
  'deaf-guard': { about: brokenElsewhere['deaf-guard'].about },
  'no-wait': {
    about: 'a successor does not wait the belief of an unclean leader out',
    parameters: '&predecessor-wait=off',
  },
  'reads-confirm': {
    about: 'a leader believes in what its own server shows it, without the quorum',
    changes: [
      {
        file: 'incumbent/dist/backends/zookeeper/session.js',
        from: 'const transaction = this.#client.transaction();',
        to:
          'const seen = await Promise.all(places.map(({ name }) => this.#client.stat(name, { signal })));\n' +
          'return places.find((_place, index) => seen[index].stat === null);\n' +
          'const transaction = this.#client.transaction();',
      },
    ],
  },
  'leaves-place': {
    about: 'a candidate that lost its term leaves its place behind in the queue',
    changes: [
      {
        file: 'incumbent/dist/mechanisms/queue/seat.js',
        from: 'async release(end, signal) {',
        to: "async release(end, signal) {\nif (['renewal-failed', 'stalled'].includes(end.reason)) return false;",
      },
      {
        file: 'incumbent/dist/mechanisms/queue/seat.js',
        from: 'if (await (this.#left ?? this.#leftovers.leave(this.#entry, this.#place, this.#pending)))',
        to: 'if (this.#place !== undefined)',
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
