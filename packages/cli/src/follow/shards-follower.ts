import { setTimeout as sleep } from 'node:timers/promises';
import type { ShardsStatus } from '@incumbent/shards';
import { listShards, observeShards } from '@incumbent/shards';
import { InvalidOptionError } from 'incumbent';
import { patientTiming } from '../ask.ts';
import type { FollowedStore } from './store-follower.ts';

/** From one look for new sets of shards to the next, at least. */
const listEveryMs = 10_000;
/** The share of its time for which a store is asked for them, at most. */
const listingShare = 0.03;

/** Is told what a follower finds. It must not throw. */
export interface ShardsListener {
  /** At the start, and after each change. */
  onShards(name: string, status: ShardsStatus): void;
  /** They cannot be read. The status before is old until the next one. */
  onShardsTrouble(name: string, error: unknown): void;
  /** The store does not list them any more. */
  onShardsGone(name: string): void;
}

/** Finds the sets of shards of one store, and observes each of them once. */
export class ShardsFollower {
  readonly #followed: FollowedStore;
  readonly #listener: ShardsListener;
  /** By the name of the set. */
  readonly #watches = new Map<string, AbortController>();

  constructor(followed: FollowedStore, listener: ShardsListener) {
    this.#followed = followed;
    this.#listener = listener;
  }

  /** Until the signal aborts, or the store says that it cannot tell. Trouble is tried again. */
  async run(): Promise<void> {
    const { signal, open } = this.#followed;
    try {
      while (!signal.aborted) {
        const beganMs = performance.now();
        try {
          this.#watch(await listShards(open.backend, { signal }));
        } catch (error) {
          if (error instanceof InvalidOptionError) return;
          // The listing of its elections meets the same store, and tells of trouble.
        }
        const pauseMs = Math.max(listEveryMs, (performance.now() - beganMs) / listingShare);
        await sleep(pauseMs, undefined, { signal }).catch(() => {});
      }
    } finally {
      for (const stop of this.#watches.values()) stop.abort();
    }
  }

  #watch(names: readonly string[]): void {
    const found = new Set(names);
    for (const [name, stop] of this.#watches) {
      if (found.has(name)) continue;
      stop.abort();
      this.#watches.delete(name);
      this.#listener.onShardsGone(name);
    }
    for (const name of found) {
      if (this.#watches.has(name)) continue;
      const stop = new AbortController();
      this.#watches.set(name, stop);
      // It never rejects.
      void this.#observe(name, stop.signal);
    }
  }

  async #observe(name: string, signal: AbortSignal): Promise<void> {
    const { open, timeoutMs } = this.#followed;
    const { backend } = open;
    const onTrouble = ({ error }: { readonly error: unknown }) => {
      if (!signal.aborted) this.#listener.onShardsTrouble(name, error);
    };
    try {
      const timing = patientTiming(timeoutMs, backend.limits);
      for await (const status of observeShards(
        { name, backend, onTrouble, ...timing },
        { signal },
      )) {
        if (status !== undefined) this.#listener.onShards(name, status);
      }
    } catch (error) {
      // A name that other programs gave, and that we do not take.
      onTrouble({ error });
    }
  }
}
