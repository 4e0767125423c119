/** A store of many records, and the way to it from one host. */

import type { Leases } from 'incumbent/backend';
import type {
  Actor,
  ActorProcess,
  LeaseRecord,
  LeaseStore,
  Reading,
  SwapResult,
} from 'incumbent/testing';
import type { Host, Owner } from '../harness/host.ts';
import type { Random } from '../harness/random.ts';
import type { World } from '../harness/world.ts';
import type { Library } from './library.ts';

/** How bad the network is, for all links of a seed. */
export interface Network {
  readonly latencyMs: number;
  readonly spikes: number;
  readonly spikeMs: number;
  readonly losesRequests: number;
  readonly losesReplies: number;
  readonly duplicates: number;
  readonly errors: number;
}

export interface StoreTraits {
  readonly hints: boolean;
  readonly proves: boolean;
  /** It reads many records by one request, as most stores do. */
  readonly readsAll: boolean;
  /** σ; undefined: it does not tell the age of a record. */
  readonly clockStepMs: number | undefined;
}

/** So many earlier records of each are kept, to be set back to. */
const mostEarlier = 24;

/** The shards of a record that is none of a slot. */
export const damagedShards = '////';

interface Cell {
  record: LeaseRecord | undefined;
  /** The record is none of ours: no read shows it. */
  isDamaged: boolean;
  /** The last one first. */
  readonly earlier: LeaseRecord[];
  version: number;
  atMs: number;
  readonly watchers: Set<() => void>;
}

export class Server {
  readonly cells: Map<string, Cell> = new Map();
  /** Nothing is applied or answered, or every operation fails. */
  outage: 'none' | 'silent' | 'refuses' = 'none';
  /** Told of every commit. */
  onCommit: (name: string, record: LeaseRecord, writer: Owner) => void = () => {};
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  cell(name: string): Cell {
    let cell = this.cells.get(name);
    if (cell === undefined) {
      cell = {
        ...{ record: undefined, isDamaged: false, earlier: [] },
        ...{ version: 0, atMs: 0, watchers: new Set() },
      };
      this.cells.set(name, cell);
    }
    return cell;
  }

