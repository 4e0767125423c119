/**
 * `npm run mutate`: breaks the sources in one place at a time, and expects a test or a seed of the
 * simulation to go red each time. Each surviving mutant must stand in `mutation/survivors.json`,
 * with the reason why. See docs/evidence/testing.md.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Group } from './groups.ts';
import { filesOf, groupNames } from './groups.ts';
import type { Mutant } from './mutants.ts';
import { mutantsOf } from './mutants.ts';
import type { Suite } from './plan.ts';
import { makePlan, writePlan } from './plan.ts';
import { refusedOf } from './refused.ts';
import type { Findings } from './report.ts';
import {
  asJson,
  duration,
  killedIn,
  startProgress,
  survivorsIn,
  table,
  unjudged,
} from './report.ts';
import { buildPackages, observeSeeds, Seeds } from './seeds.ts';
import type { Fate, Judgements } from './survivors.ts';
import { readSurvivors, staleOf } from './survivors.ts';
import type { TestFile } from './tests.ts';
import { endTestProcesses, observeTests, Tests } from './tests.ts';

const usage = `npm run mutate                            every mutant (hours)
npm run mutate -- --only lease,lock       of these groups: ${groupNames.join(', ')}
npm run mutate -- --sample 300 --seed 1   300 mutants, the same ones for the same number
npm run mutate -- race.ts '#decide'       mutants whose id contains all of these words
  --again FILE      the survivors of an earlier run's --json
  --resume FILE     take over what an earlier run's --json has as killed, and try the rest
  --tests A,B       only test files with one of these in their path; and no seeds, unless --seeds says so
  --list            print the mutants and run nothing
  --seeds N         seeds of each mechanism of the simulation (default 150; 0: none)
  --integration     then the integration tests of the package (on real servers, and slow)
  --most-seconds N  for a quick look: leave out the longest test files that reach a mutant, so that
                    the others take N s at the most (unit and integration tests each).
                    A reported survivor may be killed by a test left out
  --processes N     mutants at a time (default: one for each processor; integration tests mostly
                    wait, so with them it may be more)
  --json FILE       write what became of each mutant, every now and then`;

/** A run that cannot say anything: the code as it is does not pass. */
class Refusal extends Error {}

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const listFile = 'mutation/survivors.json';
const options = readArguments();
const cache = join(root, 'node_modules/.cache');
mkdirSync(cache, { recursive: true });
const scratch = mkdtempSync(join(cache, 'mutation-'));
const cleanUps: (() => void)[] = [
  endTestProcesses,
  () => rmSync(scratch, { recursive: true, force: true }),
];
process.once('exit', () => {
  for (const cleanUp of cleanUps) cleanUp();
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
process.exit();

async function main(): Promise<number> {
  const judgements = readSurvivors(join(root, listFile));
  const texts = new Map<string, string>();
  const read = (file: string) => {
    const text = texts.get(file) ?? readFileSync(join(root, file), 'utf8');
    texts.set(file, text);
    return text;
  };
  const groupOf = new Map<string, Group>();
  for (const group of groupNames) for (const file of filesOf(group, root)) groupOf.set(file, group);
  const files = [...groupOf.keys()].filter((file) =>
    options.groups.includes(groupOf.get(file) as Group),
  );
  const all = files.flatMap((file) => mutantsOf(file, read(file)));
  const again = options.again === undefined ? undefined : survivorsIn(options.again);
  const worded = all.filter(
    ({ id }) =>
      options.words.every((word) => id.includes(word)) && (again === undefined || again.has(id)),
  );
  const { mutants, refused } = await choose(worded, (some) =>
    refusedOf(some, { root, scratch: join(scratch, 'refused'), read }),
  );
  if (mutants.length === 0) throw new Refusal('no mutant is chosen');
  if (options.list) {
    for (const { id } of mutants) console.log(id);
    console.log(`${mutants.length} mutants`);
    return 0;
  }
  console.log(`${mutants.length} mutants; the compiler refuses ${refused.size} others`);
  const earlier = options.resume === undefined ? new Map() : killedIn(options.resume);
  const killed = mutants.flatMap((mutant) => {
    const fate = earlier.get(mutant.id);
    return fate === undefined ? [] : [{ mutant, ...fate }];
  });
  const conclusion = (tried: readonly Fate[]) => findingsOf([...killed, ...tried]);
  const left = mutants.filter(({ id }) => !earlier.has(id));
  if (killed.length > 0) console.log(`${killed.length} of them were killed in ${options.resume}`);
  const known = new Set(all.map(({ id }) => id).filter((id) => !refused.has(id)));
  const findingsOf = (fates: readonly Fate[]): Findings => ({
    fates: fates.map((fate) => ({ ...fate, group: groupOf.get(fate.mutant.file) as Group })),
    judgements,
    stale: staleOf(judgements, fates, {
      files: new Set(files),
      known,
      everyFile: new Set(groupOf.keys()),
    }),
  });
  const save = (tried: readonly Fate[]) => {
    if (options.json !== undefined) writeFileSync(options.json, asJson(conclusion(tried)));
  };
  const findings = conclusion(await run(left, judgements, read, save));
  return conclude(findings);
}

/** Mutants that compile: all, or as many as were asked for. */
async function choose(
  from: readonly Mutant[],
  refusedAmong: (mutants: readonly Mutant[]) => Promise<ReadonlySet<string>>,
): Promise<{ mutants: readonly Mutant[]; refused: ReadonlySet<string> }> {
  const refused = new Set<string>();
  const { sample } = options;
  const place = ({ id }: Mutant) =>
    createHash('sha256').update(`${options.seed} ${id}`).digest('hex');
  const waiting =
    sample === undefined
      ? [...from]
      : from
          .map((mutant) => ({ mutant, key: place(mutant) }))
          .sort((a, b) => (a.key < b.key ? -1 : 1))
          .map(({ mutant }) => mutant);
  const mutants: Mutant[] = [];
  while (waiting.length > 0 && mutants.length < (sample ?? Number.POSITIVE_INFINITY)) {
    // About a third of them are refused.
    const some = waiting.splice(0, Math.ceil(((sample ?? waiting.length) - mutants.length) * 1.6));
    for (const id of await refusedAmong(some)) refused.add(id);
    mutants.push(...some.filter(({ id }) => !refused.has(id)));
  }
  return { mutants: mutants.slice(0, sample), refused };
}

async function run(
  mutants: readonly Mutant[],
  judgements: Judgements,
  read: (file: string) => string,
  save: (tried: readonly Fate[]) => void,
): Promise<readonly Fate[]> {
  const plan = makePlan(
    mutants,
    { root, tests: options.tests, processes: options.processes },
    read,
  );
  const planFile = writePlan(plan, scratch);
  const unitFiles = await observe('unit');
  const seeds = await prepareSeeds();
  const integrationFiles = options.integration ? await observe('integration') : [];
  const testFiles = [...unitFiles, ...integrationFiles];
  const startMs = performance.now();
  const fates: Fate[] = [];
  const survived = () => fates.filter(({ kind }) => kind === 'survived');
  const progress = startProgress(() => {
    const leftMs = ((performance.now() - startMs) / fates.length) * (mutants.length - fates.length);
    const eta = fates.length === 0 ? '' : `, about ${duration(leftMs)} left`;
    return `${fates.length} of ${mutants.length} done, ${survived().length} survived${eta}`;
  });
  const kills = new Map<string, number>();
  const waiting = [...mutants.entries()];
  const work = async () => {
    const tests = new Tests('unit', planFile, unitFiles);
    const integration = new Tests('integration', planFile, integrationFiles);
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [number, mutant] = next;
      const fate = await tryMutant(number, mutant, { tests, integration });
      fates.push(fate);
      if (fates.length % 10 === 0) save(fates);
      if (fate.by !== undefined) {
        const key = `${mutant.file} ${fate.by}`;
        kills.set(key, (kills.get(key) ?? 0) + 1);
      }
      if (fate.kind === 'survived' && !judgements.has(mutant.id)) {
        const note = fate.isReached ? '' : ' (nothing comes by it)';
        process.stderr.write(
          `${process.stderr.isTTY ? '\r' : ''}survived${note}: ${place(mutant)}\n`,
        );
      }
    }
    tests.end();
    integration.end();
  };
  const tryMutant = async (
    number: number,
    mutant: Mutant,
    { tests, integration }: { readonly tests: Tests; readonly integration: Tests },
  ): Promise<Fate> => {
    const fromMs = performance.now();
    const fate = (kind: Fate['kind'], by?: string, why?: string): Fate => {
      const isReached =
        seeds?.reaches(number) || testFiles.some(({ reached }) => reached.has(number));
      return { mutant, kind, by, why, isReached, ms: performance.now() - fromMs };
    };
    const shown = (path: string) => path.replace(`${root}/`, '');
    const usefulness = (path: string) => kills.get(`${mutant.file} ${shown(path)}`) ?? 0;
    const { quick, slow } = tests.filesFor(number, usefulness, options.mostMs);
    const byTests = async (
      files: readonly TestFile[],
      of: Tests = tests,
    ): Promise<Fate | undefined> => {
      const verdict = await of.try(number, files);
      if (verdict.kind === 'timeout') return fate('timeout', 'the time limit of the tests');
      if (verdict.kind === 'failed') return fate('failed', shown(verdict.testFile), verdict.text);
      return undefined;
    };
    const bySeeds = async (): Promise<Fate | undefined> => {
      if (seeds?.reaches(number) !== true) return undefined;
      const verdict = await seeds.try(number);
      if (verdict.kind === 'timeout') return fate('timeout', 'the time limit of the seeds');
      if (verdict.kind === 'failed') return fate('failed', 'seeds', verdict.text);
      return undefined;
    };
    const byIntegration = () => {
      const files = integration.filesFor(number, usefulness, options.mostMs);
      return byTests([...files.quick, ...files.slow], integration);
    };
    return (
      (await byTests(quick)) ??
      (await bySeeds()) ??
      (await byTests(slow)) ??
      (await byIntegration()) ??
      fate('survived')
    );
  };
  async function observe(suite: Suite): Promise<readonly TestFile[]> {
    console.log(`without a mutant: the ${suite} tests`);
    const files = await observeTests(suite, planFile, join(scratch, `notes-${suite}`));
    if ('failure' in files) throw new Refusal(`without a mutant a test fails: ${files.failure}`);
    return files;
  }
  async function prepareSeeds(): Promise<Seeds | undefined> {
    if (options.seeds === 0) return undefined;
    console.log('without a mutant: the simulation');
    const built = await buildPackages(plan, scratch);
    const notes = await observeSeeds(built, options.seeds);
    if ('failure' in notes) throw new Refusal(`without a mutant a seed fails: ${notes.failure}`);
    return new Seeds(built, options.seeds, notes);
  }
  await Promise.all(Array.from({ length: options.processes }, work));
  progress.stop();
  save(fates);
  return fates;
}

function conclude(findings: Findings): number {
  console.log(`\n${table(findings)}\n`);
  const fresh = unjudged(findings);
  for (const { id, why } of findings.stale) console.log(`stale in ${listFile}: ${id}: ${why}`);
  for (const { mutant, isReached } of fresh) {
    console.log(`survived${isReached ? '' : ' (nothing comes by it)'}: ${place(mutant)}`);
  }
  if (fresh.length > 0) {
    console.log(
      `write a test for each survivor, or a verdict into ${listFile} (docs/evidence/testing.md)`,
    );
  }
  const killed = findings.fates.filter(({ kind }) => kind !== 'survived').length;
  const judged = findings.fates.length - killed - fresh.length;
  console.log(
    `${killed} killed, ${judged} survived with a verdict, ${fresh.length} without, ${findings.stale.length} stale`,
  );
  return fresh.length + findings.stale.length > 0 ? 1 : 0;
}

function place({ id, file, line }: Mutant): string {
  return `${file}:${line}${id.slice(file.length)}`;
}

interface Options {
  readonly groups: readonly Group[];
  readonly words: readonly string[];
  readonly sample: number | undefined;
  readonly seed: number;
  readonly seeds: number;
  readonly mostMs: number;
  readonly processes: number;
  readonly json: string | undefined;
  readonly again: string | undefined;
  readonly resume: string | undefined;
  readonly tests: string | undefined;
  readonly integration: boolean;
  readonly list: boolean;
}

function readArguments(): Options {
  try {
    const { values, positionals } = parseArgs({
      options: {
        only: { type: 'string' },
        sample: { type: 'string' },
        seed: { type: 'string', default: '1' },
        seeds: { type: 'string' },
        'most-seconds': { type: 'string' },
        processes: { type: 'string', default: String(availableParallelism()) },
        json: { type: 'string' },
        again: { type: 'string' },
        resume: { type: 'string' },
        tests: { type: 'string' },
        integration: { type: 'boolean', default: false },
        list: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
      allowPositionals: true,
    });
    if (values.help) {
      console.log(usage);
      process.exit(0);
    }
    const whole = (name: string, text: string, least: number) => {
      if (!/^\d{1,9}$/.test(text) || Number(text) < least) {
        throw new Error(`--${name} takes a whole number from ${least}, not "${text}"`);
      }
      return Number(text);
    };
    const named = values.only?.split(',').map((name) => name.trim()) ?? groupNames;
    const groups = named.map((name) => {
      const group = groupNames.find((each) => each === name);
      if (group !== undefined) return group;
      throw new Error(`unknown group "${name}"; known: ${groupNames.join(', ')}`);
    });
    return {
      groups,
      words: positionals,
      sample: values.sample === undefined ? undefined : whole('sample', values.sample, 1),
      seed: whole('seed', values.seed, 0),
      seeds: whole('seeds', values.seeds ?? (values.tests === undefined ? '150' : '0'), 0),
      mostMs:
        values['most-seconds'] === undefined
          ? Number.POSITIVE_INFINITY
          : 1_000 * whole('most-seconds', values['most-seconds'], 1),
      processes: whole('processes', values.processes, 1),
      json: values.json === undefined ? undefined : resolve(values.json),
      again: values.again,
      resume: values.resume,
      tests: values.tests,
      integration: values.integration,
      list: values.list,
    };
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    process.exit(64);
  }
}
