/**
 * Checks the checker. Patches a copy of the compiled library for each deliberately broken variant,
 * and runs the simulation on it until the variant is found. One that is not found is a failure, and
 * so is one whose patch no longer fits. Words on the command line choose variants by name. With
 * `--background` at the lowest priority, until standard input ends.
 *
 * The seed that found a variant last time is tried first: it stands in `variants.json`, which `--save`
 * writes. Where it no longer finds it, or with `--fresh`, the hunt begins at the first seed.
 */
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { untilInputEnds } from './harness/background.ts';
import type { Mechanism, Variant } from './harness/mechanism.ts';
import type { Copies } from './harness/packages.ts';
import { distOf } from './harness/packages.ts';
import { SeedRunner } from './harness/pool.ts';
import { mechanisms } from './mechanisms.ts';

/** A broken variant, and the mechanism in which it is looked for. */
interface Hunted {
  readonly mechanism: Mechanism;
  readonly variant: Variant;
}

interface Outcome extends Hunted {
  /** As many as were tried. */
  readonly seeds: number;
  /** The one that found it. */
  readonly seed?: number | undefined;
  readonly found: string | undefined;
  readonly problem: string | undefined;
}

const { values, positionals } = parseArgs({
  options: {
    library: { type: 'string' },
    seeds: { type: 'string', default: '2000' },
    background: { type: 'boolean', default: false },
    fresh: { type: 'boolean', default: false },
    save: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const background = values.background ? untilInputEnds() : undefined;
/** A variant that this many seeds do not find counts as not found. */
const mostSeeds = Number(values.seeds);
const built = distOf(values.library === undefined ? {} : { incumbent: resolve(values.library) });
const root = fileURLToPath(new URL('../../', import.meta.url));
/** By the name of a variant: the seed that found it. */
const rememberedFile = join(root, 'simulation/variants.json');
const remembered: Readonly<Record<string, number>> = values.fresh
  ? {}
  : (JSON.parse(readFileSync(rememberedFile, 'utf8')) as Record<string, number>);
const scratch = mkdtempSync(join(tmpdir(), 'incumbent-variants-'));
const startMs = performance.now();
const all: readonly Hunted[] = mechanisms.flatMap((mechanism) =>
  mechanism.variants.map((variant) => ({ mechanism, variant })),
);
const chosen = all.filter(({ variant }) =>
  positionals.every((word) => variant.name.includes(word)),
);
const outcomes: Outcome[] = [];
try {
  // The copies find their other imports one level above them.
  symlinkSync(join(root, 'node_modules'), join(scratch, 'node_modules'), 'junction');
  const waiting = [...chosen.entries()];
  const work = async () => {
    for (;;) {
      const next = waiting.shift();
      if (next === undefined) return;
      const [index, hunted] = next;
      const outcome = await hunt(hunted, join(scratch, String(index)));
      outcomes[index] = outcome;
      const { found = outcome.problem } = outcome;
      const seed = outcome.seed === undefined ? '' : ` (seed ${outcome.seed})`;
      process.stderr.write(
        `${hunted.variant.name}: ${found} after ${outcome.seeds} seeds${seed}\n`,
      );
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
report();
if (values.save) save();

/** Runs seeds on a broken library until one of its promises is broken. */
async function hunt(hunted: Hunted, directory: string): Promise<Outcome> {
  const copies = copyPackages(hunted.mechanism, directory);
  const problem = patch(hunted, copies);
  if (problem !== undefined) return { ...hunted, seeds: 0, found: undefined, problem };
  const runner = new SeedRunner(copies, background);
  try {
    const seed = remembered[hunted.variant.name];
    if (seed !== undefined) {
      const again = await trySeeds(runner, hunted, seed, 1);
      if (again.problem === undefined) return again;
    }
    return await trySeeds(runner, hunted, hunted.variant.from ?? 1, mostSeeds);
  } finally {
    await runner.close();
  }
}

async function trySeeds(
  runner: SeedRunner,
  hunted: Hunted,
  from: number,
  seeds: number,
): Promise<Outcome> {
  const { mechanism, variant } = hunted;
  const { foundFirst = [] } = mechanism;
  const { hashes, failed } = await runner.run({
    mechanism: mechanism.name,
    from,
    seeds,
    stopAtFirst: true,
    ignored: foundFirst.filter((guarantee) => !variant.breaks.includes(guarantee)),
  });
  const [first] = failed;
  const found = first?.violation?.guarantee;
  const outcome = { ...hunted, seeds: hashes.length, seed: first?.seed, found };
  if (found === undefined) return { ...outcome, problem: 'NOT FOUND' };
  if (variant.breaks.includes(found)) return { ...outcome, problem: undefined };
  const message = first?.violation?.message;
  return { ...outcome, problem: `expected ${variant.breaks.join(' or ')}: ${message}` };
}

/** They lie as installed packages do, so that one copy imports the other by its name. */
function copyPackages({ packages }: Mechanism, directory: string): Copies {
  const copied = packages.map((name): [string, string] => {
    const original = join(root, 'packages', name);
    const manifest = readFileSync(join(original, 'package.json'), 'utf8');
    const copy = join(directory, 'node_modules', (JSON.parse(manifest) as { name: string }).name);
    const dist = join(copy, 'dist');
    cpSync(built(name), dist, {
      recursive: true,
      filter: (path) => !/\.(map|d\.ts|tsbuildinfo)$/.test(path),
    });
    writeFileSync(join(copy, 'package.json'), manifest);
    const own = join(original, 'node_modules');
    if (existsSync(own)) symlinkSync(own, join(copy, 'node_modules'), 'junction');
    return [name, dist];
  });
  return Object.fromEntries(copied);
}

/** @returns why the patch does not fit */
function patch({ mechanism, variant }: Hunted, copies: Copies): string | undefined {
  for (const {
    package: name = mechanism.packages[0] ?? '',
    file,
    find,
    replace,
  } of variant.edits) {
    const path = join(distOf(copies)(name), file);
    const text = readFileSync(path, 'utf8');
    const times = text.split(find).length - 1;
    if (times !== 1) {
      return `THE PATCH DOES NOT FIT: ${name}/dist/${file} contains ${times} times, not once: ${find}`;
    }
    writeFileSync(
      path,
      text.replace(find, () => replace),
    );
  }
  return undefined;
}

/** Variants that were not chosen keep their seeds, and one that was taken out is forgotten. */
function save(): void {
  const found = outcomes.filter(({ problem }) => problem === undefined);
  const foundBy = new Map(found.map(({ variant, seed }) => [variant.name, seed]));
  const seeds = all.map(({ variant: { name } }) => [name, foundBy.get(name) ?? remembered[name]]);
  writeFileSync(rememberedFile, `${JSON.stringify(Object.fromEntries(seeds), null, 2)}\n`);
}

function report(): void {
  const width = Math.max(...chosen.map(({ variant }) => variant.name.length));
  console.log(`${'broken variant'.padEnd(width)}  seeds  found by`);
  let failed = 0;
  for (const { mechanism, variant, seeds, found, problem } of outcomes) {
    if (problem !== undefined) failed += 1;
    const promise = found === undefined ? '' : mechanism.guarantees[found];
    const by = found === undefined ? '' : `${found}: ${promise ?? 'no promise'}`;
    const text = [by, problem].filter((part) => part !== undefined && part !== '').join('; ');
    console.log(`${variant.name.padEnd(width)}  ${String(seeds).padStart(5)}  ${text}`);
  }
  console.log(`\nin ${((performance.now() - startMs) / 1000).toFixed(1)} s`);
  console.log(`${outcomes.length - failed} passed, ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}
