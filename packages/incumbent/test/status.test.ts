// The statuses that `onStatus` gets: at every change, and nothing twice.
import { describe, expect, test } from 'vitest';
import type { NotElectedReason } from '../src/base/not-elected.ts';
import type { CandidateStatus } from '../src/core/status.ts';
import { StatusTeller } from '../src/core/status.ts';

const led: NotElectedReason = { kind: 'led', id: 'a', token: 1n };
const held: NotElectedReason = { kind: 'held', by: 'a', untilUnixMs: 1 };

/** @param id of the candidate, which is its place where the store has no queue */
function setUp(id = 'b') {
  const told: CandidateStatus[] = [];
  const teller = new StatusTeller(
    id,
    (status) => told.push(status),
    (error) => {
      throw error;
    },
  );
  /** The statuses since the last question. */
  const news = () => told.splice(0).map((status) => ({ ...status }));
  return { teller, news };
}

describe('a candidate in a queue', () => {
  test('is told the place before it and the reason to wait, and once', () => {
    const { teller, news } = setUp();
    const position = { place: 'p-2', following: 'p-1' };
    teller.follows(position, led);
    const following = { candidateId: 'p-2', role: 'follower', following: 'p-1' };
    const first = { ...following, wasFollowing: undefined, waitingFor: led };
    expect(news()).toEqual([first]);
    teller.follows(position, undefined);
    expect(news()).toEqual([]);
    teller.follows(position, held);
    expect(news()).toEqual([{ ...first, waitingFor: held }]);
  });

  test('is told when another place is before it, and which one it has followed before', () => {
    const { teller, news } = setUp();
    teller.follows({ place: 'p-3', following: 'p-2' }, led);
    news();
    teller.follows({ place: 'p-3', following: 'p-1' }, undefined);
    const moved = {
      candidateId: 'p-3',
      role: 'follower',
      following: 'p-1',
      wasFollowing: 'p-2',
      waitingFor: led,
    };
    expect(news()).toEqual([moved]);
    // Another reason to wait, and the same place before it.
    teller.follows({ place: 'p-3', following: 'p-1' }, held);
    expect(news()).toEqual([{ ...moved, waitingFor: held }]);
  });

  test('that is the first follows nobody, and does not lead yet', () => {
    const { teller, news } = setUp();
    teller.follows({ place: 'p-2', following: 'p-1' }, led);
    news();
    teller.follows({ place: 'p-2', following: undefined }, undefined);
    expect(news()).toEqual([
      { candidateId: 'p-2', role: 'follower', following: undefined, wasFollowing: 'p-1' },
    ]);
    teller.leads();
    expect(news()).toEqual([
      { candidateId: 'p-2', role: 'leader', following: undefined, wasFollowing: undefined },
    ]);
  });

  test('is told that it is in line again, at the place that it had when it led', () => {
    const { teller, news } = setUp();
    teller.follows({ place: 'p-2', following: undefined }, undefined);
    teller.leads();
    news();
    teller.follows({ place: 'p-2', following: undefined }, undefined);
    expect(news()).toEqual([
      { candidateId: 'p-2', role: 'follower', following: undefined, wasFollowing: undefined },
    ]);
  });

  test('that has entered anew has followed nobody from there', () => {
    const { teller, news } = setUp();
    teller.follows({ place: 'p-2', following: 'p-1' }, led);
    news();
    teller.follows({ place: 'p-4', following: 'p-1' }, undefined);
    expect(news()).toEqual([
      {
        candidateId: 'p-4',
        role: 'follower',
        following: 'p-1',
        wasFollowing: undefined,
        waitingFor: led,
      },
    ]);
  });

  test('that leads is told the place that it has followed', () => {
    const { teller, news } = setUp();
    teller.follows({ place: 'p-2', following: 'p-1' }, led);
    news();
    teller.leads();
    expect(news()).toEqual([
      { candidateId: 'p-2', role: 'leader', following: undefined, wasFollowing: 'p-1' },
    ]);
  });
});

test.each<readonly [NotElectedReason, 'none' | 'follower']>([
  [{ kind: 'drained', untilUnixMs: 1 }, 'none'],
  [{ kind: 'aside', untilUnixMs: 1 }, 'none'],
  [{ kind: 'unhealthy', error: undefined }, 'none'],
  [{ kind: 'lost', cause: undefined }, 'none'],
  [led, 'follower'],
  [held, 'follower'],
  [{ kind: 'reserved', untilUnixMs: 1 }, 'follower'],
  [{ kind: 'settling', after: 'win', sinceUnixMs: 0, untilUnixMs: 1 }, 'follower'],
  [{ kind: 'unreachable', cause: undefined }, 'follower'],
])('a candidate that waits for %o has the role %s', (why, role) => {
  const { teller, news } = setUp();
  const nowhere = { candidateId: 'b', following: undefined, wasFollowing: undefined };
  teller.waits(why);
  expect(news()).toEqual([{ ...nowhere, role, waitingFor: why }]);
  const position = { place: 'p-2', following: 'p-1' };
  teller.follows(position, led);
  teller.follows({ ...position, following: 'p-0' }, undefined);
  news();
  teller.waits(why);
  const somewhere = { candidateId: 'p-2', following: 'p-0', wasFollowing: 'p-1' };
  expect(news()).toEqual([{ ...somewhere, role, waitingFor: why }]);
});

test('a candidate that is out is told once, and again with what went wrong', () => {
  const { teller, news } = setUp();
  teller.isOut();
  expect(news()).toEqual([]);
  teller.follows({ place: 'p-2', following: 'p-1' }, led);
  news();
  teller.isOut();
  const out = {
    candidateId: 'p-2',
    role: 'none',
    following: undefined,
    wasFollowing: undefined,
  };
  expect(news()).toStrictEqual([out]);
  teller.isOut();
  expect(news()).toEqual([]);
  const error = new Error('gone');
  teller.isOut(error);
  expect(news()).toEqual([{ ...out, error }]);
});

test('a listener that throws is told of as trouble, and of the next change all the same', () => {
  const failure = new Error('no listener');
  const trouble: unknown[] = [];
  let told = 0;
  const teller = new StatusTeller(
    'b',
    () => {
      told += 1;
      throw failure;
    },
    (error) => trouble.push(error),
  );
  teller.waits(led);
  teller.leads();
  expect(told).toBe(2);
  expect(trouble).toEqual([failure, failure]);
});
