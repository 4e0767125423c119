import { expect, it } from 'vitest';
import type { Round } from '../src/harness/rounds.ts';
import { faultsOf } from '../src/harness/rounds.ts';

/**
 * The rules of every plan of rounds.
 * @param names of all that can happen
 */
export function describePlan(
  rounds: (count: number, seed: number) => readonly Round[],
  names: readonly string[],
): void {
  it('follows from the seed alone', () => {
    expect(rounds(60, 7)).toEqual(rounds(60, 7));
    expect(rounds(60, 7)).not.toEqual(rounds(60, 8));
  });

  it('strikes somebody in every round, and has every fault in two hundred', () => {
    for (let seed = 0; seed < 20; seed += 1) {
      const struck = rounds(200, seed).map(faultsOf);
      expect(struck.every((faults) => faults.length > 0)).toBe(true);
      expect(new Set(struck.flat())).toEqual(new Set(names));
    }
  });

  it('leaves the servers alone while a leader is stranded', () => {
    const stranded = rounds(500, 5).filter(({ leader }) => leader?.fault === 'strand');
    expect(stranded.length).toBeGreaterThan(10);
    expect(stranded.every(({ server }) => server === undefined)).toBe(true);
  });
}
