import { administer, leaderWords } from '../administer.ts';
import type { Context } from '../context.ts';
import type { VacateOptions } from '../options.ts';

export async function vacate(options: VacateOptions, context: Context): Promise<number> {
  const force = options.force === true;
  return administer(options, context, {
    request: ({ election, signal }) => election.vacate({ force, signal }),
    words({ changed, view }) {
      if (changed) {
        const effect = force ? '; its term ends even if its work does not stop' : '';
        return `asked ${leaderWords(view)} to give up election "${options.election}"${effect}`;
      }
      return view.state === 'led'
        ? `${leaderWords(view)} has been asked already; \`--force\` ends its term`
        : `nobody leads election "${options.election}", so there is nobody to ask`;
    },
    details: { request: 'vacate', force },
  });
}
