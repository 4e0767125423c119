import type { Context } from '../context.ts';
import { GuardProcess } from '../guard/spawn.ts';
import type { RunOptions } from '../options.ts';

/** The command `run`: Node starts for the guard while this process reads the rest of its own code. */
export async function begin(options: RunOptions, context: Context): Promise<number> {
  const early = context.platform === 'win32' ? undefined : new GuardProcess(options.stdin === true);
  try {
    const { shards } = options;
    if (shards !== undefined) {
      const { runShards } = await import('../commands/run-shards.ts');
      return await runShards({ ...options, shards }, context, early);
    }
    const { run } = await import('../commands/run.ts');
    return await run(options, context, early);
  } finally {
    // Refused before it was needed.
    await early?.discard();
  }
}
