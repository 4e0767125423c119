/** The options of `createShards`, and their checks. */
import type {
  Backend,
  CandidateOptions,
  Clock,
  Deadline,
  Duration,
  TimingOptions,
  Trouble,
} from 'incumbent';
import { InvalidOptionError, parseDuration } from 'incumbent';
import type { Leases } from 'incumbent/backend';
import { checkName, checkNames, describeValue, timingNames } from 'incumbent/internal';
import { largestWeight } from './assign.ts';
import type { Names } from './lists.ts';
import { namesOf } from './names.ts';
import type { ShardFenceHook, ShardTerm } from './shard-term.ts';

/** Tells the names of all shards, in any order. All processes give one that tells the same. */
export type ShardSource = () => Promise<readonly string[]> | readonly string[];

/** The options of `createShards`. The durations of `TimingOptions` are among them. */
export interface ShardsOptions<Shard extends string | number = string | number>
  extends TimingOptions {
  /**
   * 1 to 180 bytes, no control characters. All processes that use one name on one store share the
   * shards. No election may have this name.
   */
  readonly name: string;
  /** Where the shards are kept: `postgres(pool)`, `file(directory)`, … */
  readonly backend: Backend;
  /**
   * How many shards there are, with the numbers from 0. Or their names, in any order. 1 to 100,000. All
   * processes give the same.
   *
   * Or a function that tells their names: the shards are those that it told last. The coordinator calls
   * it in every renewal interval. When it rejects, or tells no name, the list stays as it is.
   */
  readonly shards: Shard extends number ? number : readonly string[] | ShardSource;
  /**
   * The work for one shard, from when this process owns it. It goes on until `term.signal` aborts.
   * When it returns or throws sooner, the shard goes to another process, if there is one. Left out:
   * this process owns nothing, and only asks which process owns what.
   */
  readonly own?: (shard: Shard, term: ShardTerm<Shard>) => Promise<unknown> | unknown;
  /**
   * `manual`: a shard is ready when its work calls `term.ready()`. Until then observers see its owner
   * with `ready: false`, and routers send it nothing. Left out: it is ready when its work begins. Work
   * that cannot become ready must return or throw: nothing else ends it.
   */
  readonly ready?: 'manual';
  /** This process as others see it. Its addresses are for the router. */
  readonly candidate?: CandidateOptions;
  /** How much of the shards this process takes beside the others: 1 to 1,000. Default 1. */
  readonly weight?: number;
  /** Processes of one zone may fail together. Each zone gets its share of the shards. */
  readonly zone?: string;
  /**
   * How many shards may be asked back from their owners at a time. Default 100. All processes give
   * the same: the coordinator's counts.
   */
  readonly maxMoving?: number;
  /**
   * Hooks that run in order, for each owner of a shard that ended unclean, before the work for it
   * begins. If one throws, the shard is given up, and the next owner runs them again.
   */
  readonly onUnclean?: ShardFenceHook<Shard> | readonly ShardFenceHook<Shard>[];
  /** How long one hook may take. Default 30 s. */
  readonly hookTimeout?: Duration;
  /**
   * `kill`: a worker thread ends this process with SIGKILL when it has lost its slot and some work has
   * not settled by the end of its belief. For work that no token can fence.
   */
  readonly watchdog?: 'kill';
  /**
   * `declared`: other processes of this machine act for this one, and may outlive it. So its death
   * proves nothing, and its shards go to others when the lease is over. Default `self`: on a store that
   * can prove its death, they go at once.
   */
  readonly actors?: 'self' | 'declared';
  /**
   * Called with the end of belief of this process, on both clocks: at every extension, and when it turns
   * out to end sooner. Called with undefined when belief is over. It is the belief in all its shards.
   */
  readonly onBelief?: (deadline: Deadline | undefined) => void;
  /** Called with trouble that no caller waits for, such as an error of the work for a shard. */
  readonly onTrouble?: (trouble: Trouble) => unknown;
  /** As for an election: `auto` makes what the store lacks, such as a table. */
  readonly init?: 'auto' | 'never';
  /** Time source, for tests. Default: the clocks of the machine. */
  readonly clock?: Clock;
  /** Returns a number from 0 to 1, without 1. For tests. Default: `Math.random`. */
  readonly random?: () => number;
}

