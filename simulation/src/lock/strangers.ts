import type { QueueChaos } from '../queue/chaos.ts';
import { preferToStrangers } from '../queue/strangers.ts';
import { LockGuarantees } from './guarantees.ts';
import { breadcrumbIn, lockIn } from './nodes.ts';

const data = new TextEncoder().encode('stranger');

/**
 * Members that are Hadoop's own take the lock when it is free, write the breadcrumb, and leave.
 * Some say that they stopped, and some do not.
 */
export function visitLock(chaos: QueueChaos): void {
  const { sim, random, timeoutMs } = chaos;
  chaos.later(random.exponential(1.2 * timeoutMs), () => {
    const { guarantees, path } = random.pick(sim.contests);
    if (guarantees instanceof LockGuarantees) {
      // They have the same way to the servers as our own, which wake up now.
      guarantees.onFree = () => {
        chaos.later(random.next() * sim.scenario.link.latencyMs, () => take(chaos, path));
      };
    }
    visitLock(chaos);
    preferToStrangers(chaos);
  });
}

function take(chaos: QueueChaos, election: string): void {
  const { sim, random, timeoutMs } = chaos;
  const path = lockIn(election);
  const isMade = sim.ensemble.byHand([
    { type: 'create', path, data, ephemeral: false, sequential: false },
  ]);
  if (!isMade) return;
  sim.coverage.count('members that are not ours');
  const [place = ''] = sim.ground.placesIn(sim.ensemble.tree, election);
  const activeMs = random.next() * 0.4 * timeoutMs;
  const goneMs = random.next() * 2 * timeoutMs;
  const endsClean = random.chance(0.5);
  // One that has lost the lock may not know it yet.
  const isLate = random.chance(0.15);
  chaos.later(activeMs, () => {
    if (sim.nodeOf(place) === undefined && !isLate) return;
    becomeActive(chaos, election);
    chaos.later(goneMs, () => leave(chaos, election, place, endsClean));
  });
  // Sometimes it goes before it has become active.
  if (goneMs < activeMs) chaos.later(goneMs, () => sim.deletePlace(place));
}

/** It has fenced whoever was active before. */
function becomeActive({ sim }: QueueChaos, election: string): void {
  const { ensemble } = sim;
  const path = breadcrumbIn(election);
  const isWritten =
    ensemble.tree.get(path) === undefined
      ? ensemble.byHand([{ type: 'create', path, data, ephemeral: false, sequential: false }])
      : ensemble.byHand([{ type: 'set', path, data, version: -1 }]);
  if (isWritten) sim.coverage.count('leaders that are not ours');
}

function leave(chaos: QueueChaos, election: string, place: string, endsClean: boolean): void {
  const { sim } = chaos;
  if (sim.nodeOf(place) === undefined) return;
  if (endsClean) {
    sim.ensemble.byHand([{ type: 'delete', path: breadcrumbIn(election), version: -1 }]);
  }
  chaos.later(sim.scenario.link.latencyMs, () => sim.deletePlace(place));
}
