// The judge of the integration tests, on evidence that it must reject.
import { describe, expect, test } from 'vitest';
import type { Acknowledged, Evidence } from '../test-integration/support/judge.ts';
import { judge } from '../test-integration/support/judge.ts';

const [one, two] = ['10.0.0.1:6379', '10.0.0.2:6379'] as const;

function write(value: number, term: number, node: string, executedAtUs: number): Acknowledged {
  return { value, term, node, executedAtUs };
}

const good: Evidence = {
  acknowledged: [write(1, 1, one, 10), write(2, 1, one, 20), write(4, 2, two, 40)],
  present: [1, 2, 3, 4],
  primaries: new Map([
    [1, one],
    [2, two],
  ]),
};

describe('what is judged', () => {
  test('acknowledged writes of two terms, one after the other, and one of unknown outcome', () => {
    expect(() => judge(good)).not.toThrow();
  });

  test('an acknowledged write that is gone', () => {
    expect(() => judge({ ...good, present: [1, 3, 4] })).toThrow(
      'lost: 1 of 3 acknowledged writes are not on the last primary, among them 2 (1, 10.0.0.1:6379)',
    );
  });

  test('a write that was applied twice', () => {
    expect(() => judge({ ...good, present: [1, 2, 3, 4, 3] })).toThrow('applied twice: writes 3');
  });

  test('an older primary that executes an acknowledged write after a newer one did', () => {
    const acknowledged = [...good.acknowledged, write(3, 1, one, 1_040)];
    expect(() => judge({ ...good, acknowledged })).toThrow(
      'two primaries: 10.0.0.1:6379 executed write 3 of term 1 1 ms after 10.0.0.2:6379 executed ' +
        'write 4 of term 2, and both were acknowledged',
    );
  });

  test('a write that another node executed than the primary of its term', () => {
    const acknowledged = [...good.acknowledged, write(3, 2, one, 50)];
    expect(() => judge({ ...good, acknowledged })).toThrow(
      'write 3 was acknowledged in term 2, whose primary is 10.0.0.2:6379, but 10.0.0.1:6379 has',
    );
  });
});
