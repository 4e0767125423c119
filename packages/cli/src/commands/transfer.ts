import { administer, leaderWords } from '../administer.ts';
import type { Context } from '../context.ts';
import { handOver } from '../hand-over.ts';
import type { TransferOptions } from '../options.ts';

export async function transfer(options: TransferOptions, context: Context): Promise<number> {
  const { to, wait } = options;
  if (wait !== undefined) return handOver({ ...options, request: 'transfer' }, context);
  return administer(options, context, {
    request: ({ election, signal, of }) => election.transfer(to, { signal, ...of }),
    words: ({ changed, view }) =>
      changed
        ? `asked ${leaderWords(view)} to hand election "${options.election}" over to "${to}"`
        : `${leaderWords(view)} has been asked already to hand over to "${to}"`,
    details: { request: 'transfer', to },
  });
}
