import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { cliFile } from '@incumbent/cli/trial';
import { StuckError } from './stuck.ts';

/** Asks the leader to go, as an operator does. @throws StuckError when the command fails */
export async function vacate(election: string, store: string): Promise<void> {
  const words = [cliFile, 'vacate', '-e', election, '--store', store];
  try {
    await promisify(execFile)(process.execPath, words);
  } catch (error) {
    throw new StuckError(`an operator was refused: ${(error as Error).message}`);
  }
}
