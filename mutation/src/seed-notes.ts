/** A process that runs seeds without a mutant, and tells its parent which mutants they come by. */
import type * as Library from '../../simulation/src/library.ts';
import type * as RunSeed from '../../simulation/src/run-seed.ts';
import { noteReached } from './switch.ts';

export interface SeedNote {
  readonly mechanism: RunSeed.Mechanism;
  readonly reached: readonly number[];
  /** What all seeds took together. */
  readonly ms: number;
  readonly failure: string | undefined;
}

const [directory = '', seeds = '0'] = process.argv.slice(2);
const load = (file: string) =>
  import(new URL(`../../simulation/dist/${file}`, import.meta.url).href);
const { mechanisms, runSeed } = (await load('run-seed.js')) as typeof RunSeed;
const { loadLibrary } = (await load('library.js')) as typeof Library;
const library = await loadLibrary(directory);
const notes: SeedNote[] = [];
for (const mechanism of mechanisms) {
  const reached = new Set<number>();
  noteReached((number) => reached.add(number));
  const startMs = performance.now();
  let failure: string | undefined;
  for (let seed = 1; seed <= Number(seeds) && failure === undefined; seed += 1) {
    const { violation } = await runSeed(library, seed, false, mechanism);
    if (violation !== undefined) failure = `seed ${seed}: ${violation.guarantee}`;
  }
  notes.push({ mechanism, reached: [...reached], ms: performance.now() - startMs, failure });
}
process.send?.(notes, () => process.exit(0));
