import { Judge } from '@incumbent/cli/trial';
import type { Played } from '@incumbent/servers/interop';
import { judge, planChanges } from '@incumbent/servers/interop';
import { describe, expect, it } from 'vitest';

/** A term that leaves an effect every ms. */
function term(token: number, candidate: string, fromMs: number, toMs: number): string[] {
  const lines: string[] = [];
  for (let ms = fromMs; ms <= toMs; ms += 1) {
    lines.push(`${token} ${candidate} 7 7 ${ms * 1e6} ${ms === fromMs ? 'start' : 'beat'}`);
  }
  return lines;
}

function logOf(...terms: readonly (readonly string[])[]): Judge {
  const atNs = (line: string) => Number(line.split(' ')[4]);
  const log = new Judge();
  for (const line of terms.flat().sort((a, b) => atNs(a) - atNs(b))) log.add(line);
  return log;
}

const frozen = (log: Judge, token: bigint): Played => {
  const [struck, next] = log.terms.filter((each) => each.token >= token);
  if (struck === undefined || next === undefined) throw new Error('no such terms');
  return { strike: 'freeze', struck, next, takeoverMs: 1 };
};

describe('the judge of elections held together', () => {
  it('finds nothing where terms follow each other', () => {
    const log = logOf(term(1, 'ours-1.1', 0, 10), term(2, 'theirs-2.1', 12, 20));
    expect(judge(log, [])).toEqual({ violations: [], overlaps: [] });
  });

  it.for(['ours-2.1', 'theirs-2.1'])('does not let ours go on while %s leads', (next) => {
    const log = logOf(term(1, 'ours-1.1', 0, 15), term(2, next, 12, 20));
    const { violations, overlaps } = judge(log, []);
    expect(violations).toEqual([
      `mutual exclusion: ours-1.1 (term 1) went on for 3.000 ms while ${next} (term 2) led`,
    ]);
    expect(overlaps).toEqual([]);
  });

  it.for(['ours-2.1', 'theirs-2.1'])('measures how long theirs go on while %s leads', (next) => {
    const log = logOf(term(1, 'theirs-1.1', 0, 15), term(2, next, 12, 20));
    expect(judge(log, [frozen(log, 1n)])).toEqual({
      violations: [],
      overlaps: [{ earlier: 'theirs-1.1', later: next, strike: 'freeze', ms: 3 }],
    });
  });

  it('finds a candidate that jumps the queue, and a token that two have', () => {
    const back = logOf(term(5, 'theirs-1.1', 0, 5), term(3, 'ours-2.1', 8, 9));
    expect(judge(back, []).violations).toMatchObject([expect.stringMatching(/^rising tokens/)]);
    const both = logOf(term(5, 'theirs-1.1', 0, 5), term(5, 'ours-2.1', 8, 9));
    expect(judge(both, []).violations).toContainEqual(expect.stringMatching(/^one owner/));
  });
});

describe('the plan of changes', () => {
  it('has each of four resign and be killed first, whatever the seed', () => {
    for (const seed of [1, 2]) {
      const strikes = planChanges(10, seed).map(({ strike }) => strike);
      expect(strikes.slice(0, 8)).toEqual([
        ...Array<string>(4).fill('resign'),
        ...Array<string>(4).fill('kill'),
      ]);
      expect(strikes.slice(8)).toEqual(['freeze', 'silence']);
    }
  });

  it('follows from the seed', () => {
    expect(planChanges(50, 7)).toEqual(planChanges(50, 7));
    expect(planChanges(50, 7)).not.toEqual(planChanges(50, 8));
    expect(planChanges(50, 7)).toHaveLength(50);
  });
});