  read(name: string, tellsAge: boolean): Reading | 'damaged' {
    const { record, version, atMs, isDamaged } = this.cell(name);
    if (isDamaged) return 'damaged';
    return { record, version, ...(tellsAge ? { ageMs: this.#world.nowMs - atMs } : {}) };
  }

  swap(name: string, expected: unknown, next: LeaseRecord, writer: Owner): SwapResult {
    const cell = this.cell(name);
    if (cell.version !== expected) return { outcome: 'conflict' } as const;
    const { record } = cell;
    if (record !== undefined && record.shards !== damagedShards) cell.earlier.unshift(record);
    cell.earlier.length = Math.min(cell.earlier.length, mostEarlier);
    cell.isDamaged = false;
    cell.record = next;
    cell.version += 1;
    cell.atMs = this.#world.nowMs;
    this.onCommit(name, next, writer);
    for (const watcher of [...cell.watchers]) watcher();
    return { outcome: 'ok', version: cell.version } as const;
  }

  /** By hand. It tells no watcher. */
  put(name: string, record: LeaseRecord | undefined, isDamaged = false): void {
    const cell = this.cell(name);
    [cell.record, cell.isDamaged, cell.atMs] = [record, isDamaged, this.#world.nowMs];
    cell.version += 1;
  }
}

/** The way from one host to the store. */
export class Link {
  requestsCut = false;
  repliesCut = false;
  network: Network;
  readonly #world: World;
  readonly #server: Server;
  readonly #host: Host;
  readonly #random: Random;

  constructor(world: World, server: Server, host: Host, network: Network, random: Random) {
    this.#world = world;
    this.#server = server;
    this.#host = host;
    this.network = network;
    this.#random = random;
  }

  heal(): void {
    this.requestsCut = false;
    this.repliesCut = false;
  }

  delayMs(): number {
    const { latencyMs, spikes, spikeMs } = this.network;
    const spike = this.#random.chance(spikes) ? this.#random.next() * spikeMs : 0;
    return latencyMs * (0.2 + this.#random.exponential(0.8)) + spike;
  }

  call<T>(owner: Owner, apply: () => T, onArrival: () => void = () => {}): Promise<T> {
    const { losesRequests, losesReplies, duplicates, errors } = this.network;
    const random = this.#random;
    const error = random.chance(errors) ? random.pick(['instead', 'although'] as const) : undefined;
    const requestMs = this.delayMs();
    const replyMs = this.delayMs();
    const isLost = random.chance(losesRequests);
    const isReplyLost = random.chance(losesReplies);
    const againMs = random.chance(duplicates) ? requestMs + this.delayMs() * 20 : undefined;
    return new Promise<T>((resolve, reject) => {
      const answer = (settle: () => void) =>
        this.#world.at(this.#world.nowMs + replyMs, () => this.#host.deliver(owner, settle));
      const arrive = (isFirst: boolean) => {
        const { outage } = this.#server;
        if (outage === 'silent') return;
        if (outage === 'refuses' || (error === 'instead' && isFirst)) {
          if (isFirst) answer(() => reject(new Error('the store failed')));
          return;
        }
        const result = apply();
        onArrival();
        if (!isFirst || isReplyLost || this.repliesCut) return;
        if (error === 'although') answer(() => reject(new Error('the reply was an error')));
        else answer(() => resolve(result));
      };
      const send = () => {
        if (!owner.alive || this.requestsCut) return;
        const at = (ms: number, isFirst: boolean) =>
          this.#world.at(this.#world.nowMs + ms, () => {
            arrive(isFirst);
            return false;
          });
        if (!isLost) at(requestMs, true);
        if (againMs !== undefined) at(againMs, false);
      };
      // Code that stood still in the middle of a turn sends later.
      if (this.#host.presentMs <= this.#world.nowMs) return send();
      this.#world.at(this.#host.presentMs, () => {
        send();
        return false;
      });
    });
  }
}

export interface Client extends Owner {
  readonly host: Host;
  readonly link: Link;
  readonly number: number;
  /** A swap of it has arrived. */
  onSwapped(name: string): void;
}

/** The records, as one process sees them. */
export function leasesOf(
  library: Library,
  world: World,
  server: Server,
  traits: StoreTraits,
  client: Client,
  isDead: (number: number) => boolean,
): Pick<Leases, 'open'> & Partial<Leases> {
  const names = new Map<LeaseStore, string>();
  const tellsAge = traits.clockStepMs !== undefined;
  const open: Leases['open'] = ({ election }) => {
    const store = storeOf(library, world, server, traits, client, election, isDead);
    names.set(store, election);
    return store;
  };
  if (!traits.readsAll) return { open };
  return {
    open,
    async readAll(stores) {
      const asked = stores.map((store) => names.get(store) ?? '');
      const readings = await client.link.call(client, () =>
        asked.map((name) => server.read(name, tellsAge)),
      );
      return readings.map((reading, i) =>
        reading === 'damaged' ? damagedAt(library, asked[i] ?? '') : reading,
      );
    },
  };
}

function damagedAt(library: Library, name: string): Error {
  return new library.RecordDamagedError(`the record "${name}"`, 'it was changed by hand');
}

/** One record, as one process sees it. */
function storeOf(
  library: Library,
  world: World,
  server: Server,
  traits: StoreTraits,
  client: Client,
  name: string,
  isDead: (number: number) => boolean,
): LeaseStore {
  const { link, host } = client;
  const tellsAge = traits.clockStepMs !== undefined;
  const travel = (record: LeaseRecord) =>
    library.decodeLeaseRecord(library.encodeLeaseRecord(record), 'the simulated store');
  const store: LeaseStore = {
    async read() {
      const reading = await link.call(client, () => server.read(name, tellsAge));
      if (reading !== 'damaged') return reading;
      throw damagedAt(library, name);
    },
    swap(expected, next) {
      const sent = travel(next);
      return link.call(
        client,
        () => server.swap(name, expected, sent, client),
        () => client.onSwapped(name),
      );
    },
    ...(traits.clockStepMs === undefined ? {} : { clockStepMs: traits.clockStepMs }),
  };
  if (traits.hints) {
    store.watch = (onHint) => {
      const watcher = () => {
        if (link.repliesCut || world.random.chance(0.1)) return;
        world.at(world.nowMs + link.delayMs(), () => host.deliver(client, onHint));
      };
      const { watchers } = server.cell(name);
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    };
  }
  if (traits.proves) {
    store.describe = async (_process: ActorProcess): Promise<Actor> => ({ number: client.number });
    store.provesGone = (actors) => actors.every((actor) => isDead(Number(actor['number'])));
  }
  return store;
}
