import type { Benchmark } from '../../benchmark.ts';
import { monotonicMs, sleep } from '../../clock.ts';
import { figureOf } from '../../figure.ts';
import { makeSamples } from '../../samples.ts';
import type { ContenderName } from '../messages.ts';
import { contenders } from '../messages.ts';
import type { Entered, Stage } from '../stage.ts';

const shards = 10_000;
const processes = 4;
/** The default. */
const leaseMs = 15_000;
/** Of the requests. */
const windowMs = 2 * leaseMs;
const joinWithinMs = 60_000;
const balancedWithinMs = 120_000;
/** Of the issue. */
const goals = { requests: 2, ownedBytes: 2_048, knownBytes: 200 } as const;

const name = 'cost';

/**
 * 10,000 shards: the memory of a process that owns all of them, and of one that only watches them. Then
 * four processes own them, and the server counts what it is asked.
 */
export function cost(stage: Stage): Benchmark {
  const samples = makeSamples();
  const troubles = new Set<string>();
  const ours = stage.names.filter((contender) => contenders[contender].isOurs);
  let rounds = 0;

  async function measure(contender: ContenderName): Promise<void> {
    const { store } = contenders[contender];
    const setName = `${name}-${rounds}-${Math.floor(monotonicMs())}`;
    const entered: Entered[] = [];
    const setOf = ({ port }: Entered, kind: string, count: number) => ({
      ...{ port, leaseMs, name: `${setName}-${kind}`, shards: count, areNamed: true },
    });
    /** A process that has loaded all of its code, and joined nothing. */
    const enter = async (): Promise<Entered> => {
      const each = await stage.enter(store);
      entered.push(each);
      const { member } = each;
      await member.call('join', setOf(each, `warm-${entered.length}`, 1), joinWithinMs);
      await owned([each], 1);
      await member.call('leave', {}, joinWithinMs);
      return each;
    };
    const owned = async (members: readonly Entered[], count: number): Promise<void> => {
      const untilMs = monotonicMs() + balancedWithinMs;
      for (;;) {
        const counts = await Promise.all(members.map(({ member }) => member.call('owned', {})));
        const isEven = Math.max(...counts) - Math.min(...counts) <= 1;
        if (isEven && counts.reduce((sum, one) => sum + one, 0) === count) return;
        if (monotonicMs() > untilMs) throw new Error(`not balanced: ${counts.join(', ')}`);
        await sleep(200);
      }
    };
    const join = (each: Entered) =>
      each.member.call('join', setOf(each, 'all', shards), joinWithinMs);
    const memory = ({ member }: Entered) => member.call('memory', {}, joinWithinMs);
    try {
      stage.progress(`${contender}: memory`);
      const first = await enter();
      const emptyBytes = await memory(first);
      await join(first);
      await owned([first], shards);
      await sleep(leaseMs);
      const ownedBytes = (await memory(first)) - emptyBytes;
      samples.add(`${contender}, owned`, ownedBytes / shards);

      const observer = await enter();
      const blindBytes = await memory(observer);
      await observer.member.call('observe', setOf(observer, 'all', shards), joinWithinMs);
      const knownBytes = (await memory(observer)) - blindBytes;
      samples.add(`${contender}, known`, knownBytes / shards);
      await observer.member.kill();

      const others: Entered[] = [];
      while (others.length < processes - 1) {
        const each = await enter();
        await join(each);
        others.push(each);
      }
      const all = [first, ...others];
      await owned(all, shards);
      await sleep(leaseMs);
      // All of them own as many, and the first one coordinates.
      const [plainBytes, coordinatorBytes] = [
        await memory(others[0] as Entered),
        await memory(first),
      ];
      samples.add(`${contender}, coordinator`, (coordinatorBytes - plainBytes) / shards);

      stage.progress(`${contender}: requests`);
      const counter = await stage.count(store);
      const before = await counter.read();
      const fromMs = monotonicMs();
      await sleep(windowMs);
      const requests = (await counter.read()) - before;
      const seconds = (monotonicMs() - fromMs) / 1_000;
      await counter.close();
      await owned(all, shards);
      samples.add(`${contender}, requests`, requests / processes / seconds);
      stage.progress(
        `${contender}: ${(requests / processes / seconds).toFixed(2)} requests a second and process; ` +
          `bytes a shard: owned ${Math.round(ownedBytes / shards)}, ` +
          `known ${Math.round(knownBytes / shards)}, ` +
          `known to the coordinator ${Math.round((coordinatorBytes - plainBytes) / shards)} more`,
      );
    } finally {
      await Promise.all(entered.map(({ member }) => member.kill()));
    }
  }

  return {
    name,
    about: '10,000 shards over four processes: requests to the server, and memory',
    // Two minutes for each store.
    roundsOf: () => 1,
    async round() {
      for (const contender of ours) {
        try {
          await measure(contender);
        } catch (error) {
          troubles.add(`${contender}: ${(error as Error).message.split('\n')[0]}`);
        }
      }
      rounds += 1;
    },
    figures: () =>
      ours.flatMap((contender) => {
        const figure = (key: string, what: string, unit: 'per s' | 'bytes', goal?: number) => {
          const all = samples.of(`${contender}, ${key}`);
          return all.length === 0 ? [] : [figureOf(name, `${what}: ${contender}`, unit, all, goal)];
        };
        return [
          ...figure('requests', 'requests of a process', 'per s', goals.requests),
          ...figure('owned', 'memory of an owned shard', 'bytes', goals.ownedBytes),
          ...figure('known', 'memory of a known shard', 'bytes', goals.knownBytes),
          ...figure(
            'coordinator',
            'memory of a shard at the coordinator',
            'bytes',
            goals.knownBytes,
          ),
        ];
      }),
    troubles: () => [...troubles],
  };
}
