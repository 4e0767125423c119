import { describe, expect, it } from 'vitest';
import { WrongElectionError } from '../src/benchmark.ts';
import { TermLog } from '../src/term-log.ts';

describe('the terms that a benchmark sees', () => {
  it('may follow each other', () => {
    const terms = new TermLog('a');
    terms.begins(3n, 10);
    terms.ends(20);
    expect(() => terms.begins(4n, 20.1)).not.toThrow();
  });

  it('must not begin while another one lasts', () => {
    const terms = new TermLog('a');
    terms.begins(3n, 10);
    expect(() => terms.begins(4n, 11)).toThrow(
      new WrongElectionError('a: term 4 began while term 3 led: two leaders'),
    );
    terms.ends(20);
    expect(() => terms.begins(4n, 19.5)).toThrow(
      'a: term 4 began 0.500 ms before the end of term 3: two leaders',
    );
  });

  it('must have rising tokens', () => {
    const terms = new TermLog('a');
    terms.begins(3n, 10);
    terms.ends(20);
    expect(() => terms.begins(3n, 30)).toThrow('a: term 3 began after term 3: tokens must rise');
  });
});
