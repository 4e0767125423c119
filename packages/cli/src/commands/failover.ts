import type { Context } from '../context.ts';
import { handOver } from '../hand-over.ts';
import type { FailoverOptions } from '../options.ts';

export async function failover(options: FailoverOptions, context: Context): Promise<number> {
  return handOver({ ...options, request: 'failover' }, context);
}
