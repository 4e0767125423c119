import type { View } from 'incumbent';
import { leave, openElection } from '../ask.ts';
import type { Context } from '../context.ts';
import { exitCodes } from '../failure.ts';
import type { ElectionQuestion } from '../options.ts';
import { stateTone, viewLine } from '../output/describe.ts';
import type { Paint } from '../output/style.ts';
import { painter } from '../output/style.ts';
import { padEnd, toJson } from '../output/text.ts';
import { isoTime, localTime } from '../output/time.ts';

export async function watch(options: ElectionQuestion, context: Context): Promise<number> {
  const { election } = await openElection(options, context);
  const paint = painter(context.stdout, context.env);
  // Observing alone does not keep a process alive.
  const stayAlive = setInterval(() => {}, 2 ** 30);
  try {
    for await (const view of election.observe({ signal: context.signal })) {
      const nowUnixMs = Date.now();
      const line = options.json
        ? toJson(asJson(options.election, view, nowUnixMs))
        : asLine(view, nowUnixMs, paint);
      context.stdout.write(`${line}\n`);
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
    token: view.token ?? null,
    since: isoTime(view.sinceUnixMs),
    ...(view.error === undefined ? {} : { error: view.error.message }),
  };
}

export function asLine(view: View, nowUnixMs: number, paint: Paint): string {
  const time = paint('faint', localTime(nowUnixMs, true));
  const state = paint(stateTone(view.state), padEnd(view.state, 'unknown'.length));
  return `${time}  ${state}  ${viewLine(view)}`;
}
