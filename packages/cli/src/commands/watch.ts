import type { View } from 'incumbent';
import type { OneSeat } from '../ask.ts';
import { leave, openElection, untilThere } from '../ask.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import type { SeatQuestion } from '../options.ts';
import { isLedOnce, sinceOf, stateTone, tokenOf, viewLine } from '../output/describe.ts';
import { noLeaderOnRecord, whyVacant } from '../output/vacancy.ts';
import type { Paint } from '../terminal/style.ts';
import { painter } from '../terminal/style.ts';
import { padEnd, toJson, visible } from '../terminal/text.ts';
import { isoTime, localTime } from '../terminal/time.ts';
import { within as briefly } from '../url/reach.ts';

/** How long a line waits for the reason of a vacancy. */
const lookForMs = 2_000;

export async function watch(options: SeatQuestion, context: Context): Promise<number> {
  const opened = await openElection(options, context);
  const { election } = opened;
  let asked: OneSeat = { election, of: {} };
  const paint = painter(context.stdout, context.env);
  // Observing alone does not keep a process alive.
  const stayAlive = setInterval(() => {}, 2 ** 30);
  const print = (view: View, nowUnixMs: number, why?: string) => {
    const line = options.json
      ? toJson(asJson(options, view, why, nowUnixMs))
      : asLine(view, why, nowUnixMs, paint);
    context.stdout.write(`${line}\n`);
  };
  /** Only a hint: a change that comes meanwhile is told all the same, after it. */
  const explain = async ({ state }: View): Promise<string | undefined> => {
    if (state !== 'vacant') return undefined;
    const stop = new AbortController();
    try {
      const looking = opened.inspect(asked.election, stop.signal, asked.of);
      const snapshot = await briefly(lookForMs, context.signal, looking);
      return snapshot.view.state === 'vacant' ? whyVacant(snapshot, Date.now()) : undefined;
    } catch {
      return undefined;
    } finally {
      stop.abort();
    }
  };
  /** Undefined also when the store is away: watching goes on then, and shows the first seat. */
  const countSeats = async (): Promise<number | undefined> => {
    const stop = new AbortController();
    try {
      const looking = election.inspect({ signal: stop.signal });
      return (await briefly(lookForMs, context.signal, looking)).seats;
    } catch (error) {
      if (options.seat !== undefined) throw error;
      return undefined;
    } finally {
      stop.abort();
    }
  };
  const isNeverLed = (view: View) => view.state === 'vacant' && !isLedOnce(view);
  try {
    // Watching creates nothing. An election that does not exist is shown as vacant.
    let isSaid = false;
    let isNoted = await untilThere(opened, options, context, context.signal, () => {
      print({ state: 'vacant', sinceUnixMs: Date.now() }, Date.now());
      isSaid = true;
    });
    asked = opened.oneSeat(await countSeats(), options.seat);
    const observed = { signal: context.signal, ...asked.of };
    for await (const view of asked.election.observe(observed)) {
      // Said already, before there was a store.
      const nowUnixMs = Date.now();
      if (!isSaid || !isNeverLed(view)) print(view, nowUnixMs, await explain(view));
      isSaid = false;
      if (!isNoted && view.state !== 'unknown') {
        await opened.noteNeverLed(view, context.signal);
        isNoted = true;
      }
    }
    context.signal.throwIfAborted();
    return exitCodes.ok;
  } finally {
    clearInterval(stayAlive);
    leave(asked.election);
    leave(election);
  }
}

function asJson(
  { election, seat }: SeatQuestion,
  view: View,
  why: string | undefined,
  nowUnixMs: number,
): object {
  return {
    time: isoTime(nowUnixMs),
    election,
    ...(seat !== undefined && { seat }),
    state: view.state,
    leader: view.leader ?? null,
    ready: view.ready ?? null,
    token: tokenOf(view),
    since: sinceOf(view),
    ...(why === undefined ? {} : { why }),
    ...(view.error === undefined ? {} : { error: view.error.message }),
  };
}

/** @param why the seat is vacant */
export function asLine(
  view: View,
  why: string | undefined,
  nowUnixMs: number,
  paint: Paint,
): string {
  const time = paint('faint', localTime(nowUnixMs, true));
  const state = paint(stateTone(view), padEnd(view.state, 'unknown'.length));
  // The line itself already says whether the election has ever been led.
  const rest = why === undefined || why === noLeaderOnRecord ? '' : `; ${visible(why)}`;
  return `${time}  ${state}  ${viewLine(view)}${rest}`;
}
