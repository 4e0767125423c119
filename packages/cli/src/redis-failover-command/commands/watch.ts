import { pathsBelow } from '@incumbent/redis-failover/internal';
import { painter } from '../../terminal/style.ts';
import { toJson, visible } from '../../terminal/text.ts';
import type { FlagValues } from '../config/collect.ts';
import type { Context } from '../context.ts';
import type { Change } from '../look/changes.ts';
import { changesBetween } from '../look/changes.ts';
import { withZooKeeper } from '../look/connect.ts';
import { followZnodes } from '../look/live.ts';
import { placeFrom } from '../look/set.ts';
import type { Znodes } from '../look/znodes.ts';

interface WatchFlags extends FlagValues {
  readonly timeout: string;
  readonly json?: true;
}

/** Ends only when it is interrupted, or when the znodes cannot be read. */
export async function watch(flags: WatchFlags, context: Context): Promise<never> {
  const place = await placeFrom(flags, context);
  const paint = painter(context.stdout, context.env);
  const print = ({ change, sentence, tone, fields }: Change) => {
    const time = new Date().toISOString();
    const words = visible(sentence);
    const line = flags.json
      ? toJson({ time, change, ...fields })
      : `${paint('faint', time)}  ${tone === undefined ? words : paint(tone, words)}`;
    context.stdout.write(`${line}\n`);
  };
  return withZooKeeper(place, flags.timeout, context, async ({ zk, takeTime }) => {
    takeTime();
    const stopListening = zk.onState(({ state }) => {
      if (context.signal.aborted) return;
      const tone = state === 'connected' ? 'good' : 'bad';
      print({ change: 'zookeeper', sentence: `ZooKeeper: ${state}`, tone, fields: { state } });
    });
    // Following alone does not keep a process alive.
    const stayAlive = setInterval(() => {}, 2 ** 30);
    let before: Znodes | undefined;
    try {
      return await followZnodes(zk, pathsBelow(place.root), context.signal, (znodes) => {
        for (const change of changesBetween(before, znodes)) print(change);
        before = znodes;
      });
    } finally {
      clearInterval(stayAlive);
      stopListening();
    }
  });
}
