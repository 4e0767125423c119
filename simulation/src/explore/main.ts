/**
 * Walks every state that the library's machines can reach in a small world, breadth first. Prints how many states it
 * saw; or, where something does not hold, the shortest way there.
 *
 *   npm run explore [-- --only term,session] [--faults N --terms N] [--broken]
 *
 * `--broken` breaks each machine in each of the ways of its breaks.ts, and fails when one is not found. `--background`:
 * at the lowest priority.
 */
import process from 'node:process';
import { parseArgs } from 'node:util';
import { runInBackground } from '../harness/background.ts';
import { session } from './session/subject.ts';
import type { Bounds, Subject } from './subject.ts';
import { brokenMachineOf, pathOf } from './subject.ts';
import { term } from './term/subject.ts';
import type { Walk } from './walk.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: 'term,session' },
    faults: { type: 'string' },
    terms: { type: 'string' },
    broken: { type: 'boolean', default: false },
    background: { type: 'boolean', default: false },
  },
});
if (values.background) runInBackground();

const known: readonly Subject[] = [term, session];
const subjects = values.only.split(',').map((name) => {
  const subject = known.find((each) => each.name === name);
  if (subject !== undefined) return subject;
  const names = known.map((each) => each.name).join(', ');
  throw new Error(`--only "${name}": there is no such machine. There are: ${names}`);
});

function boundsOf({ faults, terms }: Bounds): Bounds {
  return { faults: Number(values.faults ?? faults), terms: Number(values.terms ?? terms) };
}

function show({ problem, way }: Walk): void {
  console.log(`  ${problem}, after:`);
  for (const [index, name] of way.entries()) {
    console.log(`  ${`${index + 1}`.padStart(3)}  ${name}`);
  }
}

let passed = 0;
let failed = 0;
for (const subject of subjects) {
  const startMs = performance.now();
  if (values.broken) {
    for (const each of subject.breaks) {
      const machine = await brokenMachineOf(subject, each);
      const found = await subject.explore(machine, boundsOf(subject.brokenBounds));
      const verdict = found.problem === undefined ? 'NOT FOUND' : 'found';
      console.log(`${subject.name}: ${each.name}: ${verdict} after ${found.states} states`);
      if (found.problem === undefined) failed += 1;
      else passed += 1;
      if (found.problem !== undefined) show(found);
    }
  } else {
    const machine = await import(pathOf(subject));
    const found = await subject.explore(machine, boundsOf(subject.bounds));
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    console.log(`${subject.name}: ${found.states} states, depth ${found.depth}, ${seconds} s`);
    if (found.problem === undefined) passed += 1;
    else failed += 1;
    if (found.problem !== undefined) show(found);
  }
}
console.log(`\n${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
