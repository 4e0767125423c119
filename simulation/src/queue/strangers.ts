import type { QueueChaos } from './chaos.ts';

/** Members that are not ours get in line, lead without a word, and leave. */
export function visitQueue(chaos: QueueChaos): void {
  const { sim, random, timeoutMs } = chaos;
  chaos.later(random.exponential(1.2 * timeoutMs), () => {
    const { path } = random.pick(sim.contests);
    const name = sim.scenario.layout === 'kazoo' ? '0123456789abcdef__lock__' : 'stranger-n_';
    const { ensemble } = sim;
    const sequence = ensemble.tree.get(path)?.sequence;
    const entered = ensemble.byHand([
      {
        type: 'create',
        path: `${path}/${name}`,
        data: new TextEncoder().encode('stranger'),
        ephemeral: false,
        sequential: true,
      },
    ]);
    if (entered && sequence !== undefined) {
      sim.coverage.count('members that are not ours');
      const place = ensemble.tree.get(path)?.children.at(-1) ?? '';
      chaos.later(random.next() * 2 * timeoutMs, () =>
        ensemble.byHand([{ type: 'delete', path: `${path}/${place}`, version: -1 }]),
      );
    }
    visitQueue(chaos);
    preferToStrangers(chaos);
  });
}

/** Somebody may ask that one of ours comes before them. */
export function preferToStrangers(chaos: QueueChaos): void {
  const { sim, random, timeoutMs } = chaos;
  if (!random.chance(0.5)) return;
  const { plan } = random.pick(sim.seats);
  chaos.later(random.next() * timeoutMs, () =>
    sim.operator.ask(random.pick(sim.contests), { kind: 'transfer', to: plan.id }),
  );
}
