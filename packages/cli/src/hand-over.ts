/** A hand-over that an operator asks for, and waits for until it is done. */
import type { AdminResult, View } from 'incumbent';
import { formatDuration, parseDuration } from 'incumbent';
import { asJson, leaderWords } from './administer.ts';
import type { OneSeat } from './ask.ts';
import { leave, missingPlace, openElection } from './ask.ts';
import { waitingIn } from './commands/drain.ts';
import type { Context } from './context.ts';
import { CommandError, exitCodes, UsageError } from './failure.ts';
import type { HandOverOptions } from './options.ts';
import { tokenOf } from './output/describe.ts';
import { span } from './output/span.ts';
import { toJson, visible } from './terminal/text.ts';

/** Longer than the bound of a failover that `agent` prints with its defaults and one `--fence`. */
export const defaultWait = '3m';

type HandOver = HandOverOptions & {
  readonly request: 'failover' | 'transfer';
  readonly to?: string;
};

/** The term that was asked to end, and the candidate that shall lead. */
export interface Asked {
  readonly from: string;
  readonly token: bigint;
  readonly to: string | undefined;
}

/**
 * The state of a hand-over, as a view shows it.
 *
 * - `waiting`: it may still be done. `why` says how far it is.
 * - `done`: the new leader leads, and is ready.
 * - `failed`: it cannot be done any more.
 */
export type Progress =
  | { readonly state: 'waiting'; readonly why: string }
  | { readonly state: 'done' }
  | { readonly state: 'failed'; readonly why: string };

export function progressOf({ from, token, to }: Asked, view: View): Progress {
  switch (view.state) {
    case 'ended':
      return { state: 'failed', why: 'the election was ended for everybody' };
    case 'unknown':
      return { state: 'waiting', why: `the store cannot be read: ${view.error?.message ?? ''}` };
    case 'vacant':
      return { state: 'waiting', why: 'nobody leads' };
    case 'led': {
      const { leader } = view;
      const who = leaderWords(view);
      if (leader === undefined || view.token === undefined || view.token <= token) {
        return { state: 'waiting', why: `${who} has not given way and leads still` };
      }
      if (to !== undefined && leader.id !== to) return { state: 'failed', why: `${who} leads` };
      if (to === undefined && leader.id === from)
        return { state: 'failed', why: `${who} leads again` };
      if (view.ready === false)
        return { state: 'waiting', why: `${who} leads, and is not ready yet` };
      return { state: 'done' };
    }
    default:
      return view.state satisfies never;
  }
}

/**
 * @param before what the command saw first
 * @param then what the request found
 * @param leadsAlready the wanted candidate, so its present term counts
 */
export function askedIn(
  before: View,
  then: View,
  leadsAlready: boolean,
  to: string | undefined,
): Asked {
  // A leader that has gone between the two looks is still the one that shall not come back.
  const { leader, token = 0n } = then.leader === undefined ? before : then;
  const counted = then.token !== undefined && then.token > token ? then.token : token;
  return { from: leader?.id ?? '', token: leadsAlready ? counted - 1n : counted, to };
}

/** Asks for it, and with `--wait` ends when it is done. */
export async function handOver(options: HandOver, context: Context): Promise<number> {
  const waitMs =
    options.wait === undefined
      ? undefined
      : parseDuration('--wait', options.wait === true ? defaultWait : options.wait);
  if (waitMs === 0) {
    throw new UsageError(
      `--wait ${options.wait}: no hand-over could be seen to be done; leave --wait out, or give it a time`,
    );
  }
  const opened = await openElection(options, context, { asksOnly: true });
  const { election } = opened;
  let seat: OneSeat = { election, of: {} };
  try {
    const missing = await opened.within((signal) =>
      missingPlace(opened.store, options.election, signal),
    );
    if (missing !== undefined) throw nobodyLeads(options, `the ${missing} does not exist (yet)`);
    const beganMs = performance.now();
    const { before, result } = await opened.within(async (signal) => {
      const first = await election.inspect({ signal });
      await opened.noteNeverLed(first.view, signal);
      seat = opened.oneSeat(first.seats, options.seat);
      const { view } =
        seat.of.seat === undefined ? first : await seat.election.inspect({ signal, ...seat.of });
      return { before: view, result: await ask(options, seat, view, signal) };
    });
    // The term that was asked, and not one that came after it.
    const then = result?.asked ?? before;
    const told = { changed: result?.changed === true, view: then };
    if (waitMs === undefined) {
      tellAsked(options, context, told);
      return exitCodes.ok;
    }
    const asked = askedIn(before, then, result === undefined, options.to);
    const view = await follow(asked, seat, waitMs, options, context);
    tellDone(options, context, told, view, performance.now() - beganMs);
    return exitCodes.ok;
  } finally {
    leave(seat.election);
    leave(election);
  }
}

