import type { Context } from '../context.ts';
import { UsageError } from '../failure.ts';
import type { DoctorOptions } from '../options.ts';

export async function doctor(_options: DoctorOptions, _context: Context): Promise<number> {
  throw new UsageError('not yet');
}
