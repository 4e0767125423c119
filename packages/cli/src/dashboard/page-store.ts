import { setTimeout as sleep } from 'node:timers/promises';
import type { Context, OpenStore, StoreNeeds } from '../context.ts';
import { describeFailure, exitCodes } from '../failure.ts';
import { refuseTwice } from '../follow/open-stores.ts';
import { ShardsFollower } from '../follow/shards-follower.ts';
import { StoreFollower } from '../follow/store-follower.ts';
import { shownUrl } from '../shown-url.ts';
import type { LiveValues } from '../web/live-values.ts';
import { ActionError } from '../web/page-server.ts';
import { ShowShards } from './show-shards.ts';
import { ShowStore } from './show-store.ts';
import type { ShownGrid } from './shown.ts';

/** From one try to open a store to the next. */
const againMs = 2_000;

/** A store of the page. It may be away when the command begins: then it is opened as soon as it answers. */
export class PageStore {
  readonly url: string;
  readonly #option: string | undefined;
  readonly #show: ShowStore;
  readonly #shards: ShowShards;
  #open: OpenStore | undefined;
  #follower: StoreFollower | undefined;

  constructor(index: number, url: string, option: string | undefined, live: LiveValues) {
    this.url = url;
    this.#option = option;
    this.#show = new ShowStore(index, url, live);
    this.#shards = new ShowShards(index, live);
  }

  /** @throws ActionError while it is away */
  get open(): OpenStore {
    if (this.#open === undefined) throw new ActionError(`${this.url} has not been reached yet`);
    return this.#open;
  }

  leaseLeftMs(election: string): number | undefined {
    return this.#follower?.leaseLeftMs(election);
  }

  /** @throws ActionError for shards that are not known */
  grid(name: string): ShownGrid {
    return this.#shards.grid(name);
  }

  /**
   * Shows it until the signal of the command aborts.
   * @param onAway is told once, if the store is away at the start
   * @throws CommandError for a store that trying again does not help
   */
  async run(context: Context, timeoutMs: number, onAway: (why: string) => void): Promise<void> {
    const { signal } = context;
    const needs = { timeoutMs, timeoutName: '--timeout', signal, asksOnly: true } as const;
    const open = await this.#reach(context, needs, onAway);
    if (open === undefined) return;
    this.#open = open;
    this.#show.onOpen(open);
    const followed = { open, timeoutMs, signal };
    this.#follower = new StoreFollower(followed, this.#show);
    await Promise.all([this.#follower.run(), new ShardsFollower(followed, this.#shards).run()]);
  }

  /** @returns undefined when the signal has aborted */
  async #reach(
    { openStore, signal }: Context,
    needs: StoreNeeds,
    onAway: (why: string) => void,
  ): Promise<OpenStore | undefined> {
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      try {
        return await openStore(this.#option, needs);
      } catch (error) {
        const { exitCode, message } = describeFailure(error);
        if (exitCode !== exitCodes.storeUnavailable) throw error;
        this.#show.onStore({ seenUnixMs: null, error: message });
        if (isFirst) onAway(message);
        await sleep(againMs, undefined, { signal }).catch(() => {});
      }
    }
    return undefined;
  }
}

/**
 * Asks no server.
 * @param options undefined or empty: the store that commands use without `--store`
 * @throws CommandError, UsageError
 */
export async function pageStores(
  options: readonly string[] | undefined,
  live: LiveValues,
  machine: Parameters<typeof shownUrl>[1],
): Promise<readonly PageStore[]> {
  const given = options === undefined || options.length === 0 ? [undefined] : options;
  const stores: PageStore[] = [];
  for (const [index, option] of given.entries()) {
    const url = await shownUrl(option, machine);
    refuseTwice(url, stores);
    stores.push(new PageStore(index, url, option, live));
  }
  return stores;
}
