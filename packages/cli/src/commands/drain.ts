import { administer } from '../administer.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../failure.ts';
import type { DrainOptions } from '../options.ts';
import { isoTime, localTime, span } from '../output/time.ts';
import { parseUntil } from '../until.ts';

export async function drain(options: DrainOptions, context: Context): Promise<number> {
  const { id, lift, election: name } = options;
  const nowUnixMs = Date.now();
  if (lift) {
    return administer(
      options,
      context,
      ({ election, signal }) => election.drain(id, new Date(0), { signal }),
      ({ changed }) =>
        changed
          ? `"${id}" takes part in election "${name}" again`
          : `"${id}" was not kept out of election "${name}"`,
      { request: 'drain', id, until: null },
    );
  }
  if (options.until === undefined) {
    throw new UsageError('drain needs --until, such as --until 2h, or --lift');
  }
  const untilUnixMs = parseUntil(options.until, nowUnixMs);
  return administer(
    options,
    context,
    ({ election, signal }) => election.drain(id, new Date(untilUnixMs), { signal }),
    ({ changed, view }) => {
      const until = `until ${localTime(untilUnixMs)} (${span(untilUnixMs - nowUnixMs)})`;
      const goes = view.leader?.id === id ? '; it leads, and was asked to go' : '';
      return changed
        ? `"${id}" is kept out of election "${name}" ${until}${goes}`
        : `"${id}" was kept out of election "${name}" ${until} already`;
    },
    { request: 'drain', id, until: isoTime(untilUnixMs) },
  );
}
