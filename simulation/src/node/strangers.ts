import type { QueueChaos } from '../queue/chaos.ts';
import { preferToStrangers } from '../queue/strangers.ts';
import { NodeGuarantees } from './guarantees.ts';
import { lockBeside } from './nodes.ts';

const data = new TextEncoder().encode('stranger');

/** Members that know the node alone take it when it is free, lead without a word, and leave. */
export function visitNode(chaos: QueueChaos): void {
  const { sim, random, timeoutMs } = chaos;
  chaos.later(random.exponential(1.2 * timeoutMs), () => {
    const { guarantees, path } = random.pick(sim.contests);
    // Some look at the moment at which it is free, and some poll.
    if (guarantees instanceof NodeGuarantees && random.chance(0.6)) {
      guarantees.onFree = () => {
        chaos.later(random.next() * sim.scenario.link.latencyMs, () => take(chaos, path));
      };
    } else take(chaos, path);
    visitNode(chaos);
    preferToStrangers(chaos);
  });
}

function take(chaos: QueueChaos, record: string): void {
  const { sim, random, timeoutMs } = chaos;
  const isMade = sim.ensemble.byHand([
    { type: 'create', path: lockBeside(record), data, ephemeral: false, sequential: false },
  ]);
  if (!isMade) return;
  sim.coverage.count('members that are not ours');
  const [place = ''] = sim.ground.placesIn(sim.ensemble.tree, record);
  // Some are so quick that nobody sees them.
  const staysMs =
    random.next() * (random.chance(0.3) ? sim.scenario.link.latencyMs : 2 * timeoutMs);
  chaos.later(staysMs, () => sim.deletePlace(place));
}
