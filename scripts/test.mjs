// Runs every stage of the tests and counts them. See `usage` below; CONTRIBUTING.md says where
// tests go. The very last line is always `N passed, N failed, N skipped`.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { busyShare } from './lib/busy.mjs';
import { makeMemoryDirectory } from './lib/memory-directory.mjs';
import { root, run, seconds, tool } from './lib/run.mjs';

// `limitMin` only turns a hang into a failure that says so. Stages run in turn, but for two kinds,
// whose output is shown when they are done:
// - `fillsGaps`: needs nothing but processors, so it runs beside all others, at the lowest priority
//   until they are done. Until then it may stand still, so its limit counts from then on.
// - `mostlyWaits`: needs less than one processor, and its judge leaves the machine seconds or takes
//   off the time it stood still. Two of these run at once, the longest first, so that none is alone
//   at the end.
// Where others use more than half of the processors, fewer tests run at once. Leases are seconds of the
// real clock, and a leader with a tenth of a processor loses its lease, as it should.
const stages = [
  {
    id: 'unit',
    name: 'unit',
    about: 'what needs no server, on a simulated clock',
    vitestProject: 'unit',
    limitMin: 10,
  },
  {
    id: 'simulation',
    name: 'simulation',
    about: 'whole elections in virtual time, thousands of seeds, each mechanism has its share',
    script: ['simulation/dist/main.js', '--seeds', '2750'],
    fillsGaps: true,
    limitMin: 20,
  },
  {
    id: 'explore',
    name: 'exploration',
    about: 'every state that the machines of a term and of a ZooKeeper session can reach',
    script: ['simulation/dist/explore/main.js'],
    fillsGaps: true,
    limitMin: 20,
  },
  {
    id: 'unsound',
    name: 'exploration of broken machines',
    about: 'the exploration must find each way to break a machine',
    script: ['simulation/dist/explore/main.js', '--broken'],
    fillsGaps: true,
    limitMin: 20,
  },
  {
    id: 'variants',
    name: 'broken variants',
    about: 'the simulation must find each deliberately broken variant',
    script: ['simulation/dist/variants.js'],
    fillsGaps: true,
    limitMin: 20,
  },
  {
    id: 'integration',
    name: 'integration',
    about: 'real stores and real processes',
    vitestProject: 'integration',
    limitMin: 45,
  },
  {
    id: 'ensemble',
    name: 'ensemble chaos (short)',
    about: 'candidates on an ensemble whose servers and networks fail at random',
    script: ['chaos/dist/main.js', 'ensemble', '--short'],
    mostlyWaits: true,
    limitMin: 8,
  },
  {
    id: 'soak',
    name: 'zookeeper soak (short)',
    about: 'clients under load on an ensemble that fails at random',
    script: ['chaos/dist/main.js', 'zookeeper', '--short'],
    mostlyWaits: true,
    limitMin: 5,
  },
  {
    id: 'stores',
    name: 'chaos on the stores (short)',
    about: 'candidates on PostgreSQL, Redis and etcd, side by side, whose servers fail at random',
    script: ['chaos/dist/main.js', 'stores', '--short'],
    mostlyWaits: true,
    limitMin: 6,
  },
  {
    id: 'chaos',
    name: 'chaos (short)',
    about: 'processes killed, frozen and cut off, judged by a log',
    script: ['chaos/dist/main.js', 'file-store', '--short'],
    mostlyWaits: true,
    limitMin: 20,
  },
  {
    id: 'cutoff',
    name: 'cut-off experiment (short)',
    about: 'leaders whose ZooKeeper server is cut off from the others, beside kazoo',
    script: ['chaos/dist/main.js', 'cutoff', '--short'],
    mostlyWaits: true,
    limitMin: 5,
  },
  {
    id: 'redis-failover',
    name: 'chaos of the failover of Redis (short)',
    about: 'clients that write without pause while Redis servers, managers and networks fail',
    script: ['chaos/dist/main.js', 'redis-failover', '--short'],
    mostlyWaits: true,
    limitMin: 6,
  },
  {
    id: 'shards',
    name: 'chaos of shards (short)',
    about: 'processes that share shards, on five stores side by side, killed, frozen and cut off',
    script: ['chaos/dist/main.js', 'shards', '--short'],
    mostlyWaits: true,
    limitMin: 6,
  },
  {
    id: 'following',
    name: 'chaos of following (short)',
    about: 'clients that follow the leader over gRPC and HTTP, whatever happens to it',
    script: ['chaos/dist/main.js', 'following', '--short'],
    limitMin: 4,
  },
];

