/**
 * The same mishaps with us and with Sentinel: how many acknowledged writes are lost, and for how
 * long nobody can write.
 */
import type { RedisServer } from '@incumbent/servers';
import type { Benchmark } from '../../benchmark.ts';
import { WrongElectionError } from '../../benchmark.ts';
import { jitter, monotonicMs, sleep } from '../../clock.ts';
import type { Figure } from '../../figure.ts';
import { figureOf } from '../../figure.ts';
import { makeSamples } from '../../samples.ts';
import type { Stage, Writer } from '../stage.ts';
import { lostOn, startScene, startSentinelScene } from '../stage.ts';
import { downAfterMs } from './beside.ts';

interface Scenario {
  readonly name: string;
  strike(primary: RedisServer, replica: RedisServer): Promise<void>;
}

/** As it is by default; the servers of our tests wait for no other replica. */
const syncDelay = ['--repl-diskless-sync-delay', '5'];
const frozenMs = 6_000;
/** By then it has ended, with us or with Sentinel. */
const aftermathMs = 10_000;

const all: readonly Scenario[] = [
  { name: 'the primary is killed', strike: (primary) => primary.kill() },
  {
    name: 'the primary is killed, and starts again at once without its data',
    async strike(primary) {
      await primary.kill();
      await primary.start();
    },
  },
  {
    name: `the primary stands still for ${frozenMs / 1_000} s`,
    async strike(primary) {
      await primary.freeze();
      await sleep(frozenMs);
      primary.thaw();
    },
  },
  {
    name: 'a replica has no link for a second, and then the primary is killed',
    async strike(primary, replica) {
      await replica.command('CONFIG', 'SET', 'masterauth', 'wrong');
      await primary.command('CLIENT', 'KILL', 'TYPE', 'replica');
      await sleep(1_000);
      await primary.kill();
      // Without a replica nobody takes writes.
      await replica.command('CONFIG', 'SET', 'masterauth', '');
    },
  },
  {
    name: 'an operator promotes a replica by hand',
    strike: (_primary, replica) => replica.promote(),
  },
];

const keepers = ['incumbent', 'Sentinel'] as const;

export function scenarios(stage: Stage): Benchmark {
  const samples = makeSamples();
  return {
    name: 'scenarios',
    about: 'the same mishaps with us and with Sentinel',
    roundsOf: (rounds) => rounds,
    async round() {
      for (let i = 0; i < stage.scale.scenarios; i += 1) {
        for (const scenario of all) {
          for (const keeper of keepers) {
            const { lost, pauseMs } = await play(scenario, keeper, stage);
            samples.add(`${scenario.name}, lost, ${keeper}`, lost);
            samples.add(`${scenario.name}, pause, ${keeper}`, pauseMs);
          }
        }
      }
    },
    figures: () =>
      all.flatMap(({ name }) =>
        keepers.flatMap((keeper): readonly Figure[] => {
          const lost = samples.of(`${name}, lost, ${keeper}`);
          if (lost.length === 0) return [];
          const sum = lost.reduce((total, each) => total + each, 0);
          const goal = keeper === 'incumbent' ? 0 : undefined;
          const times = `acknowledged writes lost in ${lost.length}`;
          return [
            figureOf('scenarios', `${name}: ${keeper}, ${times}`, '', [sum], goal),
            figureOf(
              'scenarios',
              `— ${keeper}, longest time without an acknowledged write`,
              'ms',
              samples.of(`${name}, pause, ${keeper}`),
            ),
          ];
        }),
      ),
    troubles: () =>
      all.flatMap(({ name }) => {
        const lost = samples.of(`${name}, lost, incumbent`).reduce((sum, each) => sum + each, 0);
        return lost === 0 ? [] : [`${name}: ${lost} acknowledged writes are lost`];
      }),
  };
}

interface Played {
  readonly lost: number;
  readonly pauseMs: number;
}

async function play(
  scenario: Scenario,
  keeper: (typeof keepers)[number],
  stage: Stage,
): Promise<Played> {
  const scene =
    keeper === 'incumbent'
      ? await startScene(stage, syncDelay)
      : await startSentinelScene(stage, downAfterMs, syncDelay);
  try {
    return await strike(scenario, scene.servers, scene.writer);
  } finally {
    await scene.close();
  }
}

async function strike(
  scenario: Scenario,
  servers: readonly RedisServer[],
  writer: Writer,
): Promise<Played> {
  const [primary, replica] = servers as [RedisServer, RedisServer];
  await sleep(1_000 + jitter(500));
  const fromMs = monotonicMs();
  await scenario.strike(primary, replica);
  await sleep(aftermathMs);
  const toMs = monotonicMs();
  const { atMs, port } = await writer.call('newest', {});
  const { ms } = await writer.call('longestPause', { fromMs, toMs });
  // It may not write again at all.
  const pauseMs = Math.max(ms, toMs - atMs);
  const last = servers.find((server) => server.port === port);
  if (last === undefined) throw new WrongElectionError(`${port} is no server of the set`);
  const { lost } = await lostOn(last, writer);
  return { lost, pauseMs };
}
