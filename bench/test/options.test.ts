import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { readOptions } from '../src/options.ts';

const known = ['resign', 'kill'];

describe('options', () => {
  it('measure everything in ten rounds by default', () => {
    expect(readOptions([], known)).toEqual({
      only: undefined,
      rounds: 10,
      format: 'text',
      directory: tmpdir(),
      help: false,
      save: false,
    });
  });

  it('choose benchmarks, rounds and a format', () => {
    const options = readOptions(['--only', 'kill, resign', '--rounds', '3', '--json'], known);
    expect(options).toMatchObject({ only: ['kill', 'resign'], rounds: 3, format: 'json' });
    expect(readOptions(['--markdown'], known).format).toBe('markdown');
  });

  it('ask for one round of the short form, where there is one', () => {
    expect(readOptions(['--quick', '--rounds', '3'], known, true)).toMatchObject({
      quick: true,
      rounds: 1,
    });
  });

  it.each([
    [['--only', 'kill,kil'], 'there is no benchmark "kil"; there are: resign, kill'],
    [['--rounds', '0'], '--rounds takes a whole number from 1 to 9999, not "0"'],
    [['--rounds', '2.5'], '--rounds takes a whole number from 1 to 9999, not "2.5"'],
    [['--json', '--markdown'], '--json and --markdown exclude each other'],
    [
      ['--save', '--only', 'kill'],
      '--save keeps the results of all benchmarks of a subject: leave --only out',
    ],
    [['--loud'], "Unknown option '--loud'"],
    [['--quick'], '--quick: these benchmarks have no short form'],
  ])('refuse %j', (args, message) => {
    expect(() => readOptions(args, known)).toThrow(message);
  });
});
