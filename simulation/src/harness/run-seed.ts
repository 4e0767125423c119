import type { Prepare } from './mechanism.ts';
import { Trace } from './trace.ts';
import type { Violation, World } from './world.ts';

export interface SeedResult {
  readonly seed: number;
  readonly violation: Violation | undefined;
  readonly hash: string;
  readonly events: number;
  readonly virtualMs: number;
  readonly coverage: readonly (readonly [string, number])[];
  readonly lines: readonly string[];
}

/** The world of the seed that runs in this thread. */
let present: World | undefined;

// A rejection that nobody handles would end a real process.
process.on('unhandledRejection', (error) => {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  if (present === undefined) throw error;
  present.fail('rejections', text);
});

export async function runSeed(
  prepare: Prepare,
  seed: number,
  {
    readable = false,
    ignored = [],
  }: {
    /** Keep lines for a person to read. */
    readonly readable?: boolean;
    /** Guarantees that are not judged. */
    readonly ignored?: readonly string[];
  } = {},
): Promise<SeedResult> {
  const simulation = prepare(seed, readable);
  const { world, coverage } = simulation;
  const { trace } = world;
  present = world;
  world.ignored = ignored;
  try {
    await simulation.run();
  } finally {
    present = undefined;
  }
  return {
    seed,
    violation: world.violation,
    hash: trace.hash,
    events: trace.count,
    virtualMs: world.nowMs,
    coverage: [...coverage.counts],
    lines: trace.last(Trace.limit),
  };
}
