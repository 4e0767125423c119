import { setTimeout as sleep } from 'node:timers/promises';
import type { Chance } from './draw.ts';
import { Drawing, drawSettings } from './draw.ts';
import { ModelSide } from './model-side.ts';
import type { Observation } from './observe.ts';
import { Renaming } from './renaming.ts';
import { ServerSide } from './server-side.ts';
import type { Step } from './steps.ts';
import { show, showSettings } from './steps.ts';

/** How long the servers may take until they are where the model says that they come to. */
const patienceMs = 15_000;
const pollMs = 10;

export interface Episode {
  readonly steps: number;
  /** What differs after the last step; empty: nothing. */
  readonly differences: readonly string[];
  readonly played: readonly string[];
}

/**
 * Three nodes from nothing, and so many steps with them, on both sides. After each step the model says
 * where its nodes come to rest, and the servers must come there, too. Ends with the first difference.
 * @param random of the model: for what is left to chance
 */
export async function playEpisode(
  chance: Chance,
  steps: number,
  random: () => number,
  tell: (line: string) => void = () => {},
): Promise<Episode> {
  const settings = drawSettings(chance);
  await using servers = await ServerSide.open(settings);
  const model = new ModelSide(servers.layout, settings, random);
  const renaming = new Renaming();
  const drawing = new Drawing(chance, servers.layout, model.nodes);
  const played: string[] = settings.map((each) => showSettings(each));
  const beginning = drawing.begin();
  let queue: Step[] = [...beginning];
  let count = 0;
  while (count < steps || queue.length > 0) {
    if (queue.length === 0) queue = [...drawing.next()];
    const step = queue.shift() as Step;
    if (!beginning.includes(step)) count += 1;
    const line = show(step, servers.layout.ways);
    tell(line);
    played.push(line);
    const reports = step.type === 'settle';
    const [said, answered] = [await model.play(step), await servers.play(step)];
    const differences =
      said === answered
        ? await meet(await model.observe(reports), () => servers.observe(reports), renaming)
        : [`the reply: the model says ${said}, the server ${answered}`];
    if (differences.length > 0) return { steps: count, differences, played };
  }
  return { steps: count, differences: [], played };
}

async function meet(
  expected: readonly Observation[],
  look: () => Promise<readonly Observation[]>,
  renaming: Renaming,
): Promise<readonly string[]> {
  const startedAtMs = performance.now();
  for (;;) {
    const differences = renaming.compare(expected, await look());
    if (differences.length === 0 || performance.now() - startedAtMs > patienceMs)
      return differences;
    await sleep(pollMs);
  }
}
