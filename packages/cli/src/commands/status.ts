import type { CandidateInfo } from 'incumbent';
import type { Question } from '../ask.ts';
import { look } from '../ask.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import type { StatusOptions } from '../options.ts';
import { candidateFields, isLedOnce, sinceOf, stateTone, tokenOf } from '../output/describe.ts';
import { span } from '../output/span.ts';
import type { Inspected } from '../output/vacancy.ts';
import { currentReservation, settlingWords, unfencedWords, whyVacant } from '../output/vacancy.ts';
import { painter } from '../terminal/style.ts';
import type { Cell } from '../terminal/table.ts';
import { fields } from '../terminal/table.ts';
import { toJson, visible } from '../terminal/text.ts';
import { isoTime, localTime } from '../terminal/time.ts';

export async function status(options: StatusOptions, context: Context): Promise<number> {
  const all = await look(options, context, async (question): Promise<readonly Seen[]> => {
    const first = await question.inspect();
    await question.noteNeverLed(first.view);
    const { url: store } = question.store;
    const { seats } = first;
    if (question.allSeats(seats) === question.election) {
      question.oneSeat(seats, options.seat);
      return [{ snapshot: first, store, waiting: await waitingIn(question, first) }];
    }
    const numbers =
      options.seat === undefined
        ? Array.from({ length: seats ?? 1 }, (_, index) => index + 1)
        : [options.seat];
    return Promise.all(
      numbers.map(async (seat) => {
        const snapshot = await question.inspect(question.oneSeat(seats, seat));
        return { snapshot, store, waiting: undefined, seat };
      }),
    );
  });
  const paint = painter(context.stdout, context.env);
  const texts = all.map((seen) =>
    options.json
      ? `${toJson(asJson(options.election, seen, Date.now()))}\n`
      : `${fields(asFields(options.election, seen, Date.now()), paint).join('\n')}\n`,
  );
  context.stdout.write(texts.join(options.json ? '' : '\n'));
  const isLed = all.some(({ snapshot }) => snapshot.view.state === 'led');
  return options.exitCode && !isLed ? exitCodes.no : exitCodes.ok;
}

/** The result of one look at an election. */
export interface Seen {
  readonly snapshot: Inspected;
  /** Its URL. */
  readonly store: string;
  /** Asked only while the seat is vacant; undefined: not asked, or the store cannot tell. */
  readonly waiting: readonly CandidateInfo[] | undefined;
  /** Where the election has several. */
  readonly seat?: number;
}

async function waitingIn(
  { election, signal }: Question,
  { view }: Inspected,
): Promise<readonly CandidateInfo[] | undefined> {
  if (view.state !== 'vacant') return undefined;
  // The list of candidates only adds to the answer.
  return election.candidates({ signal }).catch(() => {
    signal.throwIfAborted();
    return undefined;
  });
}

function asJson(
  election: string,
  { snapshot, store, waiting, seat }: Seen,
  nowUnixMs: number,
): object {
  const { view, request, settling } = snapshot;
  const reservation = currentReservation(snapshot, nowUnixMs);
  return {
    election,
    ...(seat !== undefined && { seat, seats: snapshot.seats }),
    store,
    state: view.state,
    leader: view.leader ?? null,
    ready: view.ready ?? null,
    token: tokenOf(view),
    since: sinceOf(view),
    leaseMs: snapshot.leaseMs ?? null,
    holderGone: snapshot.holderGone,
    settlingUntil: settling?.kind === 'settling' ? isoTime(settling.untilUnixMs) : null,
    reservedUntil: reservation === undefined ? null : isoTime(reservation.untilUnixMs),
    reservedFor: reservation?.for ?? null,
    waiting: waiting?.map(({ id }) => id) ?? null,
    unfenced: snapshot.unfenced.map(({ id, token, failure }) => ({
      id,
      token,
      failure: failure ?? null,
    })),
    drains: snapshot.drains.map(({ id, untilUnixMs }) => ({ id, until: isoTime(untilUnixMs) })),
    request:
      request === undefined
        ? null
        : { kind: request.kind, ...(request.kind === 'transfer' ? { to: request.to } : {}) },
  };
}

