import { setTimeout as sleep } from 'node:timers/promises';
import type { View } from 'incumbent';
import { leave, missingPlace, noteMissing, openElection } from '../ask.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import type { ElectionQuestion } from '../options.ts';
import { isLedOnce, sinceOf, stateTone, tokenOf, viewLine } from '../output/describe.ts';
import type { Paint } from '../output/style.ts';
import { painter } from '../output/style.ts';
import { padEnd, toJson } from '../output/text.ts';
import { isoTime, localTime } from '../output/time.ts';

/** How often a store that is not there is looked for. */
const lookAgainMs = 250;

export async function watch(options: ElectionQuestion, context: Context): Promise<number> {
  const { election, store, within } = await openElection(options, context);
  const paint = painter(context.stdout, context.env);
  // Observing alone does not keep a process alive.
  const stayAlive = setInterval(() => {}, 2 ** 30);
  const print = (view: View) => {
    const nowUnixMs = Date.now();
    const line = options.json
      ? toJson(asJson(options.election, view, nowUnixMs))
      : asLine(view, nowUnixMs, paint);
    context.stdout.write(`${line}\n`);
  };
  const isNeverLed = (view: View) => view.state === 'vacant' && !isLedOnce(view);
  try {
    // Opening a file store makes it, which is not for those who only look.
    let isSaid = false;
    for (;;) {
      const missing = isSaid
        ? await missingPlace(store, options.election, context.signal)
        : await within((signal) => missingPlace(store, options.election, signal));
      if (missing !== undefined && !isSaid) noteMissing(missing, options, context);
      if (missing === undefined || store.directory === undefined) break;
      if (!isSaid) {
        print({ state: 'vacant', sinceUnixMs: Date.now() });
        isSaid = true;
      }
      await sleep(lookAgainMs, undefined, { signal: context.signal }).catch(() => {});
      context.signal.throwIfAborted();
    }
    for await (const view of election.observe({ signal: context.signal })) {
      // Said already, before there was a store.
      if (!isSaid || !isNeverLed(view)) print(view);
      isSaid = false;
    }
    context.signal.throwIfAborted();
    return exitCodes.ok;
  } finally {
    clearInterval(stayAlive);
    leave(election);
  }
}

function asJson(election: string, view: View, nowUnixMs: number): object {
  return {
    time: isoTime(nowUnixMs),
    election,
    state: view.state,
    leader: view.leader ?? null,
    token: tokenOf(view),
    since: sinceOf(view),
    ...(view.error === undefined ? {} : { error: view.error.message }),
  };
}

export function asLine(view: View, nowUnixMs: number, paint: Paint): string {
  const time = paint('faint', localTime(nowUnixMs, true));
  const state = paint(stateTone(view.state), padEnd(view.state, 'unknown'.length));
  return `${time}  ${state}  ${viewLine(view)}`;
}
