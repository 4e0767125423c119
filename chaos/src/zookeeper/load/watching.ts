import type { NodeWatch, PersistentWatch } from '@incumbent/zookeeper';
import { NoNodeError } from '@incumbent/zookeeper';
import { pause, until } from '../../harness/time.ts';
import type { Seen } from '../auditor.ts';
import { isTrouble } from '../outcome.ts';
import type { Player } from '../player.ts';
import type { WatchedTree } from './watched-tree.ts';

/** How long the news may take when all is well. */
const newsMs = 5_000;

/**
 * One client watches trees that change. It sets a one-shot watch of each node again when it fires.
 * It also follows one node and the list of children, and has a recursive watch. When the changes
 * stop and all is healed, everything must be known as it is.
 */
export class Watching {
  readonly #player: Player;
  readonly #watched: WatchedTree;
  readonly #mirrored: WatchedTree;
  readonly #seen = new Map<string, bigint>();
  readonly #mirror = new Map<string, bigint>();
  readonly #stop = new AbortController();
  readonly #current = new Map<string, NodeWatch<unknown>>();
  readonly #work: Promise<void>[] = [];
  #recursive: PersistentWatch | undefined;
  #followed: { n: number; mzxid: bigint } = { n: 0, mzxid: 0n };
  #children: { names: number; pzxid: bigint } = { names: 0, pzxid: 0n };

  /** @param mirrored may be the same tree: its one-shots then ride on the recursive watch */
  constructor(player: Player, watched: WatchedTree, mirrored: WatchedTree) {
    this.#player = player;
    this.#watched = watched;
    this.#mirrored = mirrored;
  }

  start(): void {
    for (const path of this.#watched.paths) this.#work.push(this.#watch(path));
    this.#work.push(this.#follow(), this.#followChildren(), this.#keepMirror());
  }

  async #watch(path: string): Promise<void> {
    const { client, calls, arena } = this.#player;
    while (!this.#stop.signal.aborted) {
      const outcome = await calls.call({
        what: `watch ${path}`,
        // Up to three requests: the node may come while it is looked at.
        boundMs: 3 * arena.timeoutMs,
        start: () => client.watch(path),
      });
      if (!outcome.ok) {
        await pause(50);
        continue;
      }
      const watch = outcome.value;
      this.#seen.set(path, watch.value?.stat.mzxid ?? 0n);
      this.#current.set(path, watch);
      if (this.#stop.signal.aborted) watch.cancel();
      await watch.changed;
      this.#current.delete(path);
    }
  }

  async #follow(): Promise<void> {
    const { client, name, arena } = this.#player;
    for await (const reply of client.follow(this.#watched.followed, {
      signal: this.#stop.signal,
    })) {
      if (reply === undefined) continue;
      const n = Number(reply.text);
      const what = `${name}: ${n} after ${this.#followed.n}`;
      arena.findings.judge('followed', n > this.#followed.n || n === 0 ? undefined : what);
      this.#followed = { n, mzxid: reply.stat.mzxid };
    }
  }

  async #followChildren(): Promise<void> {
    const { client } = this.#player;
    for await (const reply of client.followChildren(this.#watched.root, {
      signal: this.#stop.signal,
    })) {
      if (reply === undefined) continue;
      this.#children = { names: reply.children.length, pzxid: reply.stat.pzxid };
    }
  }

  async #keepMirror(): Promise<void> {
    const { client, calls, arena } = this.#player;
    const { root } = this.#mirrored;
    while (this.#recursive === undefined && !this.#stop.signal.aborted) {
      const outcome = await calls.call({
        what: `addWatch ${root}`,
        boundMs: arena.timeoutMs,
        start: () => client.addWatch(root, { recursive: true }),
      });
      if (outcome.ok) this.#recursive = outcome.value;
      else await pause(50);
    }
    const all = [...this.#mirrored.paths, this.#mirrored.followed];
    await this.#refresh(all);
    for await (const event of this.#recursive ?? []) {
      await this.#refresh(event.type === 'gap' ? all : [event.path]);
    }
  }

  async #refresh(paths: readonly string[]): Promise<void> {
    await Promise.all(paths.map((path) => this.#refreshOne(path)));
  }

  async #refreshOne(path: string): Promise<void> {
    const { client } = this.#player;
    while (!this.#stop.signal.aborted) {
      try {
        const { stat } = await client.get(path);
        this.#mirror.set(path, stat.mzxid);
        return;
      } catch (error) {
        if (error instanceof NoNodeError) {
          this.#mirror.set(path, 0n);
          return;
        }
        if (!isTrouble(error)) throw error;
        await pause(50);
      }
    }
  }

  /** While nothing changes. */
  async inspect(
    truth: {
      readonly watched: ReadonlyMap<string, Seen>;
      readonly mirrored: ReadonlyMap<string, Seen>;
    },
    children: { readonly names: number; readonly pzxid: bigint },
  ): Promise<void> {
    const { findings } = this.#player.arena;
    const { name } = this.#player;
    const stale = () => [
      ...this.#watched.paths.filter(
        (path) => this.#seen.get(path) !== mzxidOf(truth.watched, path),
      ),
    ];
    await until(newsMs, () => stale().length === 0);
    findings.judge(
      'watched',
      stale().map((path) => {
        const waits = this.#current.has(path) ? 'its watch waits' : 'no watch is set';
        return `${name}: ${path} is at ${mzxidOf(truth.watched, path)}, known at ${this.#seen.get(path)}; ${waits}`;
      }),
    );
    const last = mzxidOf(truth.watched, this.#watched.followed);
    const followed = () => this.#followed.mzxid === last && this.#children.pzxid === children.pzxid;
    await until(newsMs, followed);
    const show = `${name}: the node is at ${last}, seen at ${this.#followed.mzxid}; children at ${children.pzxid} (${children.names}), seen at ${this.#children.pzxid} (${this.#children.names})`;
    findings.judge('followed', followed() ? undefined : show);
    const all = [...this.#mirrored.paths, this.#mirrored.followed];
    const unlike = () =>
      all.filter((path) => this.#mirror.get(path) !== mzxidOf(truth.mirrored, path));
    await until(newsMs, () => unlike().length === 0);
    findings.judge(
      'mirrored',
      unlike().map(
        (path) =>
          `${name}: ${path} is at ${mzxidOf(truth.mirrored, path)}, known at ${this.#mirror.get(path)}`,
      ),
    );
  }

  /** @returns false when something did not end */
  async stop(): Promise<boolean> {
    this.#stop.abort();
    for (const watch of this.#current.values()) watch.cancel();
    this.#recursive?.close();
    let ended = false;
    const all = Promise.allSettled(this.#work).then((results) => {
      ended = true;
      for (const result of results) {
        if (result.status === 'fulfilled') continue;
        this.#player.arena.findings.judge('errors', `${this.#player.name}: ${result.reason}`);
      }
    });
    await until(10_000, () => ended);
    if (ended) await all;
    return ended;
  }
}

function mzxidOf(truth: ReadonlyMap<string, Seen>, path: string): bigint {
  return truth.get(path)?.mzxid ?? 0n;
}