export function asFields(
  election: string,
  { snapshot, store, waiting, seat }: Seen,
  nowUnixMs: number,
): (readonly [string, readonly Cell[]])[] {
  const { view, request, history } = snapshot;
  const seatFields: [string, readonly Cell[]][] =
    seat === undefined ? [] : [['seat', [{ text: `${seat} of ${snapshot.seats}` }]]];
  const entries: [string, readonly Cell[]][] = [
    ['election', [{ text: visible(election) }]],
    ...seatFields,
    ['store', [{ text: visible(store) }]],
    ['state', [{ text: explainState(snapshot, nowUnixMs), tone: stateTone(view) }]],
    ...candidateFields(view.leader),
  ];
  if (isLedOnce(view)) {
    const label = view.state === 'led' ? 'token' : 'last token';
    entries.push([label, [{ text: String(view.token) }]]);
  }
  // When the candidate that held the seat is gone, the beginning of the vacancy is not known.
  if (
    view.state === 'led' ||
    (view.state === 'vacant' && history.length > 0 && !snapshot.holderGone)
  ) {
    const ago = span(Math.max(0, nowUnixMs - view.sinceUnixMs));
    entries.push(['since', [{ text: `${localTime(view.sinceUnixMs)} (${ago})` }]]);
  }
  if (snapshot.leaseMs !== undefined) entries.push(['lease', [{ text: span(snapshot.leaseMs) }]]);
  const reservation = currentReservation(snapshot, nowUnixMs);
  if (reservation !== undefined) {
    const { untilUnixMs } = reservation;
    const whom = reservation.for === undefined ? '' : `for ${visible(reservation.for)} `;
    const more = span(untilUnixMs - nowUnixMs);
    const text = `${whom}until ${localTime(untilUnixMs)} (${more} more)`;
    entries.push(['reserved', [{ text, tone: 'warn' }]]);
  }
  const settling = settlingWords(snapshot, nowUnixMs);
  if (settling !== undefined) {
    entries.push(['settling', [{ text: visible(settling), tone: 'warn' }]]);
  }
  if (waiting !== undefined && view.state === 'vacant') {
    const ids = waiting.map(({ id }) => visible(id)).join(', ');
    entries.push(['waiting', [{ text: ids === '' ? 'nobody' : ids }]]);
  }
  if (snapshot.unfenced.length > 0) {
    const words = snapshot.unfenced.map(unfencedWords);
    entries.push(['not fenced', words.map((text): Cell => ({ text: visible(text), tone: 'bad' }))]);
  }
  if (request !== undefined) {
    const text =
      request.kind === 'transfer' ? `hand over to ${visible(request.to)}` : 'give the seat up';
    entries.push(['asked to', [{ text, tone: 'warn' }]]);
  }
  if (snapshot.drains.length > 0) {
    const drains = snapshot.drains.map(
      ({ id, untilUnixMs }): Cell => ({
        text: `${visible(id)} until ${localTime(untilUnixMs)} (${span(untilUnixMs - nowUnixMs)} more)`,
        tone: 'warn',
      }),
    );
    entries.push(['drained', drains]);
  }
  return entries;
}

function explainState(snapshot: Inspected, nowUnixMs: number): string {
  const { state, ready } = snapshot.view;
  if (ready === false) return `${state}, not ready (its work is not prepared yet)`;
  if (state === 'ended') return 'ended (init --reopen opens it again)';
  if (state !== 'vacant') return state;
  // Facts that have a line of their own are not repeated here.
  const { settling: _, reservation: __, ...rest } = snapshot;
  const why = whyVacant({ ...rest, unfenced: [] }, nowUnixMs);
  return why === undefined ? state : `${state} (${why})`;
}
