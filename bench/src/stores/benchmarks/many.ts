import type { Meter } from '@incumbent/servers';
import type { Benchmark } from '../../benchmark.ts';
import { WrongElectionError } from '../../benchmark.ts';
import { sleep } from '../../clock.ts';
import type { Unit } from '../../figure.ts';
import { figureOf } from '../../figure.ts';
import { makeSamples } from '../../samples.ts';
import type { ContenderName } from '../messages.ts';
import type { Candidate, Stage } from '../stage.ts';
import { electionName, startCandidate } from '../stage.ts';

/** Of a thousand elections, on a machine that has other work. A contender that is slower is told. */
const leadsWithinMs = 60_000;
const entersWithinMs = 45_000;

interface Side {
  readonly candidate: Candidate;
  readonly meter: Meter | undefined;
  readonly prefix: string;
  readonly heapBytes: number;
  readonly rssBytes: number;
}

/**
 * Two processes with a client each: each begins so many elections in one moment, leads them, and waits
 * in those that the other one leads. Nobody may lose one. A contender takes a minute or two, and never
 * more than `leadsWithinMs` and `entersWithinMs` allow.
 */
export function many(stage: Stage): Benchmark {
  const { leaseMs } = stage.scale;
  const { elections: count, windowMs, isTogether } = stage.scale.many;
  const samples = makeSamples();
  const troubles = new Set<string>();
  let rounds = 0;

  async function open(name: ContenderName, index: number): Promise<Side> {
    const meter = await stage.meter(name);
    const { port, directory } = stage.address(name);
    const address = { directory, port: meter?.port ?? port };
    const candidate = await startCandidate(stage, name, leaseMs, address);
    const prefix = `${electionName('many', name, rounds)}-${index}`;
    return { meter, candidate, prefix, ...(await candidate.call('memory', {})) };
  }

  async function measure(name: ContenderName): Promise<void> {
    const sides: Side[] = [];
    const asked = () => sides.map(({ meter }) => meter?.requestCount ?? 0);
    try {
      for (let i = 0; i < 2; i += 1) sides.push(await open(name, i));
      stage.progress(`${name}: ${count} elections of each of two processes begin`);
      const beforeAll = asked();
      const led = await Promise.all(
        sides.map(({ candidate, prefix }) =>
          candidate.call('lead', { prefix, count }, leadsWithinMs),
        ),
      );
      const afterLed = asked();
      const slowest = Math.max(...led.map(({ elapsedMs }) => elapsedMs));
      stage.progress(`${name}: all lead after ${Math.round(slowest)} ms; the others enter`);
      await Promise.all(
        sides.map(({ candidate }, index) => {
          const { prefix } = sides[1 - index] as Side;
          return candidate.call('follow', { prefix, count }, entersWithinMs);
        }),
      );
      // By then each has heard of all writes of the entering, and has looked once more.
      await sleep(1.2 * leaseMs);
      const before = asked();
      stage.progress(`${name}: ${windowMs / 1e3} s are measured`);
      const shares = await Promise.all(
        sides.map(({ candidate }) =>
          candidate.call('cpuShare', { windowMs }, windowMs + entersWithinMs),
        ),
      );
      for (const [index, side] of sides.entries()) {
        const { candidate, meter } = side;
        const { leading, ended, won } = await candidate.call('standing', {});
        if (leading < count || ended > 0 || won > 0) {
          throw new WrongElectionError(
            `${name}: ${leading} of ${count} lead, ${ended} were lost, ${won} taken over`,
          );
        }
        samples.add(`${name} cpu`, 100 * (shares[index]?.share ?? Number.NaN));
        samples.add(`${name} led`, led[index]?.elapsedMs ?? Number.NaN);
        if (meter !== undefined) {
          const toLead = (afterLed[index] ?? 0) - (beforeAll[index] ?? 0);
          samples.add(`${name} to lead`, toLead / count);
          const requests = meter.requestCount - (before[index] ?? 0);
          samples.add(`${name} requests`, requests / (windowMs / 1e3));
          samples.add(`${name} connections`, meter.open);
        }
        const after = await candidate.call('memory', {});
        samples.add(`${name} heap`, (after.heapBytes - side.heapBytes) / (2 * count) / 1024);
        samples.add(`${name} rss`, (after.rssBytes - side.rssBytes) / (2 * count) / 1024);
      }
    } finally {
      await Promise.all(
        sides.map(async ({ candidate, meter }) => {
          await candidate.kill();
          await meter?.close();
        }),
      );
    }
  }

  const rows: readonly (readonly [key: string, what: string, unit: Unit])[] = [
    ['led', 'until all were led', 'ms'],
    ['to lead', 'requests until then, per election', ''],
    ['cpu', 'CPU', '% of a core'],
    ['requests', 'requests', 'per s'],
    ['connections', 'connections', ''],
    ['heap', 'heap per election', 'KiB'],
    ['rss', 'resident memory per election', 'KiB'],
  ];
  return {
    name: 'many',
    about: 'many elections led and followed',
    // A minute for each of them.
    roundsOf: () => 1,
    async round() {
      const attempt = async (name: ContenderName) => {
        try {
          await measure(name);
        } catch (error) {
          // The others are worth knowing all the same.
          const [what] = (error as Error).message.split('\n');
          troubles.add(error instanceof WrongElectionError ? String(what) : `${name}: ${what}`);
        }
      };
      if (isTogether) await Promise.all(stage.names.map(attempt));
      else for (const name of stage.names) await attempt(name);
      rounds += 1;
    },
    figures: () =>
      rows.flatMap(([key, what, unit]) =>
        stage.names.flatMap((name) => {
          const all = samples.of(`${name} ${key}`);
          if (all.length === 0) return [];
          return [
            figureOf('many', `${count} led and ${count} followed: ${name}: ${what}`, unit, all),
          ];
        }),
      ),
    troubles: () => [...troubles],
  };
}
