import type { Library } from './library.ts';
import type { SeedResult } from './simulation.ts';
import { Simulation } from './simulation.ts';
import type { World } from './world.ts';

/** The world of the seed that runs in this thread. */
let present: World | undefined;

// A rejection that nobody handles would end a real process.
process.on('unhandledRejection', (error) => {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  if (present === undefined) throw error;
  present.fail('rejections', text);
});

/** @param readable keep lines for somebody to read */
export async function runSeed(
  library: Library,
  seed: number,
  readable = false,
): Promise<SeedResult> {
  const simulation = new Simulation(library, seed, readable);
  present = simulation.world;
  try {
    return await simulation.run();
  } finally {
    present = undefined;
  }
}
