import { administer } from '../administer.ts';
import { ask } from '../ask.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import type { InitOptions } from '../options.ts';
import { toJson, visible } from '../output/text.ts';

export async function init(options: InitOptions, context: Context): Promise<number> {
  if (options.reopen) {
    return administer(
      options,
      context,
      async ({ election, signal }) => {
        await election.init({ signal });
        return election.reopen({ signal });
      },
      ({ changed }) =>
        changed
          ? `election "${options.election}" is open again`
          : `election "${options.election}" was open already`,
      { request: 'reopen' },
      { setUp: true },
    );
  }
  const [state, url] = await ask(
    options,
    context,
    async ({ election, store, signal }) => {
      await election.init({ signal });
      // What was made is no use if it cannot be read.
      const view = await election.leader({ signal });
      return [view.state, store.url];
    },
    { setUp: true },
  );
  if (options.json) {
    const line = { election: options.election, store: url, ready: true, state };
    context.stdout.write(`${toJson(line)}\n`);
  } else {
    const ended = state === 'ended' ? ', but it was ended: `init --reopen` opens it again' : '';
    const line = `election "${options.election}" is ready on ${url}${ended}`;
    context.stdout.write(`${visible(line)}\n`);
  }
  return exitCodes.ok;
}