const names: Readonly<Record<keyof ShardsOptions, true>> = {
  ...timingNames,
  name: true,
  backend: true,
  shards: true,
  own: true,
  ready: true,
  candidate: true,
  weight: true,
  zone: true,
  maxMoving: true,
  onUnclean: true,
  hookTimeout: true,
  watchdog: true,
  actors: true,
  onBelief: true,
  onTrouble: true,
  init: true,
  clock: true,
  random: true,
};

/** Room for the number of a slot, and for the word `directory`. */
export const mostNameBytes = 180;

const defaultMaxMoving = 100;

/** Options that only a process with work uses. */
const ofMembers = [
  'ready',
  'weight',
  'zone',
  'maxMoving',
  'onUnclean',
  'hookTimeout',
  'watchdog',
  'actors',
  'onBelief',
] as const;

/** The options, checked. */
export interface Resolved {
  readonly name: string;
  readonly leases: Leases;
  readonly names: Names<string | number>;
  readonly weight: number;
  readonly zone: string;
  readonly maxMoving: number;
  readonly onUnclean: readonly ShardFenceHook<string | number>[];
  readonly hookTimeoutMs: number;
}

/**
 * The timing and the candidate are checked by the elections.
 * @throws InvalidOptionError
 */
export function checkOptions(options: ShardsOptions): Resolved {
  checkNames('createShards', options, names);
  const name = checkName('the name of the shards', options.name, mostNameBytes);
  const { backend, own, weight = 1, zone, maxMoving = defaultMaxMoving, onUnclean } = options;
  const leases = leasesOf(backend);
  if (own !== undefined && typeof own !== 'function') {
    throw new InvalidOptionError(`own must be a function, not ${describeValue(own)}`);
  }
  for (const option of ofMembers) {
    if (own === undefined && options[option] !== undefined) {
      throw new InvalidOptionError(
        `${option} is for a process that owns shards: give it together with own`,
      );
    }
  }
  const { ready, watchdog, actors, onBelief } = options;
  if (ready !== undefined && ready !== 'manual') {
    throw new InvalidOptionError(`ready is "manual" or left out, not ${describeValue(ready)}`);
  }
  if (watchdog !== undefined && watchdog !== 'kill') {
    throw new InvalidOptionError(`watchdog is "kill" or left out, not ${describeValue(watchdog)}`);
  }
  if (actors !== undefined && actors !== 'self' && actors !== 'declared') {
    throw new InvalidOptionError(`actors is "self" or "declared", not ${describeValue(actors)}`);
  }
  if (onBelief !== undefined && typeof onBelief !== 'function') {
    throw new InvalidOptionError(`onBelief must be a function, not ${describeValue(onBelief)}`);
  }
  checkWhole('weight', weight, largestWeight);
  checkWhole('maxMoving', maxMoving, Number.MAX_SAFE_INTEGER);
  const hooks: readonly unknown[] =
    onUnclean === undefined ? [] : Array.isArray(onUnclean) ? onUnclean : [onUnclean];
  for (const hook of hooks) {
    if (typeof hook !== 'function') {
      throw new InvalidOptionError(`onUnclean takes functions, not ${describeValue(hook)}`);
    }
  }
  if (options.hookTimeout !== undefined && hooks.length === 0) {
    throw new InvalidOptionError(
      'hookTimeout bounds the hooks of onUnclean, and there are none: leave it out',
    );
  }
  return {
    ...{ name, leases, weight, maxMoving },
    names: namesOf(options.shards),
    zone: zone === undefined ? '' : checkName('zone', zone, 100),
    onUnclean: hooks as readonly ShardFenceHook<string | number>[],
    hookTimeoutMs: parseDuration('hookTimeout', options.hookTimeout ?? 30_000),
  };
}

/** @throws InvalidOptionError for a store that cannot hold shards */
export function leasesOf(backend: Backend): Leases {
  if (typeof backend?.open !== 'function') {
    throw new InvalidOptionError(
      `backend must be a store such as file(directory) from "incumbent/file", not ${describeValue(backend)}`,
    );
  }
  if (backend.leases !== undefined) return backend.leases;
  throw new InvalidOptionError(
    `a store of the kind "${backend.kind}" cannot hold shards with these options`,
  );
}

function checkWhole(name: string, value: unknown, most: number): void {
  if (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= most) return;
  const upTo = most === Number.MAX_SAFE_INTEGER ? 'of at least 1' : `from 1 to ${most}`;
  throw new InvalidOptionError(
    `${name} must be a whole number ${upTo}, not ${describeValue(value)}`,
  );
}
