/**
 * Checks the checker: patches a copy of the compiled library for each deliberately broken variant,
 * and runs the simulation on it until the variant is found. One that is not found is a failure, and
 * so is one whose patch no longer fits. Words on the command line choose variants by name.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { SeedRunner } from './pool.ts';
import type { QueueVariant } from './queue/variant-list.ts';
import { queueVariants } from './queue/variant-list.ts';
import { sentences } from './report.ts';
import type { Mechanism } from './run-seed.ts';
import type { Variant } from './variant-list.ts';
import { variants } from './variant-list.ts';

/** What is broken, and where it is looked for. */
interface Hunted {
  readonly mechanism: Mechanism;
  readonly variant: Variant | QueueVariant;
}

interface Outcome extends Hunted {
  readonly seeds: number;
  readonly found: string | undefined;
  readonly problem: string | undefined;
}

const { values, positionals } = parseArgs({
  options: { library: { type: 'string' }, seeds: { type: 'string', default: '2000' } },
  allowPositionals: true,
});
/** A variant that this many seeds do not find counts as not found. */
const mostSeeds = Number(values.seeds);
const library =
  values.library ?? fileURLToPath(new URL('../../packages/incumbent/dist', import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), 'incumbent-variants-'));
const startMs = performance.now();
const all: readonly Hunted[] = [
  ...variants.map((variant) => ({ mechanism: 'lease' as const, variant })),
  ...queueVariants.map((variant) => ({ mechanism: 'queue' as const, variant })),
];
const chosen = all.filter(({ variant }) =>
  positionals.every((word) => variant.name.includes(word)),
);
const outcomes: Outcome[] = [];
try {
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
  const problem = patch(variant, directory);
  if (problem !== undefined) return { ...hunted, seeds: 0, found: undefined, problem };
  const runner = new SeedRunner(directory);
  try {
    const { seeds, failed } = await runner.run({
      mechanism,
      from: variant.from ?? 1,
      seeds: mostSeeds,
      stopAtFirst: true,
      // It finds so much so early that the promises would not have to be found broken by themselves.
      ignored: (variant.breaks as readonly string[]).includes('proof') ? [] : ['proof'],
    });
    const found = failed[0]?.violation?.guarantee;
    const isExpected = (variant.breaks as readonly (string | undefined)[]).includes(found);
    if (found === undefined) return { ...hunted, seeds, found, problem: 'NOT FOUND' };
    if (isExpected) return { ...hunted, seeds, found, problem: undefined };
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

/** @returns why the patch does not fit */
function patch({ edits }: Hunted['variant'], directory: string): string | undefined {
  mkdirSync(directory, { recursive: true });
  cpSync(library, directory, {
    recursive: true,
    filter: (path) => !/\.(map|d\.ts|tsbuildinfo)$/.test(path),
  });
  // A directory of its own has to say that its files are modules.
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }\n');
  for (const { file, find, replace } of edits) {
    const path = join(directory, file);
    const text = readFileSync(path, 'utf8');
    const times = text.split(find).length - 1;
    if (times !== 1) {
      return `THE PATCH DOES NOT FIT: dist/${file} contains ${times} times, not once: ${find}`;
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
    const promise = found === undefined ? '' : sentences[mechanism][found];
    const by = found === undefined ? '' : `${found}: ${promise ?? 'no promise'}`;
    const text = [by, problem].filter((part) => part !== undefined && part !== '').join('; ');
    console.log(`${variant.name.padEnd(width)}  ${String(seeds).padStart(5)}  ${text}`);
  }
  console.log(`\nin ${((performance.now() - startMs) / 1000).toFixed(1)} s`);
  console.log(`${outcomes.length - failed} passed, ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}
