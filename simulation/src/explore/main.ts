/**
 * Walks every state that two candidates can reach on one record, breadth first, with the library's own machine of a
 * term. Prints how many states it saw; or, where something does not hold, the shortest way there.
 *
 *   npm run explore [-- --faults 1 --terms 2] [--broken]
 *
 * `--broken` breaks the machine in each of the ways of breaks.ts, and fails when one is not found. `--background`: at the
 * lowest priority.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { runInBackground } from '../harness/background.ts';
import { distOf } from '../harness/packages.ts';
import { breaks } from './breaks.ts';
import type { TermMachine, World } from './model.ts';
import { firstWorld, problemOf, successors } from './model.ts';

const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: '1' },
    terms: { type: 'string', default: '2' },
    broken: { type: 'boolean', default: false },
    background: { type: 'boolean', default: false },
  },
});
if (values.background) runInBackground();
const faults = Number(values.faults);
const mostTerms = Number(values.terms);
const machinePath = join(distOf()('incumbent'), 'core/term-machine.js');

interface Walk {
  readonly states: number;
  readonly depth: number;
  readonly problem: string | undefined;
  /** What happened, in order, until the problem. */
  readonly way: readonly string[];
}

function walk(machine: TermMachine): Walk {
  const options = { machine, mostTerms };
  const first = firstWorld(faults);
  const known = new Set([keyOf(first)]);
  // One entry a state: who came before, and by what.
  const worlds: (World | undefined)[] = [first];
  const cameFrom: number[] = [-1];
  const cameBy: string[] = [''];
  const depths: number[] = [0];
  const wayTo = (index: number): string[] => {
    const way: string[] = [];
    for (let at = index; at > 0; at = cameFrom[at] as number) way.push(cameBy[at] as string);
    return way.reverse();
  };
  for (let index = 0; index < worlds.length; index += 1) {
    const world = worlds[index] as World;
    worlds[index] = undefined;
    const depth = (depths[index] as number) + 1;
    for (const [name, next] of successors(world, options)) {
      const problem = problemOf(next, options);
      if (problem !== undefined) {
        return { states: known.size, depth, problem, way: [...wayTo(index), name] };
      }
      const key = keyOf(next);
      if (known.has(key)) continue;
      known.add(key);
      worlds.push(next);
      cameFrom.push(index);
      cameBy.push(name);
      depths.push(depth);
    }
  }
  return { states: known.size, depth: depths.at(-1) ?? 0, problem: undefined, way: [] };
}

/** Two candidates that have changed places are the same state. */
function keyOf({ candidates, holder, by, ...rest }: World): string {
  const [a, b] = candidates.map((candidate) => JSON.stringify(candidate)) as [string, string];
  const isSwapped = a > b;
  const seen = (id: World['by']) => (typeof id === 'number' && isSwapped ? 1 - id : id);
  return `${isSwapped ? b + a : a + b}${seen(holder)}${seen(by)}${JSON.stringify(rest)}`;
}

async function brokenMachine({ find, replace }: (typeof breaks)[number]): Promise<TermMachine> {
  const text = readFileSync(machinePath, 'utf8');
  if (text.split(find).length !== 2) throw new Error(`the patch does not fit any more: ${find}`);
  const base = pathToFileURL(join(distOf()('incumbent'), 'base/')).href;
  const directory = mkdtempSync(join(tmpdir(), 'incumbent-explore-'));
  try {
    const file = join(directory, 'term-machine.mjs');
    writeFileSync(file, text.replace(find, () => replace).replaceAll("'../base/", `'${base}`));
    return (await import(pathToFileURL(file).href)) as TermMachine;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function show({ problem, way }: Walk): void {
  console.log(`  ${problem}, after:`);
  for (const [index, name] of way.entries())
    console.log(`  ${`${index + 1}`.padStart(3)}  ${name}`);
}

const startMs = performance.now();
let failed = 0;
if (values.broken) {
  for (const each of breaks) {
    const found = walk(await brokenMachine(each));
    console.log(
      `${each.name}: ${found.problem === undefined ? 'NOT FOUND' : 'found'} after ${found.states} states`,
    );
    if (found.problem === undefined) failed += 1;
    else show(found);
  }
  console.log(`\n${breaks.length - failed} passed, ${failed} failed`);
} else {
  const found = walk((await import(pathToFileURL(machinePath).href)) as TermMachine);
  if (found.problem !== undefined) {
    failed = 1;
    show(found);
  }
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  console.log(`${found.states} states, depth ${found.depth}, ${seconds} s`);
  console.log(`\n${1 - failed} passed, ${failed} failed`);
}
process.exitCode = failed === 0 ? 0 : 1;
