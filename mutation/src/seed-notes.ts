/** A process that runs seeds without a mutant, and tells its parent which mutants they come by. */
import type * as Packages from '../../simulation/src/harness/packages.ts';
import type * as RunSeed from '../../simulation/src/harness/run-seed.ts';
import type * as Mechanisms from '../../simulation/src/mechanisms.ts';
import { noteReached } from './switch.ts';

export interface SeedNote {
  /** Its name. */
  readonly mechanism: string;
  readonly reached: readonly number[];
  /** The time of all seeds together. */
  readonly ms: number;
  readonly failure: string | undefined;
}

const [built = '{}', seeds = '0'] = process.argv.slice(2);
const copies = JSON.parse(built) as Packages.Copies;
const load = (file: string) =>
  import(new URL(`../../simulation/dist/${file}`, import.meta.url).href);
const { mechanisms } = (await load('mechanisms.js')) as typeof Mechanisms;
const { distOf } = (await load('harness/packages.js')) as typeof Packages;
const { runSeed } = (await load('harness/run-seed.js')) as typeof RunSeed;
const notes: SeedNote[] = [];
// A mechanism loads its first package from a path, and the others by their names: so never their mutants.
for (const mechanism of mechanisms.filter(({ packages }) => (packages[0] ?? '') in copies)) {
  const prepare = await mechanism.load(distOf(copies));
  const reached = new Set<number>();
  noteReached((number) => reached.add(number));
  const startMs = performance.now();
  let failure: string | undefined;
  for (let seed = 1; seed <= Number(seeds) && failure === undefined; seed += 1) {
    const { violation } = await runSeed(prepare, seed);
    if (violation !== undefined) failure = `seed ${seed}: ${violation.guarantee}`;
  }
  notes.push({
    mechanism: mechanism.name,
    reached: [...reached],
    ms: performance.now() - startMs,
    failure,
  });
}
process.send?.(notes, () => process.exit(0));
