/**
 * Walks every state that the library's machines can reach in a small world, breadth first. Prints how many states it
 * saw; or, where something does not hold, the shortest way there.
 */
import process from 'node:process';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { untilInputEnds } from '../harness/background.ts';
import type { Bounds } from './subject.ts';
import { subjectNamed, subjects } from './subjects.ts';
import type { Walk } from './walk.ts';
import type { Job, WorkerData } from './worker.ts';

const names = subjects.map(({ name }) => name).join(',');
const usage = `usage: npm run explore [-- --only ${names}] [--faults N] [--terms N] [--broken]
  --broken       break each machine in each of the ways of its breaks.ts; fails if one is not found
  --background   at the lowest priority, until standard input ends`;
const values = readArguments();
const background = values.background ? untilInputEnds() : undefined;

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: 'string', default: names },
        faults: { type: 'string' },
        terms: { type: 'string' },
        broken: { type: 'boolean', default: false },
        background: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) {
      console.log(usage);
      process.exit(0);
    }
    return { ...values, subjects: values.only.split(',').map(subjectNamed) };
  } catch (error) {
    console.error(`${(error as Error).message}\n${usage}`);
    process.exit(64);
  }
}

function boundsOf({ faults, terms }: Bounds): Bounds {
  return { faults: Number(values.faults ?? faults), terms: Number(values.terms ?? terms) };
}

/**
 * A thread cannot raise its priority again. So a walk at the lowest one, which would hardly get on beside others,
 * begins anew when standard input ends.
 */
async function explore(job: Job): Promise<Walk> {
  const patient = background?.aborted === false ? background : undefined;
  const workerData: WorkerData = { job, isBackground: patient !== undefined };
  const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData });
  const walk = await new Promise<Walk | undefined>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the walk of ${job.subject} ended: ${code}`)));
    patient?.addEventListener('abort', () => resolve(undefined), { once: true });
  });
  await worker.terminate();
  return walk ?? explore(job);
}

function show({ problem, way }: Walk): void {
  console.log(`  ${problem}, after:`);
  for (const [index, name] of way.entries()) {
    console.log(`  ${`${index + 1}`.padStart(3)}  ${name}`);
  }
}

let passed = 0;
let failed = 0;
for (const subject of values.subjects) {
  const startMs = performance.now();
  if (values.broken) {
    for (const [broken, { name }] of subject.breaks.entries()) {
      const bounds = boundsOf(subject.brokenBounds);
      const found = await explore({ subject: subject.name, broken, bounds });
      const verdict = found.problem === undefined ? 'NOT FOUND' : 'found';
      console.log(`${subject.name}: ${name}: ${verdict} after ${found.states} states`);
      if (found.problem === undefined) failed += 1;
      else passed += 1;
      if (found.problem !== undefined) show(found);
    }
  } else {
    const found = await explore({ subject: subject.name, bounds: boundsOf(subject.bounds) });
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    console.log(`${subject.name}: ${found.states} states, depth ${found.depth}, ${seconds} s`);
    if (found.problem === undefined) passed += 1;
    else failed += 1;
    if (found.problem !== undefined) show(found);
  }
}
console.log(`\n${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
