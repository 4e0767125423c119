import type { Benchmark } from '../../benchmark.ts';
import { WrongElectionError } from '../../benchmark.ts';
import type { Methods } from '../../calls/calls.ts';
import type { Remote } from '../../calls/remote.ts';
import { monotonicMs, sleep } from '../../clock.ts';
import type { Figure } from '../../figure.ts';
import { figureOf, median } from '../../figure.ts';
import type { Samples } from '../../samples.ts';
import { makeSamples } from '../../samples.ts';
import type {
  ObjectServerMethods,
  ObjectStore,
  ObjectUserMethods,
  RequestCount,
} from '../messages.ts';
import { objectStores } from '../messages.ts';
import type { Stage, WorkerName } from '../stage.ts';
import { startWorker } from '../stage.ts';

const hourMs = 3_600_000;
/** Of a follower, in one D. */
const pollsGoal = 2;
/** Of one object in a second: Cloud Storage takes about that many. */
const writesGoal = 1;
const storeNames: Readonly<Record<ObjectStore, string>> = { s3: 'S3', gcs: 'Cloud Storage' };
type Who = 'leader' | 'follower';

/**
 * One process leads a few elections on a bucket, another one observes their leaders, and nothing else
 * happens. The stand-in for the store counts what each asks.
 */
export function objects(stage: Stage): Benchmark {
  const { elections, windowLeases, looks } = stage.scale.objects;
  const samples = makeSamples();
  let rounds = 0;

  async function measure(store: ObjectStore): Promise<void> {
    const started: { kill(): Promise<void> }[] = [];
    const start = <M extends Methods<M>>(name: string, worker: WorkerName): Remote<M> => {
      const process = startWorker<M>(stage, name, worker);
      started.push(process);
      return process;
    };
    try {
      const server = start<ObjectServerMethods>(store, 'object-server');
      const { url } = await server.call('open', { store });
      const user = async (who: Who) => {
        const own = start<ObjectUserMethods>(`${store} ${who}`, 'object-user');
        const leaseMs = stage.scale.objects.leaseMs ?? null;
        return { own, ...(await own.call('open', { store, url, who, leaseMs })) };
      };
      const [leader, follower] = await Promise.all([user('leader'), user('follower')]);
      const { leaseMs } = leader;
      const params = { prefix: `idle-${rounds}`, count: elections };
      const withinMs = 4 * leaseMs + 30_000;
      await leader.own.call('lead', params, withinMs);
      await follower.own.call('observe', params, withinMs);
      // Whatever is done at first is done.
      await sleep(1.2 * leaseMs);
      await server.call('requests', {});
      const startMs = monotonicMs();
      await sleep(windowLeases * leaseMs);
      const { counts } = await server.call('requests', {});
      const windowMs = monotonicMs() - startMs;
      const { leading } = await leader.own.call('standing', {});
      if (leading < elections) {
        throw new WrongElectionError(`${store}: ${leading} of ${elections} lead`);
      }
      const per = (who: Who, ms: number, only?: 'writes'): number =>
        (countOf(counts, who, only) / elections / windowMs) * ms;
      samples.add(`${store} polls`, per('follower', leaseMs));
      samples.add(`${store} polls an hour`, per('follower', hourMs));
      samples.add(`${store} requests`, per('leader', 1_000));
      samples.add(`${store} writes`, per('leader', 1_000, 'writes'));
      samples.add(`${store} lease`, leaseMs);
      const { lookMs, getMs } = await follower.own.call('looks', { ...params, times: looks });
      samples.add(`${store} look`, ...lookMs);
      samples.add(`${store} get`, ...getMs);
      samples.add(`${store} beside`, median(lookMs) / median(getMs));
    } finally {
      await Promise.all(started.map((each) => each.kill()));
    }
  }

  return {
    name: 'objects',
    about: 'what leaders and followers ask of object stores',
    // Some minutes each.
    roundsOf: () => 1,
    async round() {
      const results = await Promise.allSettled(objectStores.map(measure));
      rounds += 1;
      for (const result of results) if (result.status === 'rejected') throw result.reason;
    },
    figures: () => objectStores.flatMap((store) => figuresOf(store, samples)),
  };
}

function figuresOf(store: ObjectStore, samples: Samples): readonly Figure[] {
  const name = storeNames[store];
  const of = (key: string) => samples.of(`${store} ${key}`);
  const [leaseMs = 0] = of('lease');
  const lease = `D = ${leaseMs / 1_000} s`;
  const follower = `an idle follower on ${name}, ${lease}`;
  const leader = `a leader on ${name}, ${lease}`;
  return [
    figureOf('objects', `${follower}: polls in one D`, '', of('polls'), pollsGoal),
    figureOf('objects', `${follower}: polls`, 'per h', of('polls an hour')),
    figureOf('objects', `${leader}: requests`, 'per s', of('requests')),
    figureOf('objects', `${leader}: writes of one object`, 'per s', of('writes'), writesGoal),
    figureOf('objects', `a look at an election on ${name}`, 'ms', of('look')),
    figureOf('objects', `floor: a plain GET by the same SDK on ${name}`, 'ms', of('get')),
    figureOf('objects', `a look on ${name}, beside that floor`, '×', of('beside')),
  ];
}

function countOf(counts: readonly RequestCount[], who: Who, only?: 'writes'): number {
  return counts
    .filter((each) => each.who === who && (only === undefined || each.isWrite))
    .reduce((sum, { count }) => sum + count, 0);
}
