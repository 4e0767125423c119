import type { Context } from '../context.ts';
import { UsageError } from '../failure.ts';
import type { RunOptions } from '../options.ts';

export async function run(_options: RunOptions, _context: Context): Promise<number> {
  throw new UsageError('this build has no `run` yet');
}
