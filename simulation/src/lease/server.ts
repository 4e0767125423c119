import type { LeaseRecord, Reading, SwapResult } from 'incumbent/testing';
import type { Owner } from '../harness/host.ts';
import type { World } from '../harness/world.ts';

/** One state of the record. */
export interface Commit {
  readonly version: number;
  readonly record: LeaseRecord | undefined;
  readonly atMs: number;
  readonly writer: Owner | undefined;
  /** The store's own clock at the commit. */
  readonly storeMs: number;
}

export interface ServerOptions {
  /** σ; undefined: this store does not tell the age of its record. */
  readonly clockStepMs: number | undefined;
  readonly clockRate: number;
  /** Says whenever it has lost something. */
  readonly tellsLives: boolean;
}

/** The store: one record, read and replaced atomically, and everything that ever stood in it. */
export class Server {
  readonly commits: Commit[];
  readonly options: ServerOptions;
  /** Told of every commit, before anybody else can read it. */
  onCommit: (commit: Commit, previous: Commit) => void = () => {};
  /** When its clock was last set forward. */
  steppedAtMs: number = Number.NEGATIVE_INFINITY;
  readonly #world: World;
  readonly #watchers = new Set<() => void>();
  #steppedMs = 0;
  #life = 1;
  /** By its own clock. */
  #lifeBeganMs = 0;

  constructor(world: World, options: ServerOptions) {
    this.#world = world;
    this.options = options;
    this.commits = [{ version: 0, record: undefined, atMs: 0, writer: undefined, storeMs: 0 }];
  }

  get current(): Commit {
    return this.commits.at(-1) as Commit;
  }

  read(): Reading {
    const { record, version, storeMs } = this.current;
    const { clockStepMs, tellsLives } = this.options;
    const knowsAge = clockStepMs !== undefined;
    const nowMs = this.#clockMs();
    return {
      record,
      version,
      ...(knowsAge ? { ageMs: nowMs - storeMs } : {}),
      ...(tellsLives ? { life: `life ${this.#life}` } : {}),
      ...(tellsLives && knowsAge ? { lifeAgeMs: nowMs - this.#lifeBeganMs } : {}),
    };
  }

  /** It has lost something. */
  beginLife(): void {
    this.#life += 1;
    this.#lifeBeganMs = this.#clockMs();
  }

  swap(expected: unknown, next: LeaseRecord | undefined, writer: Owner | undefined): SwapResult {
    const previous = this.current;
    if (expected !== previous.version) return { outcome: 'conflict' };
    const { nowMs } = this.#world;
    const version = previous.version + 1;
    const commit = { version, record: next, atMs: nowMs, writer, storeMs: this.#clockMs() };
    this.commits.push(commit);
    this.onCommit(commit, previous);
    for (const watcher of [...this.#watchers]) watcher();
    return { outcome: 'ok', version };
  }

  commit(version: number): Commit | undefined {
    return this.commits[version];
  }

  watch(onChange: () => void): () => void {
    this.#watchers.add(onChange);
    return () => this.#watchers.delete(onChange);
  }

  stepClock(ms: number): void {
    this.#steppedMs += ms;
    if (ms > 0) this.steppedAtMs = this.#world.nowMs;
  }

  #clockMs(): number {
    return this.#world.nowMs * this.options.clockRate + this.#steppedMs;
  }
}
