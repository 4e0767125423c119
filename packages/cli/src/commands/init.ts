import { parseDuration } from 'incumbent';
import { administer } from '../administer.ts';
import { ask, bounded } from '../ask.ts';
import type { Context } from '../context.ts';
import { exitCodes, UsageError } from '../failure.ts';
import type { ElectionQuestion, InitOptions } from '../options.ts';
import { toJson, visible } from '../terminal/text.ts';

export async function init(options: InitOptions, context: Context): Promise<number> {
  const { election } = options;
  if (options.reopen) {
    if (election === undefined) {
      throw new UsageError(
        '--reopen opens one election again: name it, as in `incumbent init -e nightly --reopen`',
      );
    }
    return reopen({ ...options, election }, context);
  }
  return election === undefined
    ? prepareStore(options, context)
    : prepareElection({ ...options, election }, context);
}

/** Creates the objects that all elections of the store share. */
async function prepareStore(options: InitOptions, context: Context): Promise<number> {
  const timeoutMs = parseDuration('--timeout', options.timeout);
  const store = await context.openStore(options.store, {
    timeoutMs,
    timeoutName: '--timeout',
    signal: context.signal,
    asksOnly: true,
    setUp: true,
  });
  const made = await bounded(timeoutMs, store.url, context.signal, async (signal) =>
    store.prepare?.(signal),
  );
  tell(
    made === undefined
      ? `nothing is missing on ${store.url}: elections can be held there`
      : `made ${made}: elections can be held on ${store.url}`,
    { store: store.url, ready: true, made: made ?? null },
    options,
    context,
  );
  return exitCodes.ok;
}

async function prepareElection(options: ElectionQuestion, context: Context): Promise<number> {
  const { election: name } = options;
  const [made, state, url] = await ask(
    options,
    context,
    async ({ election, store, signal }) => {
      const prepared = await store.prepare?.(signal);
      await election.init({ signal });
      // A record that cannot be read is no use, so we read it back.
      const view = await election.leader({ signal });
      return [prepared, view.state, store.url];
    },
    { setUp: true },
  );
  const ended = state === 'ended' ? ', but it was ended: `init --reopen` opens it again' : '';
  const before = made === undefined ? '' : `made ${made}: `;
  tell(
    `${before}election "${name}" is ready on ${url}${ended}`,
    { election: name, store: url, ready: true, made: made ?? null, state },
    options,
    context,
  );
  return exitCodes.ok;
}

async function reopen(options: ElectionQuestion, context: Context): Promise<number> {
  const { election: name } = options;
  return administer(options, context, {
    allSeats: true,
    request: ({ election, signal }) => election.reopen({ signal }),
    words: ({ changed }) =>
      changed ? `election "${name}" is open again` : `election "${name}" was open already`,
    details: { request: 'reopen' },
    reopens: true,
  });
}

function tell(
  sentence: string,
  fields: Readonly<Record<string, unknown>>,
  { json }: InitOptions,
  { stdout }: Context,
): void {
  stdout.write(`${json ? toJson(fields) : visible(sentence)}\n`);
}
