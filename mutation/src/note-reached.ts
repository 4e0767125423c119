/** A set-up file of the tests: notes which mutants the test file comes by. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { noteReached } from './switch.ts';

export interface Note {
  readonly testFile: string;
  /** The numbers of mutants. */
  readonly reached: readonly number[];
}

const directory = process.env['INCUMBENT_MUTATION_NOTES'];
const reached = new Set<number>();
noteReached((number) => reached.add(number));

afterAll(() => {
  const { testPath } = expect.getState();
  if (directory === undefined || testPath === undefined) return;
  mkdirSync(directory, { recursive: true });
  const note: Note = { testFile: testPath, reached: [...reached] };
  writeFileSync(join(directory, `${process.pid}-${performance.now()}.json`), JSON.stringify(note));
});
