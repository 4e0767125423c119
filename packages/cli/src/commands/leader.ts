import { look } from '../ask.ts';
import type { Context } from '../context.ts';
import { CommandError, exitCodes } from '../failure.ts';
import type { LeaderOptions } from '../options.ts';
import { sinceOf, tokenOf } from '../output/describe.ts';
import { whyVacant } from '../output/vacancy.ts';
import { toJson, visible } from '../terminal/text.ts';

export async function leader(options: LeaderOptions, context: Context): Promise<number> {
  const snapshot = await look(options, context, async (question) => {
    const found = await question.inspect();
    await question.noteNeverLed(found.view);
    return found;
  });
  const { view } = snapshot;
  if (view.state !== 'led' || view.leader === undefined) {
    const why =
      view.state === 'ended'
        ? 'it was ended for everybody'
        : (whyVacant(snapshot, Date.now()) ?? 'it is vacant');
    throw new CommandError(
      'NO_LEADER',
      exitCodes.no,
      `nobody leads election "${options.election}": ${why}`,
    );
  }
  const { id, addresses } = view.leader;
  if (options.json) {
    const line = { ...view.leader, token: tokenOf(view), since: sinceOf(view) };
    context.stdout.write(`${toJson({ election: options.election, ...line })}\n`);
    return exitCodes.ok;
  }
  const lines = options.id ? [id] : options.all ? addresses : addresses.slice(0, 1);
  if (lines.length === 0) {
    throw new CommandError(
      'NO_ADDRESS',
      exitCodes.no,
      `the leader "${id}" of election "${options.election}" has told no address; --id prints its ` +
        'id, and `incumbent run --address` tells one',
    );
  }
  context.stdout.write(`${lines.map(visible).join('\n')}\n`);
  return exitCodes.ok;
}
