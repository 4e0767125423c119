/**
 * Candidates that are broken on purpose: chaos that does not find them proves nothing. Each is a copy
 * of the built command line with a few lines changed, or a program in its place.
 */
import { fileURLToPath } from 'node:url';
import type { Change } from '../harness/changed-command.ts';
import { changedCommand } from '../harness/changed-command.ts';

export type Broken = 'no-guard' | 'deaf-guard' | 'no-watchers' | 'rash-proof';

const watcherOfSupervisor: Change = {
  file: 'cli/dist/guard/gate.js',
  from: '`{ read -r x; ',
  to: '`{ exit; read -r x; ',
};

export const brokenCandidates: Readonly<
  Record<Broken, { readonly about: string; readonly changes?: readonly Change[] }>
> = {
  'no-guard': { about: 'a supervisor starts its program itself, without a guard' },
  'deaf-guard': {
    about: 'guard and watchers ignore the end of belief',
    changes: [
      {
        file: 'cli/guard/guard.cjs',
        from: "if (!(leftMs > killMarginMs)) kill('belief-over');",
        to: 'if (leftMs !== leftMs);',
      },
      {
        file: 'cli/guard/guard.cjs',
        from: 'else if (!(leftMs > stopMarginMs)) stop(',
        to: 'else if (leftMs !== leftMs) stop(',
      },
      {
        file: 'cli/guard/guard.cjs',
        from: 'const seconds = (left(belief) - killMarginMs / 2 - lookMs) / 1000;',
        to: 'const seconds = 3600;',
      },
    ],
  },
  'no-watchers': {
    about: "the program's group has no watchers",
    changes: [watcherOfSupervisor, { file: 'cli/dist/guard/gate.js', from: '`exec ', to: '`: ' }],
  },
  'rash-proof': {
    about: 'a dead supervisor proves its term dead, although other processes still act for it',
    changes: [
      {
        file: 'incumbent/dist/backends/file/process-proof.js',
        from: 'actors.every((actor) => this.#isDead(actor)) &&',
        to: 'this.#isDead(actors[0]) ||',
      },
      // With it everybody dies so quickly that the mistake cannot show.
      watcherOfSupervisor,
    ],
  },
};

/** @returns the file to start in place of `incumbent` */
export function breakCandidates(broken: Broken, directory: string): string {
  const { changes } = brokenCandidates[broken];
  if (changes === undefined) return fileURLToPath(new URL(`./${broken}.js`, import.meta.url));
  return changedCommand(broken, changes, directory);
}
