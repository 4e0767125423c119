import type { RedisServer } from '@incumbent/servers';
import type { Benchmark } from '../../benchmark.ts';
import { WrongElectionError } from '../../benchmark.ts';
import { jitter, monotonicMs, sleep } from '../../clock.ts';
import type { Figure } from '../../figure.ts';
import { figureOf, median } from '../../figure.ts';
import type { Samples } from '../../samples.ts';
import type { Told } from '../messages.ts';
import type { Scene, Stage } from '../stage.ts';
import { lostOn, startScene } from '../stage.ts';

const goalMs = 3_000;
const writesWithinMs = 60_000;

/** These two are waits that the settings ask for. */
const seenPart = 'the managers say that it is down';
const viewsPart = 'the views of clients have lapsed';

/** From one to the next: what a manager tells, or a step of its move that is over. */
const parts: readonly (readonly [what: string, until: string])[] = [
  [seenPart, 'unavailable'],
  ['the elected one decides', 'before revoke'],
  ['the primary is revoked', 'after revoke'],
  [viewsPart, 'after fence'],
  ['a replica is chosen', 'after choose'],
  ['it is promoted', 'after promote'],
  ['the others are redirected', 'after redirect'],
  ['it is published', 'after publish'],
];

/** The primary is killed while a client writes all the time; then it is started again. */
export function killed(stage: Stage, samples: Samples): Benchmark {
  let lost = 0;
  let kills = 0;
  return {
    name: 'killed',
    about: 'a killed primary, until a client writes again',
    roundsOf: (all) => all,
    async round() {
      const scene = await startScene(stage);
      try {
        let primary = scene.servers[0] as RedisServer;
        for (let i = 0; i < stage.scale.kills; i += 1) {
          await scene.formed(primary);
          await sleep(500 + jitter(500));
          primary = await kill(scene, primary, samples);
          kills += 1;
        }
        lost += (await lostOn(primary, scene.writer)).lost;
      } finally {
        await scene.close();
      }
    },
    figures: () => figuresOf(samples, lost, kills),
    troubles: () => (lost === 0 ? [] : [`${lost} acknowledged writes are lost`]),
  };
}

/** @returns the primary that takes its place */
async function kill(scene: Scene, primary: RedisServer, samples: Samples): Promise<RedisServer> {
  for (const manager of scene.managers) await manager.call('told', {});
  const written = scene.writer.call('writesElsewhere', { than: primary.port }, writesWithinMs);
  written.catch(() => {});
  const killedMs = monotonicMs();
  await primary.kill();
  const { atMs, port } = await written;
  await sleep(100);
  const told = await Promise.all(
    scene.managers.map(async (manager) => (await manager.call('told', {})).told),
  );
  const mover = told.find((each) => each.some(({ what }) => what === 'after publish'));
  if (mover === undefined) throw new WrongElectionError('a write was acknowledged by no primary');
  note(mover, killedMs, atMs, samples);
  const next = scene.servers.find((server) => server.port === port);
  if (next === undefined) throw new WrongElectionError(`${port} is no server of the set`);
  await primary.start();
  return next;
}

function note(told: readonly Told[], killedMs: number, wroteMs: number, samples: Samples): void {
  let beforeMs = killedMs;
  let waitedMs = 0;
  for (const [what, until] of parts) {
    const found = told.find((each) => each.what === until && each.atMs >= beforeMs);
    if (found === undefined) continue;
    const ms = found.atMs - beforeMs;
    samples.add(what, ms);
    if (what === seenPart || what === viewsPart) waitedMs += ms;
    beforeMs = found.atMs;
  }
  samples.add('a client has written', wroteMs - beforeMs);
  samples.add('total', wroteMs - killedMs);
  samples.add('own', wroteMs - killedMs - waitedMs);
}

function figuresOf(samples: Samples, lost: number, kills: number): readonly Figure[] {
  const all = samples.of('total');
  if (all.length === 0) return [];
  const part = (what: string): readonly Figure[] => {
    const of = samples.of(what);
    return of.length === 0 ? [] : [figureOf('killed', `— until ${what}`, 'ms', of)];
  };
  return [
    figureOf('killed', 'primary killed: first acknowledged write', 'ms', all, goalMs),
    ...parts.flatMap(([what]) => part(what)),
    ...part('a client has written'),
    figureOf(
      'killed',
      '— of it neither failures counted nor views waited for',
      'ms',
      samples.of('own'),
    ),
    ...ratio('that beside the floor', samples.of('bare'), samples.of('own')),
    ...ratio('the whole beside Sentinel', samples.of('sentinel'), all),
    figureOf('killed', `acknowledged writes lost in ${kills} failovers`, '', [lost], 0),
  ];
}

/** Median beside median, in the same run. */
function ratio(
  what: string,
  theirs: readonly number[],
  ours: readonly number[],
): readonly Figure[] {
  if (theirs.length === 0) return [];
  return [figureOf('killed', `— ${what}`, '×', [median(ours) / median(theirs)])];
}
