import { waitUntil } from '@incumbent/cli/trial';
import { StuckError } from '../harness/stuck.ts';
import { monotonicMs, until } from '../harness/time.ts';
import type { Places, StoredPlace } from './places.ts';
import { somebodyWorks, stuckMs } from './play.ts';
import type { Arena } from './strike.ts';

/** All is healed: whoever is left must be able to lead, and nobody else may stand in the queue. */
export async function judgeSurvivors(arena: Arena, boundMs: number): Promise<string[]> {
  const { fleet } = arena.crew;
  const ids = [...fleet.candidates.keys()];
  const problems = [...(await queueProblems(arena, ids, boundMs))];
  const led = new Set<string>();
  // A leader that gave up stands behind all others, so each leads in turn, unless one is lost on
  // the way.
  for (let changes = 0; led.size < ids.length && changes < 3 * ids.length; changes += 1) {
    const leader = await somebodyWorks(arena, 'the last change');
    led.add(leader.candidate);
    if (led.size === ids.length) break;
    arena.liveness.struck(monotonicMs());
    await arena.vacate();
    const isNext = () => (arena.log.judge.newest?.token ?? 0n) > leader.token;
    if (!(await waitUntil(isNext, stuckMs))) {
      throw new StuckError(`liveness: nobody followed ${leader.candidate}, who was asked to go`);
    }
  }
  const never = ids.filter((id) => !led.has(id));
  if (never.length > 0) {
    problems.push(
      `candidates can lead: ${never.join(', ')} never did, in ${3 * ids.length} changes`,
    );
  }
  return problems;
}

/** Each candidate that lives has one place, and nobody else has any. */
async function queueProblems(
  { places }: Arena,
  ids: readonly string[],
  boundMs: number,
): Promise<string[]> {
  let queue: readonly StoredPlace[] = [];
  const isRight = async () => {
    queue = await places.list();
    const standing = queue.map(({ candidate }) => candidate).sort();
    return standing.join() === [...ids].sort().join();
  };
  if (await until(boundMs, isRight)) return [];
  const show = queue.map(({ candidate, path }) => `${candidate} (${path})`).join(', ');
  return [`no place left behind: ${ids.join(', ')} live, and in the queue are ${show}`];
}

/** When everybody has ended. */
export async function judgeEmptyQueue(places: Places, boundMs: number): Promise<string[]> {
  let queue: readonly StoredPlace[] = [];
  const isEmpty = await until(boundMs, async () => {
    queue = await places.list();
    return queue.length === 0;
  });
  return isEmpty ? [] : queue.map(({ path }) => `no place left behind: ${path}, of nobody`);
}
