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

  it('has no first item when it is empty, although its ring was filled before', () => {
    const deque = new Deque<number>();
    for (let item = 0; item < 100; item += 1) {
      expect(deque.first).toBe(undefined);
      deque.push(item);
      expect(deque.first).toBe(item);
      expect(deque.shift()).toBe(item);
    }
  });

  it('keeps many, at both ends, through all changes', () => {
    const deque = new Deque<number>();
    let model: number[] = [];
    const same = () => {
      expect(deque.length).toBe(model.length);
      expect(model.map((_, i) => deque.at(i))).toEqual(model);
      expect(deque.first).toBe(model[0]);
    };
    same();
    for (let i = 0; i < 100; i += 1) {
      deque.push(i);
      deque.unshift(-i);
      model = [-i, ...model, i];
      same();
    }
    for (let i = 0; i < 37; i += 1) expect(deque.shift()).toBe(model.shift());
    deque.filter((item) => item % 2 === 0);
    model = model.filter((item) => item % 2 === 0);
    same();
    while (model.length > 0) expect(deque.shift()).toBe(model.shift());
    expect([deque.shift(), deque.first, deque.length]).toEqual([undefined, undefined, 0]);
  });
});
