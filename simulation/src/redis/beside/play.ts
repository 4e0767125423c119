import { setTimeout as sleep } from 'node:timers/promises';
import { pingEntry } from '../stream.ts';
import type { Chance } from './draw.ts';
import { Drawing, drawSettings } from './draw.ts';
import { ModelSide } from './model-side.ts';
import type { Observation } from './observe.ts';
import { Renaming } from './renaming.ts';
import { ServerSide } from './server-side.ts';
import type { Step } from './steps.ts';
import { show, showSettings } from './steps.ts';
import { Tally } from './tally.ts';

/** How long the servers may take until they are where the model says that they come to. */
const patienceMs = 15_000;
const pollMs = 10;

/** So long after a start it has been sent, or is not going to be. */
const firstPingMs = 3_000;

export interface Episode {
  readonly steps: number;
  /** The differences after the last step; empty: none. */
  readonly differences: readonly string[];
  readonly played: readonly string[];
  /** How often which kind of thing was played or seen. */
  readonly tally: Tally;
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
  const tally = new Tally();
  const played: string[] = settings.map((each) => showSettings(each));
  const beginning = drawing.begin();
  let queue: Step[] = [...beginning];
  let count = 0;
  while (count < steps || queue.length > 0) {
    while (queue.length === 0) queue = [...drawing.next()];
    const step = queue.shift() as Step;
    if (!beginning.includes(step)) count += 1;
    const line = show(step, servers.layout.ways);
    tell(line);
    played.push(line);
    tally.played(step);
    const reports = step.type === 'settle';
    const [said, answered] = await playStep(step, model, servers);
    const differences =
      said === answered
        ? await meet(model, servers, renaming, reports)
        : [`the reply: the model says ${said}, the server ${answered}`];
    tally.seen(model.nodes);
    if (differences.length > 0) return { steps: count, differences, played, tally };
  }
  return { steps: count, differences: [], played, tally };
}

async function playStep(
  step: Step,
  model: ModelSide,
  servers: ServerSide,
): Promise<readonly [string, string]> {
  if (step.type !== 'pings') return [await model.play(step), await servers.play(step)];
  const count = await servers.ping(step.node);
  if (!Number.isInteger(count)) return ['whole PINGs', `${count} of them`];
  await model.ping(step.node, count);
  return ['', ''];
}

async function meet(
  model: ModelSide,
  servers: ServerSide,
  renaming: Renaming,
  reports: boolean,
): Promise<readonly string[]> {
  const startedAtMs = performance.now();
  let expected = await model.observe(reports);
  let looksForPings = true;
  for (;;) {
    let seen: readonly Observation[] = [];
    const differences = await servers.observe(reports).then(
      (observed) => {
        seen = observed;
        return renaming.compare(expected, observed);
      },
      // A server may end while it is looked at.
      (error: Error) => [`the servers cannot be looked at: ${error.message}`],
    );
    const waitedMs = performance.now() - startedAtMs;
    if (differences.length === 0 || waitedMs > patienceMs) return differences;
    if (looksForPings && waitedMs > firstPingMs) {
      looksForPings = false;
      for (const node of firstPings(expected, seen)) await model.ping(node, 1);
      expected = await model.observe(reports);
    }
    await sleep(pollMs);
  }
}

/**
 * With its very first look at its replicas a server sends a PING to those it has. It looks once a
 * second, and mostly at once. But where it has repeated commands of an append-only file, it looks
 * at any time of its first second (`whileBlockedCron` of server.c). Then the model is told.
 */
function firstPings(
  expected: readonly Observation[],
  seen: readonly Observation[],
): readonly number[] {
  return [...expected.keys()].filter((node) => {
    const [ours, theirs] = [expected[node], seen[node]];
    const offset = Number(ours?.['master_repl_offset']);
    return (
      ours?.['role'] === 'master' &&
      Number(theirs?.['master_repl_offset']) === offset + pingEntry.bytes
    );
  });
}
