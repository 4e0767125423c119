import type { View } from 'incumbent';
import { leave, openElection, untilThere } from '../ask.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import type { ElectionQuestion } from '../options.ts';
import { isLedOnce, sinceOf, stateTone, tokenOf, viewLine } from '../output/describe.ts';
import { noLeaderOnRecord, whyVacant } from '../output/vacancy.ts';
import type { Paint } from '../terminal/style.ts';
import { painter } from '../terminal/style.ts';
import { padEnd, toJson, visible } from '../terminal/text.ts';
import { isoTime, localTime } from '../terminal/time.ts';
import { within as briefly } from '../url/reach.ts';

/** How long a line waits for the reason of a vacancy. */
const lookForMs = 2_000;

export async function watch(options: ElectionQuestion, context: Context): Promise<number> {
  const opened = await openElection(options, context);
  const { election } = opened;
  const paint = painter(context.stdout, context.env);
  // Observing alone does not keep a process alive.
  const stayAlive = setInterval(() => {}, 2 ** 30);
  const print = (view: View, nowUnixMs: number, why?: string) => {
    const line = options.json
      ? toJson(asJson(options.election, view, why, nowUnixMs))
      : asLine(view, why, nowUnixMs, paint);
    context.stdout.write(`${line}\n`);
  };
  /** Only a hint: a change that comes meanwhile is told all the same, after it. */
  const explain = async ({ state }: View): Promise<string | undefined> => {
    if (state !== 'vacant') return undefined;
    const stop = new AbortController();
    try {
      const looking = opened.inspect(election, stop.signal);
      const snapshot = await briefly(lookForMs, context.signal, looking);
      return snapshot.view.state === 'vacant' ? whyVacant(snapshot, Date.now()) : undefined;
    } catch {
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
    for await (const view of election.observe({ signal: context.signal })) {
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
    leave(election);
  }
}

function asJson(election: string, view: View, why: string | undefined, nowUnixMs: number): object {
  return {
    time: isoTime(nowUnixMs),
    election,
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
