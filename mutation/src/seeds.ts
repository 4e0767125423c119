/** The simulation, run on one mutant after the other. */
import { execFile, fork } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type * as Packages from '../../simulation/src/harness/packages.ts';
import type * as Pool from '../../simulation/src/harness/pool.ts';
import type { Plan } from './plan.ts';
import { compiled, writeText } from './plan.ts';
import type { SeedNote } from './seed-notes.ts';

/** Folders in `packages/` that a mechanism of the simulation loads first. */
const simulated = ['incumbent', 'redis-failover'];
/** A thread that starts, on a machine that does much else. */
const startAllowanceMs = 15_000;
const slownessAllowed = 5;

type Copies = Packages.Copies;

export type SeedVerdict =
  | { readonly kind: 'passed' }
  | { readonly kind: 'failed'; readonly text: string }
  | { readonly kind: 'timeout'; readonly afterMs: number };

/** Compiles the packages with all mutants in them: only those that have any. */
export async function buildPackages(plan: Plan, scratch: string): Promise<Copies> {
  const built: [string, string][] = [];
  for (const name of simulated) {
    const prefix = join(plan.root, 'packages', name, '/');
    const mutated = Object.entries(plan.sources).filter(([path]) => path.startsWith(prefix));
    if (mutated.length === 0) continue;
    const copy = join(scratch, name);
    cpSync(join(prefix, 'src'), join(copy, 'src'), { recursive: true });
    for (const [path, text] of mutated) writeText(join(copy, path.slice(prefix.length)), text);
    built.push([name, await compile(plan, copy)]);
  }
  return Object.fromEntries(built);
}

/** @returns where it was compiled to */
async function compile({ root }: Plan, copy: string): Promise<string> {
  writeFileSync(join(copy, 'package.json'), '{ "type": "module" }\n');
  const compilerOptions = {
    composite: false,
    isolatedDeclarations: false,
    declarationMap: false,
    declaration: false,
    // Mutants are no better than they should be; whether they compile was asked before.
    noCheck: true,
    rootDir: 'src',
    outDir: 'dist',
  };
  const config = join(copy, 'tsconfig.json');
  const extended = join(root, 'tsconfig.base.json');
  writeFileSync(config, JSON.stringify({ extends: extended, compilerOptions, include: ['src'] }));
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  await new Promise<void>((resolve, reject) => {
    execFile(process.execPath, [tsc, '-p', config], (error, stdout) => {
      if (error === null) resolve();
      else reject(new Error(`what is mutated does not compile: ${stdout}`));
    });
  });
  return join(copy, 'dist');
}

/** @returns what seeds of each mechanism reach and cost, or why one of them fails */
export function observeSeeds(
  built: Copies,
  seeds: number,
): Promise<readonly SeedNote[] | { readonly failure: string }> {
  return new Promise((resolve, reject) => {
    const child = fork(compiled('seed-notes'), [JSON.stringify(built), String(seeds)]);
    child.once('message', (notes: SeedNote[]) => {
      const failed = notes.find(({ failure }) => failure !== undefined);
      resolve(failed === undefined ? notes : { failure: `${failed.mechanism}: ${failed.failure}` });
    });
    child.once('exit', (code) => reject(new Error(`the simulation ended with ${code}`)));
  });
}

export class Seeds {
  readonly #built: Copies;
  readonly #seeds: number;
  readonly #notes: readonly SeedNote[];

  constructor(built: Copies, seeds: number, notes: readonly SeedNote[]) {
    this.#built = built;
    this.#seeds = seeds;
    this.#notes = notes;
  }

  reaches(mutant: number): boolean {
    return this.#notes.some(({ reached }) => reached.includes(mutant));
  }

  async try(mutant: number): Promise<SeedVerdict> {
    for (const note of this.#notes) {
      if (!note.reached.includes(mutant)) continue;
      const verdict = await this.#try(mutant, note);
      if (verdict.kind !== 'passed') return verdict;
    }
    return { kind: 'passed' };
  }

  async #try(mutant: number, { mechanism, ms }: SeedNote): Promise<SeedVerdict> {
    const pool = new URL('../../simulation/dist/harness/pool.js', import.meta.url).href;
    const { SeedRunner } = (await import(pool)) as typeof Pool;
    // A thread takes the environment as it is when it is made.
    process.env['INCUMBENT_MUTANT'] = String(mutant);
    const runner = new SeedRunner(this.#built);
    process.env['INCUMBENT_MUTANT'] = '-1';
    const afterMs = startAllowanceMs + slownessAllowed * ms;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<SeedVerdict>((resolve) => {
      timer = setTimeout(() => resolve({ kind: 'timeout', afterMs }), afterMs);
    });
    const job = { mechanism, from: 1, seeds: this.#seeds, stopAtFirst: true };
    const outcome = runner.run(job).then(
      ({ failed: [failed] }): SeedVerdict =>
        failed === undefined
          ? { kind: 'passed' }
          : {
              kind: 'failed',
              text: `${mechanism}, seed ${failed.seed}: ${failed.violation?.guarantee}`,
            },
      (error: Error): SeedVerdict => ({ kind: 'failed', text: `${mechanism}: ${error.message}` }),
    );
    try {
      return await Promise.race([outcome, timeout]);
    } finally {
      clearTimeout(timer);
      await runner.close();
    }
  }
}