/** The stages for a change on the way: they need no server and end within two minutes. */
const quickStages = [
  stageOf('unit'),
  // The longest first: it walks on one processor at its end.
  stageOf('explore'),
  { ...stageOf('simulation'), script: ['simulation/dist/main.js', '--seeds', '500'] },
];

const usage = `npm test                              every stage
npm test -- --only unit,integration   some of them
npm test -- --list                    their names
npm run test:quick                    unit tests, 500 seeds and the exploration`;

const chosen = chooseStages();
const ci = process.env.CI === 'true';
const busy = await busyShare();
const isBusy = busy > 0.5;
if (isBusy) {
  const percent = Math.round(busy * 100);
  console.log(
    `Other programs use ${percent} % of the processors: fewer tests run at once, so this takes longer`,
  );
}
/** From now on nobody is disturbed by those that fill the gaps. */
const othersDone = new AbortController();
const scratch = mkdtempSync(join(tmpdir(), 'incumbent-test-'));
const memory = makeMemoryDirectory();
if (memory !== undefined) process.env.TMPDIR = memory;
const total = { passed: 0, failed: [], skipped: [] };
try {
  const fillers = chosen.filter(({ fillsGaps }) => fillsGaps);
  const waiting = chosen.filter(({ mostlyWaits }) => mostlyWaits);
  const filled = inTurn(fillers);
  for (const stage of chosen) {
    if (stage === waiting[0]) {
      const names = waiting.map(({ name }) => name);
      if (names.length > 1 && !isBusy) console.log(`\ntwo at a time: ${names.join(', ')}`);
      await Promise.all([inTurn(waiting), isBusy ? undefined : inTurn(waiting)]);
    } else if (!stage.fillsGaps && !stage.mostlyWaits) await runStage(stage);
  }
  othersDone.abort();
  await filled;
} finally {
  for (const directory of [scratch, memory]) {
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
  }
}
summarize();

/** Takes stages from the list until it is empty. */
async function inTurn(list) {
  for (let stage = list.shift(); stage !== undefined; stage = list.shift()) await runStage(stage);
}

async function runStage(stage) {
  if (!isBeside(stage)) console.log(`\n=== ${stage.name} ===`);
  const startMs = performance.now();
  const counts = stage.vitestProject ? await runVitest(stage) : await runScript(stage);
  // A stage that did not run is one skipped test; where everything must run, one failed test.
  if (counts.notRun !== undefined) {
    console.log(`skipped: ${counts.notRun}`);
    if (ci) counts.failed.push(`${stage.name}: must not be skipped in CI (${counts.notRun})`);
    else counts.skipped.push({ name: stage.name, reason: counts.notRun });
  }
  total.passed += counts.passed;
  total.failed.push(...counts.failed);
  total.skipped.push(...counts.skipped);
  const sums = `${counts.passed} passed, ${counts.failed.length} failed, ${counts.skipped.length} skipped`;
  console.log(`=== ${stage.name}: ${sums} in ${seconds(performance.now() - startMs)} ===`);
}

/** Whether another stage may print while it runs. */
function isBeside({ fillsGaps, mostlyWaits }) {
  return chosen.length > 1 && (fillsGaps === true || mostlyWaits === true);
}

async function runVitest({ name, vitestProject, limitMin }) {
  const file = join(scratch, `${vitestProject}.json`);
  const { code, timedOut } = await run(
    tool(
      'vitest/vitest.mjs',
      'run',
      ...['--project', vitestProject, '--passWithNoTests'],
      ...['--reporter', 'default', '--reporter', join(root, 'scripts/lib/vitest-counts.mjs')],
    ),
    {
      output: 'inherit',
      limitMs: limitMin * 60_000,
      env: { VITEST_COUNTS_FILE: file, ...(isBusy ? { TESTS_ARE_BESIDE_OTHERS: '1' } : {}) },
    },
  );
  const counts = existsSync(file)
    ? JSON.parse(readFileSync(file, 'utf8'))
    : { passed: 0, failed: [], skipped: [] };
  const none = counts.passed + counts.failed.length + counts.skipped.length === 0;
  if (code === 0 && none) counts.notRun = 'there are no such tests yet';
  blameExit(counts, { name, code, timedOut, limitMin });
  return counts;
}

