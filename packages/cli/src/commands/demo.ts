import type { Context } from '../context.ts';
import { UsageError } from '../failure.ts';
import type { DemoOptions } from '../options.ts';

export async function demo(_options: DemoOptions, _context: Context): Promise<number> {
  throw new UsageError('this build has no `demo` yet');
}
