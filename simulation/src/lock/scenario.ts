import { Random } from '../harness/random.ts';
import type { QueueScenario } from '../queue/scenario.ts';
import { drawQueueScenario } from '../queue/scenario.ts';

/**
 * As for a queue; besides, some candidates poll, some do not wait for the one before, some share
 * a client, and some are not ours.
 */
export function drawLockScenario(seed: number, layout: 'hadoop' | 'node'): QueueScenario {
  const random = new Random(seed, 9);
  const drawn = drawQueueScenario(seed, layout);
  const polls = random.chance(0.3);
  const shares = random.chance(0.2);
  const hosts = drawn.hosts.map((host) => {
    const { process } = host;
    const pollMs = process.timeoutMs * random.between(0.05, 0.5);
    return {
      ...host,
      process: {
        ...process,
        ...(polls && random.chance(0.6) ? { pollMs } : {}),
        ...(shares && random.chance(0.6) ? { handles: 2 } : {}),
      },
    };
  });
  return {
    ...drawn,
    hosts,
    // So rarely that a notification which is not heeded is missed.
    recheckMs: random.chance(0.3) ? 100 * drawn.timeoutMs : drawn.recheckMs,
    waits: random.chance(0.93),
    strangers: random.chance(0.35),
  };
}
