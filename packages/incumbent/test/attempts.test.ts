import { expect, test } from 'vitest';
import { OwnWrites } from '../src/core/attempts.ts';

test('a write of ours that stands in the record stays ours, however many are refused after it', () => {
  const own = new OwnWrites();
  own.add('stands');
  for (let i = 0; i < 10 * OwnWrites.limit; i += 1) {
    own.add(`refused-${i}`);
    // The record is read between the tries.
    expect(own.wrote({ nonce: 'stands' })).toBe(true);
  }
  expect(own.wrote({ nonce: 'refused-0' })).toBe(false);
  expect(own.wrote({ nonce: 'never sent' })).toBe(false);
  expect(own.wrote(undefined)).toBe(false);
});

test('a write of ours that has landed stays ours, however many get no answer after it', () => {
  const own = new OwnWrites();
  own.add('before');
  own.add('landed');
  own.settle('landed');
  for (let i = 0; i < 10 * OwnWrites.limit; i += 1) own.add(`unanswered-${i}`);
  expect(own.wrote({ nonce: 'landed' })).toBe(true);
  expect(own.wrote({ nonce: 'before' })).toBe(false);
});

test.each([
  ['both clocks say so', 9, 9, true],
  ['the host was suspended since', 9, 60, false],
  ['the wall clock was set back since', 60, -60, false],
  ['it was sent exactly so long ago', 10, 10, false],
])(
  'a write of ours of unknown outcome is late only for a while: %s',
  (_, monotonicMs, wallMs, isLate) => {
    const own = new OwnWrites();
    const now = { monotonicMs: 1_000 + monotonicMs, wallMs: 5_000 + wallMs };
    own.add('sent', { monotonicMs: 1_000, wallMs: 5_000 });
    expect(own.wroteLate({ nonce: 'sent' }, now, 10)).toBe(isLate);
    expect(own.wroteLate({ nonce: 'theirs' }, now, 10)).toBe(false);
  },
);

test('a write of ours is not late any more when a later one is known to have landed', () => {
  const own = new OwnWrites();
  const at = { monotonicMs: 0, wallMs: 0 };
  own.add('first', at);
  own.add('second', at);
  expect(own.wroteLate({ nonce: 'first' }, at, 10)).toBe(true);
  own.settle('second');
  for (const nonce of ['first', 'second']) {
    expect(own.wroteLate({ nonce }, at, 10)).toBe(false);
    expect(own.wrote({ nonce })).toBe(true);
  }
  own.add('third', at);
  expect(own.wroteLate({ nonce: 'third' }, at, 10)).toBe(true);
});
