import { expect, test } from 'vitest';
import { wouldLose } from '../src/manager/join.ts';
import { replication } from './support/replication.ts';

const lineage = new Map([
  ['z', 50],
  ['a', 100],
]);
const primary = replication({ offset: 120 });
const follower = replication({ role: 'replica', primary: 'p:1', linkUp: false, offset: 110 });

test.each([
  ['is behind in the stream of the primary', {}, false],
  ['is further in it', { offset: 121 }, true],
  ['is further in a stream of before', { replicationId: 'z', offset: 51 }, true],
  ['is further, and has its connection', { offset: 121, linkUp: true }, false],
  ['is in its stream, and has its connection', { linkUp: true }, false],
  [
    'believes in its connection, and is further in a stream of before',
    { replicationId: 'z', offset: 51, linkUp: true },
    true,
  ],
  ['is further, and loads a copy already', { offset: 121, loading: true }, false],
  [
    'was never in a stream on record: an operator has told it to follow',
    { replicationId: 'x' },
    false,
  ],
])('a replica that %s', (_, more, loses) => {
  expect(wouldLose({ ...follower, ...more }, primary, lineage)).toBe(loses);
});

test.each([
  ['in a stream that nobody knows', { replicationId: 'x' }, true],
  ['without data', { replicationId: 'x', isEmpty: true }, false],
  ['with less', { offset: 110 }, false],
  ['in a stream that nobody knows, and loads a copy already', { loading: true }, false],
])('at the first sight of a primary a replica %s', (_, more, loses) => {
  expect(wouldLose({ ...follower, ...more }, primary, lineage, true)).toBe(loses);
});
