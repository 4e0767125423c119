import type { Mechanism } from './harness/mechanism.ts';
import { lease } from './lease/mechanism.ts';
import { lock } from './lock/mechanism.ts';
import { node } from './node/mechanism.ts';
import { queue } from './queue/mechanism.ts';
import { redisFailover } from './redis-failover/mechanism.ts';
import { shards } from './shards/mechanism.ts';

/** All that is simulated, in the order in which the commands run it. */
export const mechanisms: readonly Mechanism[] = [lease, queue, lock, node, shards, redisFailover];

export function mechanismNamed(name: string): Mechanism {
  const found = mechanisms.find((mechanism) => mechanism.name === name);
  if (found !== undefined) return found;
  throw new Error(
    `there is no mechanism "${name}", only ${mechanisms.map((each) => each.name).join(', ')}`,
  );
}
