import { describe, expect, it } from 'vitest';
import type { OwnedEvent } from '../src/shards/messages.ts';
import { changeOf, cleanMovesOf, spansOf } from '../src/shards/ownership.ts';

const event = (shard: number, atMs: number, isOwned: boolean): OwnedEvent => ({
  ...{ shard, atMs, isOwned },
});

describe('the ownership of shards, from the logs of all processes', () => {
  it('says how many moved, how long others stood still, and how long clean moves took', () => {
    const spans = spansOf(
      [
        { events: [event(0, 1, true), event(0, 12, false), event(1, 1, true)] },
        { events: [event(2, 1, true), event(2, 13, false), event(2, 20, true)] },
        { events: [event(0, 15, true)] },
      ],
      3,
    );
    expect(changeOf(spans, 10)).toEqual({ moved: 1, interruptedMs: 7, balancedMs: 10 });
    expect(cleanMovesOf(spans)).toEqual([3]);
  });

  it('ends what a killed process owned with its death, which is no clean move', () => {
    const spans = spansOf(
      [{ events: [event(0, 1, true)], killedAtMs: 10 }, { events: [event(0, 16, true)] }],
      1,
    );
    expect(changeOf(spans, 10)).toEqual({ moved: 1, interruptedMs: 0, balancedMs: 6 });
    expect(cleanMovesOf(spans)).toEqual([]);
  });

  it('finds two owners', () => {
    const logs = [{ events: [event(0, 1, true)] }, { events: [event(0, 2, true)] }];
    expect(() => spansOf(logs, 1)).toThrow('process 1 began with shard 0 while process 0 owned it');
  });
});
