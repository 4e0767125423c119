import type { CandidateInfo, View } from 'incumbent';
import { formatDuration, parseDuration } from 'incumbent';
import { leave, look, openElection, tooLate, untilThere } from '../ask.ts';
import type { Context } from '../context.ts';
import { CommandError, exitCodes, UsageError } from '../failure.ts';
import type { LeaderOptions } from '../options.ts';
import { sinceOf, tokenOf } from '../output/describe.ts';
import { whyVacant } from '../output/vacancy.ts';
import { toJson, visible } from '../terminal/text.ts';

export async function leader(options: LeaderOptions, context: Context): Promise<number> {
  if (options.wait !== undefined && options.ready !== true) {
    throw new UsageError(
      `--wait ${options.wait} says how long --ready waits, and there is no --ready: give both, or ` +
        'neither',
    );
  }
  const view = await (options.ready
    ? readyLeader(options, context)
    : presentLeader(options, context));
  const { id, addresses } = view.leader;
  if (options.json) {
    const { token, since } = { token: tokenOf(view), since: sinceOf(view) };
    const line = { ...view.leader, ready: view.ready ?? true, token, since };
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

type Led = View & { readonly leader: CandidateInfo };

function isLed(view: View): view is Led {
  return view.state === 'led' && view.leader !== undefined;
}

async function presentLeader(options: LeaderOptions, context: Context): Promise<Led> {
  const snapshot = await look(options, context, async (question) => {
    const found = await question.inspect();
    await question.noteNeverLed(found.view);
    return found;
  });
  const { view } = snapshot;
  if (isLed(view)) return view;
  const why = view.state === 'ended' ? wasEnded : whyVacant(snapshot, Date.now());
  throw nobody(options, why ?? 'it is vacant');
}

/** As long as a term may take to become ready, unless its leader says otherwise. */
const waitByDefault = '60s';
const wasEnded = 'it was ended for everybody';
const lateReason = new Error('late');

/** Waits for a leader that is ready. The time of `--wait` counts from the first look. */
async function readyLeader(options: LeaderOptions, context: Context): Promise<Led> {
  const waitMs = parseDuration('--wait', options.wait ?? waitByDefault);
  const opened = await openElection(options, context);
  const { election, store } = opened;
  const late = new AbortController();
  const signal = AbortSignal.any([context.signal, late.signal]);
  // Observing alone does not keep a process alive: this does.
  const giveUpAfter = (ms: number) => setTimeout(() => late.abort(lateReason), ms);
  const timeoutMs = parseDuration('--timeout', options.timeout);
  let timer = giveUpAfter(timeoutMs);
  let last: View | undefined;
  const see = (view: View) => {
    if (last === undefined) {
      clearTimeout(timer);
      timer = giveUpAfter(waitMs);
    }
    last = view;
  };
  try {
    await untilThere(opened, options, context, signal, () => {
      see({ state: 'vacant', sinceUnixMs: Date.now() });
    });
    for await (const view of election.observe({ signal })) {
      see(view);
      if (isLed(view) && view.ready !== false) return view;
      if (view.state === 'ended') throw nobody(options, wasEnded);
    }
  } catch (error) {
    if (error !== lateReason) throw error;
  } finally {
    clearTimeout(timer);
    leave(election);
  }
  context.signal.throwIfAborted();
  throw last === undefined ? tooLate(timeoutMs, store.url) : notReady(options, last, waitMs);
}

/** @param last the last view that there was in the time */
function notReady(options: LeaderOptions, last: View, waitMs: number): CommandError {
  const time = formatDuration(waitMs);
  if (last.state === 'unknown') {
    const { error } = last;
    const cause = error === undefined ? {} : { cause: error };
    return new CommandError(
      'STORE_UNAVAILABLE',
      exitCodes.storeUnavailable,
      `the store could not be read for ${time} (--wait)`,
      cause,
    );
  }
  if (!isLed(last)) return nobody(options, `it stayed vacant for ${time}`);
  return new CommandError(
    'NOT_READY',
    exitCodes.no,
    `the leader "${last.leader.id}" of election "${options.election}" was not ready within ${time} ` +
      '(--wait)',
  );
}

function nobody({ election }: LeaderOptions, why: string): CommandError {
  return new CommandError('NO_LEADER', exitCodes.no, `nobody leads election "${election}": ${why}`);
}
