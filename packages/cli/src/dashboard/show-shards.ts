import type { ShardMemberStatus, ShardsStatus } from '@incumbent/shards';
import type { ShardsListener } from '../follow/shards-follower.ts';
import type { LiveValues } from '../web/live-values.ts';
import { ActionError } from '../web/page-server.ts';
import type { ShownGrid, ShownShards, ShownShardTerm } from './shown.ts';
import { shardsKey } from './shown.ts';

/** The parts of a status that the page shows. */
export type ToldStatus = Pick<
  ShardsStatus,
  | 'shards'
  | 'isNamed'
  | 'names'
  | 'coordinator'
  | 'members'
  | 'unowned'
  | 'moving'
  | 'unreadable'
  | 'pins'
  | 'owner'
>;

interface KnownSet {
  readonly shown: ShownShards;
  readonly grid: ShownGrid;
}

/** Shows the shards of one store to any number of browsers. Each asks for the grid that it shows. */
export class ShowShards implements ShardsListener {
  readonly #index: number;
  readonly #live: LiveValues;
  readonly #known = new Map<string, KnownSet>();
  /** Another run of the command has other versions. */
  readonly #run = Date.now();
  #changes = 0;

  constructor(index: number, live: LiveValues) {
    this.#index = index;
    this.#live = live;
  }

  /** @throws ActionError for shards that are not known */
  grid(name: string): ShownGrid {
    const known = this.#known.get(name);
    if (known === undefined) throw new ActionError(`this store has no shards "${name}"`);
    return known.grid;
  }

  onShards(name: string, status: ToldStatus): void {
    this.#changes += 1;
    const version = `${this.#run}-${this.#changes}`;
    const grid = gridOf(status, version, this.#known.get(name)?.grid);
    const { shards, isNamed, coordinator = null, members, unowned, moving } = status;
    const [damaged] = status.unreadable;
    this.#show(name, grid, {
      ...{ shards, isNamed, coordinator, version, error: damaged?.error.message ?? null },
      ...{ unowned: unowned.length, moving: moving.length, pinned: status.pins.length },
      members: members.toSorted(byId).map(({ id, slot, addresses, ...more }) => {
        const { weight, zone, joined, drained, owns, moving: asked, sinceUnixMs } = more;
        return {
          ...{ id, slot, addresses, weight, zone, joined, drained, owns, sinceUnixMs },
          moving: asked,
        };
      }),
    });
  }

  onShardsTrouble(name: string, error: unknown): void {
    const known = this.#known.get(name);
    const words = error instanceof Error ? error.message : String(error);
    this.#show(name, known?.grid ?? nothing, { ...(known?.shown ?? unread), error: words });
  }

  onShardsGone(name: string): void {
    this.#known.delete(name);
    this.#live.delete(shardsKey({ store: this.#index, name }));
  }

  #show(name: string, grid: ShownGrid, told: Omit<ShownShards, 'store' | 'name'>): void {
    const shown = { ...told, store: this.#index, name };
    this.#known.set(name, { shown, grid });
    this.#live.set(shardsKey(shown), shown);
  }
}

const names = new Intl.Collator('en', { numeric: true });

/** `host-2` before `host-10`. */
function byId(a: ShardMemberStatus, b: ShardMemberStatus): number {
  return names.compare(a.id, b.id) || a.slot - b.slot;
}

const nothing: ShownGrid = { version: '', names: null, terms: [], cells: [], moving: [], pins: [] };

/** Before it was read for the first time. */
const unread: Omit<ShownShards, 'store' | 'name'> = {
  ...{ shards: 0, isNamed: false, coordinator: null, members: [], unowned: 0, moving: 0 },
  pinned: 0,
  ...{ version: '', error: null },
};

/** A token is given once. So a term that stands in the grid before began no later than then. */
function gridOf(status: ToldStatus, version: string, before: ShownGrid | undefined): ShownGrid {
  const known = new Map(before?.terms.map((term) => [keyOf(term), term]));
  const sinceUnixMs = before === undefined ? null : Date.now();
  const indexes = new Map<string, number>();
  const terms: ShownShardTerm[] = [];
  const cells = Array.from({ length: status.shards }, (_, number) => {
    // By their numbers: a reader that was given no names knows none.
    const owner = status.owner(number);
    if (owner === undefined) return -1;
    const { slot, id } = owner;
    const key = keyOf({ slot, token: String(owner.token) });
    let index = indexes.get(key);
    if (index === undefined) {
      const token = String(owner.token);
      index = terms.push(known.get(key) ?? { slot, id, token, sinceUnixMs }) - 1;
      indexes.set(key, index);
    }
    return index;
  });
  const { moving, pins } = status;
  return {
    ...{ version, names: status.names ?? null, terms, cells },
    ...{ moving: moving.map(Number), pins: pins.map(({ shard, to }) => ({ shard, to })) },
  };
}

function keyOf({ slot, token }: Pick<ShownShardTerm, 'slot' | 'token'>): string {
  return `${slot} ${token}`;
}
