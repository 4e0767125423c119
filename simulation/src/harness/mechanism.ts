import type { Coverage } from './coverage.ts';
import type { DistOf } from './packages.ts';
import type { World } from './world.ts';

/** One seed, ready to run. */
export interface Simulation {
  readonly world: World;
  readonly coverage: Coverage;
  /** Resolves when the seed is over, or when the world has its first violation. */
  run(): Promise<void>;
}

/** @param readable keep lines for a person to read */
export type Prepare = (seed: number, readable: boolean) => Simulation;

/**
 * A simulated mechanism. The registry `../mechanisms.ts` lists them all. The same seed is another
 * world in each.
 */
export interface Mechanism {
  /** As `--mechanism` takes it. */
  readonly name: string;
  /** How many seeds it gets of those that are asked for, beside others. Default 1. */
  readonly weight?: number;
  /** The packages that it loads, by their folders in `packages/`. */
  readonly packages: readonly string[];
  /** Loads them: the built ones of the repository, or broken copies. */
  readonly load: (distOf: DistOf) => Promise<Prepare>;
  /** Every guarantee in one sentence, by its name. */
  readonly guarantees: Readonly<Record<string, string>>;
  /**
   * The kinds of schedules that a thousand seeds must have contained. A schedule that did not occur was
   * not tested, so a zero means that the simulation has gone blind, and the run fails.
   */
  readonly required: readonly string[];
  readonly variants: readonly Variant[];
  /**
   * Guarantees that a broken variant breaks before any other. A search for a variant ignores them, unless the
   * variant names them, so that the other guarantees are seen to find it too.
   */
  readonly foundFirst?: readonly string[];
}

export interface Replacement {
  /** A folder in `packages/`. Default: the first package of the mechanism. */
  readonly package?: string;
  /** Below the `dist` of the package. */
  readonly file: string;
  /** Occurs exactly once. */
  readonly find: string;
  readonly replace: string;
}

/** The library, broken on purpose: the simulation must find it. */
export interface Variant<Guarantee extends string = string> {
  readonly name: string;
  readonly edits: readonly Replacement[];
  /** Found by few seeds only: the search begins near one of them. Default 1. */
  readonly from?: number;
  /** By which of these it has to be found; anything else is an accident. */
  readonly breaks: readonly Guarantee[];
}
