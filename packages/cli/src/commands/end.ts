import { administer } from '../administer.ts';
import type { Context } from '../context.ts';
import type { ElectionQuestion } from '../options.ts';

export async function end(options: ElectionQuestion, context: Context): Promise<number> {
  return administer(
    options,
    context,
    ({ election, signal }) => election.end({ signal }),
    ({ changed }) =>
      changed
        ? `election "${options.election}" is ended for everybody; \`init --reopen\` opens it again`
        : `election "${options.election}" was ended already`,
    { request: 'end' },
  );
}