async function runScript(stage) {
  const { name, fillsGaps, limitMin } = stage;
  const [file, ...args] = stage.script;
  const counts = { passed: 0, failed: [], skipped: [] };
  if (!existsSync(join(root, file))) {
    return { ...counts, notRun: `${file} does not exist` };
  }
  const { code, timedOut, output, stdout } = await run(
    [process.execPath, file, ...args, ...(fillsGaps ? ['--background'] : [])],
    {
      output: isBeside(stage) ? 'collect' : 'both',
      input: fillsGaps ? othersDone.signal : undefined,
      limitMs: limitMin * 60_000,
    },
  );
  if (isBeside(stage)) console.log(`\n=== ${name} ===\n${output.trimEnd()}`);
  const last = stdout.trimEnd().split('\n').at(-1);
  const sums = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/.exec(last);
  if (sums === null) {
    counts.failed.push(`${name}: its last line was not "N passed, N failed" but "${last}"`);
  } else {
    const [passed, failed, skipped] = sums.slice(1).map((digits) => Number(digits ?? 0));
    counts.passed = passed;
    for (let i = 1; i <= failed; i += 1)
      counts.failed.push(`${name}: ${i} of ${failed}, see above`);
    // A stage may explain its skips with lines `skipped: what: why`.
    const reasons = [...stdout.matchAll(/^skipped: (.+)$/gm)].map((match) => match[1]);
    for (let i = 0; i < skipped; i += 1) {
      counts.skipped.push({ name, reason: reasons[i] ?? 'no reason given' });
    }
    if (passed + failed + skipped === 0) counts.failed.push(`${name}: it ran nothing`);
  }
  blameExit(counts, { name, code, timedOut, limitMin });
  return counts;
}

/** A bad exit is a failure even when every count looks well. */
function blameExit(counts, { name, code, timedOut, limitMin }) {
  if (timedOut) counts.failed.push(`${name}: still running after ${limitMin} minutes, so stopped`);
  else if (code !== 0 && counts.failed.length === 0) {
    counts.failed.push(`${name}: exit code ${code}`);
  }
}

function summarize() {
  const { passed, failed, skipped } = total;
  if (passed + failed.length === 0) failed.push('no test ran');
  console.log('');
  for (const { name, reason } of skipped) console.log(`skipped: ${name}: ${reason}`);
  for (const name of failed) console.log(`failed: ${name}`);
  console.log(`${passed} passed, ${failed.length} failed, ${skipped.length} skipped`);
  process.exitCode = failed.length > 0 ? 1 : 0;
}

function chooseStages() {
  let options;
  try {
    options = parseArgs({
      options: {
        only: { type: 'string' },
        quick: { type: 'boolean' },
        list: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    }).values;
    if (options.quick && options.only !== undefined) {
      throw new Error('--quick and --only both say which stages run: give one of them');
    }
  } catch (error) {
    refuse(`${error.message}\n${usage}`);
  }
  if (options.help || options.list) {
    if (options.help) console.log(`${usage}\n`);
    for (const { id, about } of stages) console.log(`${id.padEnd(12)} ${about}`);
    process.exit(0);
  }
  if (options.quick) return quickStages;
  if (options.only === undefined) return stages;
  const wanted = options.only.split(',').map((name) => name.trim());
  const known = stages.map((stage) => stage.id);
  for (const name of wanted) {
    if (!stages.some((stage) => stage.id === name || stage.name === name)) {
      refuse(`unknown stage "${name}"; known: ${known.join(', ')}`);
    }
  }
  return stages.filter((stage) => wanted.includes(stage.id) || wanted.includes(stage.name));
}

function stageOf(id) {
  return stages.find((stage) => stage.id === id);
}

function refuse(message) {
  console.error(message);
  process.exit(64);
}
