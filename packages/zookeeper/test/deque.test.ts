import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Deque } from '../src/session/deque.ts';

describe('Deque', () => {
  it('is an array with shift, push and unshift', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('push' as const), value: fc.integer() }),
      fc.record({ kind: fc.constant('unshift' as const), value: fc.integer() }),
      fc.record({ kind: fc.constant('shift' as const) }),
      fc.record({ kind: fc.constant('filter' as const), modulus: fc.integer({ min: 1, max: 4 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const deque = new Deque<number>();
        let model: number[] = [];
        for (const one of steps) {
          if (one.kind === 'shift') expect(deque.shift()).toBe(model.shift());
          else if (one.kind === 'filter') {
            const keep = (item: number) => item % one.modulus === 0;
            deque.filter(keep);
            model = model.filter(keep);
          } else if (one.kind === 'push') {
            deque.push(one.value);
            model.push(one.value);
          } else {
            deque.unshift(one.value);
            model.unshift(one.value);
          }
          expect(deque.length).toBe(model.length);
          expect(deque.first).toBe(model[0]);
          expect(model.map((_, i) => deque.at(i))).toEqual(model);
        }
      }),
    );
  });
});
