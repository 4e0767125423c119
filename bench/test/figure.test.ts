import { describe, expect, it } from 'vitest';
import { digits, figureOf, median, p99Of, spreadOf, verdictOf } from '../src/figure.ts';

describe('figures', () => {
  it('take the median and the 95th percentile of the samples in any order', () => {
    const samples = Array.from({ length: 101 }, (_, index) => 100 - index);
    expect(spreadOf(samples)).toEqual({ count: 101, min: 0, p50: 50, p95: 95, max: 100 });
    expect(samples[0]).toBe(100);
  });

  it('name the sample that 99 in 100 are not above', () => {
    const samples = Array.from({ length: 200 }, (_, index) => 200 - index);
    expect(p99Of('a', 'b', 'ms', samples, 197)).toMatchObject({ name: 'b, p99', value: 198 });
    expect(p99Of('a', 'b', 'ms', [7]).value).toBe(7);
  });

  it('go in a straight line between two samples', () => {
    expect(median([3, 1])).toBe(2);
    expect(spreadOf([0, 10]).p95).toBe(9.5);
    expect(spreadOf([7])).toEqual({ count: 1, min: 7, p50: 7, p95: 7, max: 7 });
  });

  it('refuse to be made of nothing', () => {
    expect(() => spreadOf([])).toThrow('no samples');
  });

  it('meet a goal that they are equal to', () => {
    expect(verdictOf(figureOf('a', 'b', 'ms', [10], 10))).toBe('met by 0 ms');
    expect(verdictOf(figureOf('a', 'b', 'ms', [4.2], 10))).toBe('met by 5.80 ms');
  });

  it('say by how much a goal is missed', () => {
    expect(verdictOf(figureOf('a', 'b', '×', [2, 2, 9], 1.6))).toBe('missed by 0.40 × (25 %)');
  });

  it('without a goal have no verdict', () => {
    const figure = figureOf('a', 'b', 'ms', [1]);
    expect(verdictOf(figure)).toBeUndefined();
    expect(figure).not.toHaveProperty('goal');
  });

  it('are shown with about three digits', () => {
    expect([0, 0.0512, 0.5, 1.234, 12.34, 123.4, 12_345, -0.13].map(digits)).toEqual([
      '0',
      '0.051',
      '0.50',
      '1.23',
      '12.3',
      '123',
      '12345',
      '-0.13',
    ]);
  });
});
