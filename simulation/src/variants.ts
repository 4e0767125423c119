/**
 * Checks the checker. Patches a copy of the compiled library for each deliberately broken variant,
 * and runs the simulation on it until the variant is found. One that is not found is a failure, and
 * so is one whose patch no longer fits. Words on the command line choose variants by name. With
 * `--background` at the lowest priority, until standard input ends.
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
  readonly seeds: number;
  readonly found: string | undefined;
  readonly problem: string | undefined;
}

const { values, positionals } = parseArgs({
  options: {
    library: { type: 'string' },
    seeds: { type: 'string', default: '2000' },
    background: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const background = values.background ? untilInputEnds() : undefined;
/** A variant that this many seeds do not find counts as not found. */
const mostSeeds = Number(values.seeds);
const built = distOf(values.library === undefined ? {} : { incumbent: resolve(values.library) });
const root = fileURLToPath(new URL('../../', import.meta.url));
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
      process.stderr.write(`${hunted.variant.name}: ${found} after ${outcome.seeds} seeds\n`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
report();

/** Runs seeds on a broken library until one of its promises is broken. */
async function hunt(hunted: Hunted, directory: string): Promise<Outcome> {
  const { mechanism, variant } = hunted;
  const { foundFirst = [] } = mechanism;
  const copies = copyPackages(mechanism, directory);
  const problem = patch(hunted, copies);
  if (problem !== undefined) return { ...hunted, seeds: 0, found: undefined, problem };
  const runner = new SeedRunner(copies, background);
  try {
    const { hashes, failed } = await runner.run({
      mechanism: mechanism.name,
      from: variant.from ?? 1,
      seeds: mostSeeds,
      stopAtFirst: true,
      ignored: foundFirst.filter((guarantee) => !variant.breaks.includes(guarantee)),
    });
    const seeds = hashes.length;
    const found = failed[0]?.violation?.guarantee;
    if (found === undefined) return { ...hunted, seeds, found, problem: 'NOT FOUND' };
    if (variant.breaks.includes(found)) return { ...hunted, seeds, found, problem: undefined };
    const message = failed[0]?.violation?.message;
    return {
      ...hunted,
      seeds,
      found,
      problem: `expected ${variant.breaks.join(' or ')}: ${message}`,
    };
  } finally {
    await runner.close();
  }
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
