import type { Library } from './library.ts';
import { QueueSimulation } from './queue/simulation.ts';
import type { SeedResult } from './simulation.ts';
import { Simulation } from './simulation.ts';
import type { World } from './world.ts';

/** What is simulated: the race for a lease, or the place in a queue. The same seed is two worlds. */
export const mechanisms = ['lease', 'queue'] as const;
export type Mechanism = (typeof mechanisms)[number];

/** The world of the seed that runs in this thread. */
let present: World | undefined;

// A rejection that nobody handles would end a real process.
process.on('unhandledRejection', (error) => {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  if (present === undefined) throw error;
  present.fail('rejections', text);
});

/**
 * @param readable keep lines for somebody to read
 * @param ignored guarantees that are not judged
 */
export async function runSeed(
  library: Library,
  seed: number,
  readable = false,
  mechanism: Mechanism = 'lease',
  ignored: readonly string[] = [],
): Promise<SeedResult> {
  const simulation =
    mechanism === 'lease'
      ? new Simulation(library, seed, readable)
      : new QueueSimulation(library, seed, readable);
  present = simulation.world;
  present.ignored = ignored;
  try {
    return await simulation.run();
  } finally {
    present = undefined;
  }
}
