import { expect, test } from 'vitest';
import { OwnWrites } from '../src/attempts.ts';

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