/**
 * @returns undefined when the wanted candidate leads already, and there is nothing to ask for
 * @throws CommandError, RefusedError before anything is changed
 */
async function ask(
  options: HandOver,
  { election, of }: OneSeat,
  before: View,
  signal: AbortSignal,
): Promise<AdminResult | undefined> {
  const { to, request } = options;
  if (request === 'failover' && before.state !== 'led') throw nobodyLeads(options, 'it is vacant');
  if (request === 'failover' && to !== undefined && before.leader?.id === to) return undefined;
  if (to !== undefined) return election.transfer(to, { signal, ...of });
  const others = await waitingIn({ election, signal });
  if (others !== undefined && !others.some(({ id }) => id !== before.leader?.id)) {
    throw new CommandError(
      'NO_CANDIDATE',
      exitCodes.no,
      `no other candidate waits in election "${options.election}", so ${leaderWords(before)} was not ` +
        'asked to go (`incumbent vacate` asks all the same)',
    );
  }
  return election.vacate({ signal, ...of });
}

async function follow(
  asked: Asked,
  { election, of }: OneSeat,
  waitMs: number,
  options: HandOver,
  { signal }: Context,
): Promise<View> {
  const stop = new AbortController();
  const interrupt = () => stop.abort(signal.reason);
  signal.addEventListener('abort', interrupt, { once: true });
  const timer = setTimeout(() => stop.abort(), waitMs);
  let last: View | undefined;
  let why = 'the store has not answered';
  try {
    signal.throwIfAborted();
    for await (const view of election.observe({ signal: stop.signal, ...of })) {
      const progress = progressOf(asked, view);
      if (progress.state === 'done') return view;
      last = view;
      why = progress.why;
      if (progress.state === 'failed') throw notDone(options, exitCodes.notDone, why);
    }
    signal.throwIfAborted();
    const isUnread = last === undefined || last.state === 'unknown';
    const code = isUnread ? exitCodes.storeUnavailable : exitCodes.temporary;
    throw notDone(
      options,
      code,
      `${why} after ${formatDuration(waitMs)} (--wait); the request stays, and may still be granted`,
    );
  } finally {
    clearTimeout(timer);
    stop.abort();
    signal.removeEventListener('abort', interrupt);
  }
}

function nobodyLeads({ election }: HandOver, why: string): CommandError {
  return new CommandError(
    'NO_LEADER',
    exitCodes.no,
    `nobody leads election "${election}", so there is nobody to ask: ${why}`,
  );
}

function notDone(options: HandOver, exitCode: number, why: string): CommandError {
  const { election, request, to } = options;
  const wanted = to === undefined ? '' : ` to "${to}"`;
  return new CommandError(
    'NOT_DONE',
    exitCode,
    `the ${request} of election "${election}"${wanted} is not done: ${why}`,
  );
}

type Result = Pick<AdminResult, 'changed' | 'view'>;

function tellAsked(options: HandOver, context: Context, result: Result): void {
  const { election, request, to } = options;
  const who = leaderWords(result.view);
  const aim = to === undefined ? 'give way to another' : `hand over to "${to}"`;
  const words =
    to !== undefined && result.view.leader?.id === to
      ? `${who} leads election "${election}" already`
      : result.changed
        ? `asked ${who} of election "${election}" to ${aim}`
        : `${who} of election "${election}" has been asked already to go`;
  const fields = { election, ...seatField(options), request, to: to ?? null, ...asJson(result) };
  context.stdout.write(`${options.json ? toJson(fields) : visible(words)}\n`);
}

function tellDone(
  options: HandOver,
  context: Context,
  result: Result,
  view: View,
  tookMs: number,
): void {
  const { election, request, to } = options;
  const leads = `${leaderWords(view)} leads election "${election}"`;
  const wasThere = to !== undefined && result.view.leader?.id === to;
  const words = wasThere
    ? `${leads} already, and is ready`
    : `${leads} and is ready, after ${span(tookMs)}`;
  const after = { leader: view.leader ?? null, token: tokenOf(view), tookMs: Math.round(tookMs) };
  const fields = {
    election,
    ...seatField(options),
    request,
    to: to ?? null,
    ...asJson(result),
    done: true,
    after,
  };
  context.stdout.write(`${options.json ? toJson(fields) : visible(words)}\n`);
}

function seatField({ seat }: HandOver): object {
  return seat === undefined ? {} : { seat };
}
