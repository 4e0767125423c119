import { describe, expect, it } from 'vitest';
import { decodePrimary, encodePrimary } from '../src/layout.ts';
import {
  isOfReign,
  isSameProcess,
  largestGroup,
  lineageOf,
  offsetIn,
  positionOf,
  recordedLineage,
  withoutUnfinished,
  writtenLineage,
} from '../src/manager/lineage.ts';
import { replication } from './support/replication.ts';

const nodes = (entries: Record<string, ReturnType<typeof replication>>) =>
  new Map(Object.entries(entries));

describe('where no stream is on record', () => {
  it('the largest group of nodes that share one counts', () => {
    const known = nodes({
      empty: replication({ replicationId: 'x', offset: 9_999 }),
      one: replication({ replicationId: 'b', formerReplicationId: 'a', offset: 10 }),
      two: replication({ replicationId: 'c', formerReplicationId: 'a', offset: 20 }),
    });
    expect([...largestGroup(known).keys()]).toEqual(['one', 'two']);
  });

  it('of two groups of one size the one that has more', () => {
    const known = nodes({
      less: replication({ replicationId: 'x', offset: 10 }),
      more: replication({ replicationId: 'y', offset: 20 }),
    });
    expect([...largestGroup(known).keys()]).toEqual(['more']);
    expect(largestGroup(new Map()).size).toBe(0);
  });

  it('of two groups of one size the one whose furthest node has more', () => {
    const known = nodes({
      first: replication({ replicationId: 'x', offset: 50 }),
      second: replication({ replicationId: 'x', offset: 60 }),
      behind: replication({ replicationId: 'y', offset: 10 }),
      furthest: replication({ replicationId: 'y', offset: 100 }),
    });
    expect([...largestGroup(known).keys()]).toEqual(['behind', 'furthest']);
  });
});

describe('how much a node has of a stream', () => {
  it('does not count what it wrote of its own since it was promoted', () => {
    const promoted = { replicationId: 'b', formerReplicationId: 'a', formerOffset: 101 };
    expect(offsetIn(replication({ ...promoted, offset: 9_000 }), 'a')).toBe(100);
    expect(offsetIn(replication({ ...promoted, offset: 9_000 }), 'b')).toBe(9_000);
    expect(offsetIn(replication({ replicationId: 'a', offset: 50 }), 'a')).toBe(50);
    expect(offsetIn(replication({ replicationId: 'a', offset: 50 }), null)).toBe(50);
  });
});

describe('the lineage on record', () => {
  it('keeps its order', () => {
    const lineage = new Map([
      ['b', 2],
      ['a', 1],
    ]);
    const lineageOnRecord = writtenLineage(lineage);
    expect([...recordedLineage({ lineage: lineageOnRecord, replicationId: 'a' })]).toEqual([
      ...lineage,
    ]);
  });

  it('keeps the last two streams of promotions that were not finished, and all that were published', () => {
    const lineage = new Map(Object.entries({ s: 1, t: 2, u: 3, v: 4, w: 5 }));
    const kept = withoutUnfinished(lineage, { lineage: { s: 1, t: 2 }, replicationId: 't' });
    expect([...kept.keys()]).toEqual(['s', 't', 'v', 'w']);
  });

  it('is kept apart from the streams of a node that was promoted and not published', () => {
    const unfinished = { replicationId: 'c', lineage: { a: 10, c: 30 }, promoting: { a: 9, x: 9 } };
    const streams = recordedLineage(unfinished);
    const inX = replication({ replicationId: 'x', offset: 12 });
    expect([...lineageOf(inX, streams)]).toEqual(Object.entries({ a: 9, x: 12 }));
    const inC = replication({ replicationId: 'c', offset: 31 });
    expect([...lineageOf(inC, streams)]).toEqual(Object.entries({ a: 10, c: 31 }));
    expect([inX, inC].map((each) => isOfReign(each, unfinished))).toEqual([false, true]);
    expect(positionOf(inX, streams)).toMatchObject({ kind: 'known', stream: 'x' });
    const goneOn = { ...unfinished, promoting: { a: 10, c: 29, x: 29 } };
    expect(isOfReign(inX, goneOn)).toBe(true);
  });

  it('is read from what was written before, and written with what is not finished', () => {
    const more = { term: 2, primary: null, former: 'p', runId: 'r', viewMs: 1, gemViews: false };
    const record = { ...more, replicationId: 'a', lineage: { a: 1 }, manager: 'm', token: '1' };
    const whole = { ...record, manualSeen: '0' };
    expect(decodePrimary('/primary', encodePrimary(whole))).toEqual(whole);
    const unfinished = { ...whole, promoting: { a: 1, b: 2 } };
    expect(decodePrimary('/primary', encodePrimary(unfinished))).toEqual(unfinished);
    expect(() => decodePrimary('/primary', JSON.stringify({ ...whole, promoting: 1 }))).toThrow();
  });

  it('of version 0.1.0 is the stream of the primary', () => {
    expect([...recordedLineage({ replicationId: 'a' }).keys()]).toEqual(['a']);
    expect(recordedLineage({ replicationId: null }).size).toBe(0);
  });
});

describe('the primary on record', () => {
  const record = { runId: 'r', replicationId: 'a', lineage: { z: 10, a: 100 } };
  it.each([
    ['goes on with its stream', {}, true],
    ['was promoted again', { replicationId: 'b', formerReplicationId: 'a' }, true],
    ['has renamed its stream without replicas', { replicationId: 'b', offset: 100 }, true],
    ['counts from the beginning', { replicationId: 'b', offset: 99 }, false],
    ['was emptied by a copy in between', { replicationId: 'b', formerReplicationId: 'x' }, false],
    ['was started anew', { runId: 'other' }, false],
  ])('that %s', (_, says, isSame) => {
    expect(isSameProcess(record, replication({ replicationId: 'a', ...says }))).toBe(isSame);
  });

  it('is not in the process on record any more after it has copied one of an older stream', () => {
    const twoStreams = { ...record, replicationId: 'a', lineage: { old: 5, a: 10 } };
    const says = (formerReplicationId: string) =>
      replication({ ...{ runId: 'r', replicationId: 'w', offset: 20 }, formerReplicationId });
    expect(isSameProcess(twoStreams, says('a'))).toBe(true);
    expect(isSameProcess(twoStreams, says('old'))).toBe(false);
  });

  it('is in the process on record where none is on record', () => {
    expect(isSameProcess({ ...record, runId: null }, replication({ runId: 'x' }))).toBe(true);
  });

  it('has counted on in its own stream, whatever others have got in earlier ones', () => {
    const far = { replicationId: 'b', runId: 'r', lineage: { a: 2_000, b: 1_500 } };
    const renamed = (offset: number) => replication({ replicationId: 'z', offset });
    expect(isSameProcess(far, renamed(1_600))).toBe(true);
    expect(isSameProcess(far, renamed(1_499))).toBe(false);
  });
});
