/** One shard, as what follows a leader knows it: its owner is the leader of an election. */
import type { Election, StoppableIterator, Timing, View } from 'incumbent';
import { InvalidOptionError } from 'incumbent';
import { describeValue, stoppable, Wakeup } from 'incumbent/internal';
import { nobody } from './assign.ts';
import type { DirectoryWatch, Sight } from './directory.ts';

/** The parts of an election that following needs. */
type Followed = Pick<Election, 'name' | 'timing' | 'observe' | 'leader'>;

/** Opens the view of one shard. Throws for a shard that is not in the list. */
type Follow = (shard: string | number) => Followed;

/** How the shards of a handle are followed. */
interface Following {
  readonly follow: Follow;
  /** False: they have names. */
  readonly isNumbered: boolean;
}

const known = new WeakMap<object, Following>();

export function offerFollowing(shards: object, following: Following): void {
  known.set(shards, following);
}

/** @throws InvalidOptionError for what is no handle, or for a shard that is not in the list */
export function electionOf(shards: object, shard: string | number): Election {
  // Following asks for nothing else.
  return followingOf(shards).follow(shard) as Election;
}

/** The shard that a text names. It may be one that there is not. @throws InvalidOptionError for what is no handle */
export function shardOfText(shards: object, text: string): string | number {
  return followingOf(shards).isNumbered && /^\d{1,7}$/.test(text) ? Number(text) : text;
}

/** The name of the election that stands for a shard. */
export function followedName(name: string, shard: string | number): string {
  return `${name}, shard ${shard}`;
}

function followingOf(shards: object): Following {
  const following = known.get(shards);
  if (following !== undefined) return following;
  throw new InvalidOptionError(
    `shards must be what createShards gave, not ${describeValue(shards)}`,
  );
}

export interface OwnerElectionOptions {
  readonly name: string;
  readonly timing: Timing;
  /** Asked each time: the list may change. */
  readonly numberOf: () => number;
  readonly watch: DirectoryWatch;
  readonly wallMs: () => number;
  /** Aborts when the handle is closed. */
  readonly closed: AbortSignal;
}

export class OwnerElection implements Followed {
  readonly name: string;
  readonly timing: Timing;
  readonly #options: OwnerElectionOptions;

  constructor(options: OwnerElectionOptions) {
    this.name = options.name;
    this.timing = options.timing;
    this.#options = options;
  }

  async leader({ signal }: { signal?: AbortSignal } = {}): Promise<View> {
    const { watch, closed } = this.#options;
    return this.#viewOf({ directory: await watch.read(signal ?? closed), error: undefined });
  }

  observe(): StoppableIterator<View> {
    return stoppable((stop) => this.#observe(stop));
  }

  async *#observe(stop: AbortSignal): AsyncGenerator<View, void, void> {
    const { watch, closed } = this.#options;
    const wakeup = new Wakeup();
    const raise = () => wakeup.raise();
    const forget = watch.subscribe(raise);
    stop.addEventListener('abort', raise, { once: true });
    closed.addEventListener('abort', raise, { once: true });
    try {
      while (!stop.aborted && !closed.aborted) {
        wakeup.clear();
        if (watch.sight !== undefined) yield this.#viewOf(watch.sight);
        if (stop.aborted || closed.aborted) return;
        await wakeup.wait(watch.clock, this.timing.leaseMs, undefined, true);
      }
    } finally {
      forget();
      stop.removeEventListener('abort', raise);
      closed.removeEventListener('abort', raise);
    }
  }

  #viewOf({ directory, error }: Sight): View {
    const { numberOf, wallMs } = this.#options;
    const sinceUnixMs = wallMs();
    if (error !== undefined) return { state: 'unknown', sinceUnixMs, error };
    const number = numberOf();
    const owner = directory?.members[directory.owners[number] ?? nobody];
    const token = directory?.tokens[number] ?? 0n;
    if (owner === undefined) return { state: 'vacant', sinceUnixMs };
    const { id, addresses, slot } = owner;
    const leader = { id, incarnation: `${slot} ${token}`, addresses, metadata: {} };
    const ready = directory?.unready.has(number) !== true;
    return { state: 'led', leader, ready, token, sinceUnixMs };
  }
}
