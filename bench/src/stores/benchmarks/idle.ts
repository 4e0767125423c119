import type { Meter } from '@incumbent/servers';
import type { Benchmark } from '../../benchmark.ts';
import { WrongElectionError } from '../../benchmark.ts';
import { sleep } from '../../clock.ts';
import { figureOf } from '../../figure.ts';
import { makeSamples } from '../../samples.ts';
import type { ContenderName } from '../messages.ts';
import { contenders } from '../messages.ts';
import type { Candidate, Stage } from '../stage.ts';
import { electionName, startCandidate } from '../stage.ts';

const hourMs = 3_600_000;
/**
 * The messages that keep a lease of etcd alive, and watch, travel on streams that all elections of
 * a client share.
 */
const messageOfEtcd = 'message';

/**
 * One process leads a few elections, another one waits in them; nothing else happens. A proxy
 * counts the requests that each sends to the store.
 */
export function idle(stage: Stage): Benchmark {
  const { leaseMs } = stage.scale;
  const { elections, windowMs } = stage.scale.idle;
  const samples = makeSamples();
  const troubles = new Set<string>();
  let rounds = 0;

  async function measure(name: ContenderName): Promise<void> {
    const sides: { readonly candidate: Candidate; readonly meter: Meter }[] = [];
    try {
      for (let i = 0; i < 2; i += 1) {
        const meter = await stage.meter(name);
        if (meter === undefined) return;
        const address = { ...stage.address(name), port: meter.port };
        sides.push({ meter, candidate: await startCandidate(stage, name, leaseMs, address) });
      }
      const [leader, follower] = sides as [(typeof sides)[number], (typeof sides)[number]];
      const params = { prefix: electionName('idle', name, rounds), count: elections };
      await leader.candidate.call('lead', params, 3 * leaseMs + 30_000);
      await follower.candidate.call('follow', params);
      // Whatever is done at first is done, also what is done after the first lease.
      await sleep(1.2 * leaseMs);
      const before = sides.map(({ meter }) => readMeter(meter, name));
      const startMs = performance.now();
      await sleep(windowMs);
      const hours = (performance.now() - startMs) / hourMs;
      const after = sides.map(({ meter }) => readMeter(meter, name));
      for (const [index, who] of ['leader', 'follower'].entries()) {
        const [from, to] = [before[index], after[index]];
        if (from === undefined || to === undefined) continue;
        samples.add(`${name} ${who}`, (to.requests - from.requests) / elections / hours);
        samples.add(`${name} ${who} upkeep`, (to.upkeep - from.upkeep) / hours);
      }
      for (const { meter } of sides) if (meter.trouble !== undefined) throw meter.trouble;
      const { leading } = await leader.candidate.call('standing', {});
      const { won } = await follower.candidate.call('standing', {});
      if (leading < elections || won > 0) {
        throw new WrongElectionError(`${name}: ${leading} of ${elections} lead, ${won} took over`);
      }
    } finally {
      await Promise.all(
        sides.map(async ({ candidate, meter }) => {
          await candidate.kill();
          await meter.close();
        }),
      );
    }
  }

  return {
    name: 'idle',
    about: 'what leaders and followers ask of the store',
    // Half a minute to two minutes each.
    roundsOf: (all) => Math.min(2, all),
    async round() {
      const results = await Promise.allSettled(stage.names.map(measure));
      rounds += 1;
      for (const [index, result] of results.entries()) {
        if (result.status === 'fulfilled') continue;
        const name = stage.names[index] as ContenderName;
        if (contenders[name].isOurs) throw result.reason;
        troubles.add(`${name}: ${(result.reason as Error).message.split('\n')[0]}`);
      }
    },
    figures: () =>
      (['leader', 'follower'] as const).flatMap((who) =>
        stage.names.flatMap((name) => {
          const all = samples.of(`${name} ${who}`);
          if (all.length === 0) return [];
          const { isOurs, isWoken } = contenders[name];
          const hasGoal = who === 'follower' && isOurs && isWoken;
          const label = `requests of ${who === 'leader' ? 'a leader' : 'an idle follower'}: ${name}`;
          const upkeep = samples.of(`${name} ${who} upkeep`);
          return [
            figureOf('idle', label, 'per h', all, hasGoal ? hourMs / leaseMs : undefined),
            ...(upkeep.some((count) => count > 0)
              ? [figureOf('idle', `${label}, messages on streams of the client`, 'per h', upkeep)]
              : []),
          ];
        }),
      ),
    troubles: () => [...troubles],
  };
}

/** etcd3 has a lease of its own for each election: those keep-alives are the election's. */
function readMeter(
  meter: Meter,
  name: ContenderName,
): { readonly requests: number; readonly upkeep: number } {
  const upkeep = name === 'etcd' ? (meter.requests.get(messageOfEtcd) ?? 0) : 0;
  return { requests: meter.requestCount - upkeep, upkeep };
}
