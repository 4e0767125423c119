import { administer } from '../administer.ts';
import type { Context } from '../context.ts';
import { CommandError, exitCodes } from '../failure.ts';
import type { EndOptions } from '../options.ts';
import { isLedOnce } from '../output/describe.ts';

export async function end(options: EndOptions, context: Context): Promise<number> {
  const { election: name, force } = options;
  const remove = options.remove === true;
  return administer(options, context, {
    allSeats: true,
    request: ({ election, signal }) => election.end({ signal, remove }),
    words: ({ changed }) => words(name, changed, remove),
    details: { request: 'end', remove },
    // A misspelt name would end the wrong election before it began, and the right one would go on.
    async check({ view }, { meantInstead }) {
      if (isLedOnce(view) || view.state !== 'vacant') return;
      throw new CommandError(
        'NEVER_LED',
        exitCodes.no,
        `this store has no record of a leader of election "${name}"${await meantInstead()} ` +
          '(`--force` ends it all the same)',
      );
    },
    makes: force === true,
  });
}

function words(name: string, changed: boolean, remove: boolean): string {
  if (remove) {
    return changed
      ? `election "${name}" is ended for everybody, and removed`
      : `election "${name}" was removed already`;
  }
  return changed
    ? `election "${name}" is ended for everybody; \`init --reopen\` opens it again`
    : `election "${name}" was ended already`;
}
