import type { AdminResult } from 'incumbent';
import { administer, leaderWords } from '../administer.ts';
import type { Context } from '../context.ts';
import type { VacateOptions } from '../options.ts';
import { span } from '../output/span.ts';
import { isoTime, localTime } from '../terminal/time.ts';

export async function vacate(options: VacateOptions, context: Context): Promise<number> {
  const force = options.force === true;
  const { election: name } = options;
  return administer(options, context, {
    request: ({ election, signal, of }) => election.vacate({ force, signal, ...of }),
    words({ changed, view, lifted }) {
      if (lifted !== undefined && view.state !== 'led') return `lifted ${holdWords(name, lifted)}`;
      if (changed) {
        const effect = force ? '; its term ends even if its work does not stop' : '';
        const hold = lifted === undefined ? '' : `; lifted ${holdWords(name, lifted)}`;
        return `asked ${leaderWords(view)} to give up election "${name}"${effect}${hold}`;
      }
      return view.state === 'led'
        ? `${leaderWords(view)} has been asked already; \`--force\` ends its term`
        : `nobody leads election "${name}", so there is nobody to ask`;
    },
    details: { request: 'vacate', force },
    results: ({ lifted }) => ({
      lifted:
        lifted === undefined
          ? null
          : {
              by: lifted.by ?? null,
              for: lifted.for ?? null,
              until: isoTime(lifted.untilUnixMs),
            },
    }),
  });
}

function holdWords(
  name: string,
  { by, for: whom, untilUnixMs }: NonNullable<AdminResult['lifted']>,
): string {
  const whose = by === undefined ? '' : ` of "${by}"`;
  const forWhom = whom === undefined ? '' : ` for "${whom}"`;
  const left = span(Math.max(0, untilUnixMs - Date.now()));
  const kept = `it would have been kept${forWhom} until ${localTime(untilUnixMs)} (${left} more)`;
  return `the hold${whose} on election "${name}": ${kept}`;
}
