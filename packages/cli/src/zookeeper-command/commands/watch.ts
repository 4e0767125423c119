import type { PersistentEvent } from '@incumbent/zookeeper';
import type { Paint, Tone } from '../../terminal/style.ts';
import { painter } from '../../terminal/style.ts';
import { toJson, visible } from '../../terminal/text.ts';
import { isoTime, localTime } from '../../terminal/time.ts';
import type { Arguments } from '../arguments.ts';
import type { Context } from '../context.ts';
import { CommandError, exitCodes } from '../failure.ts';
import { pathOf } from '../path.ts';
import { noteStates, withClient } from '../session.ts';

export async function watch(args: Arguments, context: Context): Promise<number> {
  const path = pathOf(args);
  const count = args.wholeNumber('count', 1, 2 ** 31 - 1) ?? Number.POSITIVE_INFINITY;
  const recursive = args.has('recursive');
  const { json, signal } = context;
  const paint = painter(context.stdout, context.env);
  const print = (event: Shown) => {
    const now = Date.now();
    const line = json ? toJson({ time: isoTime(now), ...event }) : textLine(event, now, paint);
    return context.print(`${line}\n`);
  };
  return withClient(args, context, async (client) => {
    const watching = await client.addWatch(path, { recursive, signal });
    const stop = () => watching.close();
    signal.addEventListener('abort', stop);
    noteStates(client, context);
    try {
      await print({ type: 'watching', path });
      let seen = 0;
      for await (const event of watching) {
        await print(event);
        seen += 1;
        if (seen === count) return exitCodes.ok;
      }
    } finally {
      signal.removeEventListener('abort', stop);
    }
    signal.throwIfAborted();
    throw new CommandError(
      'WATCH_ENDED',
      exitCodes.unavailable,
      `${path}: the watch has ended, and changes are not told any more; start it again`,
    );
  });
}

type Shown = PersistentEvent | { readonly type: 'watching'; readonly path: string };

const tones: Partial<Record<Shown['type'], Tone>> = {
  watching: 'faint',
  created: 'good',
  deleted: 'bad',
  gap: 'warn',
};

const gaps = {
  reconnected: 'the connection was lost for a while',
  expired: 'the session had expired',
  overflow: 'events came faster than they could be printed',
} as const;

function textLine(event: Shown, nowUnixMs: number, paint: Paint): string {
  const { type } = event;
  const word = type.padEnd('children-changed'.length);
  const tone = tones[type];
  const about =
    event.type === 'gap'
      ? `${gaps[event.reason]}: changes may have been missed`
      : visible(event.path);
  const time = paint('faint', localTime(nowUnixMs, true));
  return `${time}  ${tone === undefined ? word : paint(tone, word)}  ${about}`;
}
