import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { toJson } from '../terminal/text.ts';
import { NamedPipe } from './named-pipe.ts';
import type { AnyShard } from './shard-form.ts';

/** A shard, as the program reads it. */
export interface ListedShard {
  readonly shard: AnyShard;
  /** A decimal text: it may be larger than a number of JSON. */
  readonly token: string;
  readonly since: string;
}

/**
 * The file that tells one program of its shards, and the pipe on which it says what it has done. Each
 * program has its own, so the words of an earlier one do not count.
 *
 * Each write has a version that rises. A program acknowledges a version when it works for no shard that
 * is missing there. So an acknowledgement counts for all earlier versions too.
 */
export class ShardListFile {
  readonly path: string;
  readonly #pipe: NamedPipe;
  readonly #name: string;
  readonly #shards = new Map<AnyShard, ListedShard>();
  readonly #waiting = new Set<{ readonly version: number; readonly resolve: () => void }>();
  #version = 0;
  /** The one that a program reads now. */
  #shown = 0;
  #acknowledged = 0;
  #last: Promise<unknown> = Promise.resolve();
  /** The write that has not begun. It will show all changes until then. */
  #next: Promise<number> | undefined;

  private constructor(name: string, pipe: NamedPipe) {
    this.#name = name;
    this.#pipe = pipe;
    this.path = join(pipe.directory, 'shards.json');
  }

  /**
   * @param name of the set of shards
   * @throws GuardError when it cannot be made
   */
  static async make(name: string): Promise<ShardListFile> {
    return new ShardListFile(
      name,
      await NamedPipe.make('acknowledge', new AbortController().signal),
    );
  }

  get pipePath(): string {
    return this.#pipe.path;
  }

  get size(): number {
    return this.#shards.size;
  }

  /** The version that the file shows, when the program has answered once and not acknowledged this one. */
  get news(): number | undefined {
    return this.#acknowledged > 0 && this.#acknowledged < this.#shown ? this.#shown : undefined;
  }

  add(shard: ListedShard): void {
    this.#shards.set(shard.shard, shard);
  }

  delete(shard: AnyShard): void {
    this.#shards.delete(shard);
  }

  /**
   * Shows the list as it is now.
   * @param onWritten called after the file was replaced, with what it shows
   * @returns the version that shows it
   */
  write(onWritten: (version: number, shards: number) => void): Promise<number> {
    if (this.#next !== undefined) return this.#next;
    const next = this.#last.then(async () => {
      this.#next = undefined;
      const version = this.#version + 1;
      const shards = [...this.#shards.values()];
      // Before the program can see it: its answer may be faster than that of the file system.
      this.#version = version;
      // Replaced as a whole: no reader sees half of it.
      await writeFile(`${this.path}.new`, `${toJson({ name: this.#name, version, shards })}\n`);
      await rename(`${this.path}.new`, this.path);
      this.#shown = version;
      onWritten(version, shards.length);
      return version;
    });
    this.#next = next;
    this.#last = next.catch(() => {});
    return next;
  }

  /** @param onLine called after each line, with the reason why it counts for nothing, if it does */
  listen(onLine: (problem?: string) => void): void {
    this.#pipe.read((text) => {
      const line = text.trim();
      const version = Number(line);
      const isVersion = /^\d{1,15}$/.test(line) && version <= this.#version;
      if (isVersion && version > this.#acknowledged) this.#acknowledge(version);
      onLine(isVersion ? undefined : `the newest version is ${this.#version}, not ${line}`);
    });
  }

  #acknowledge(version: number): void {
    this.#acknowledged = version;
    for (const one of this.#waiting) {
      if (one.version > version) continue;
      this.#waiting.delete(one);
      one.resolve();
    }
  }

  /** Resolves when the program has acknowledged that version, or a later one. */
  acknowledged(version: number): Promise<void> {
    if (this.#acknowledged >= version) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.add({ version, resolve });
    });
  }

  /** Removes file and pipe. Never rejects. */
  async remove(): Promise<void> {
    await this.#last;
    await this.#pipe.remove();
  }
}
