import { mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { Reaper } from './reaper.ts';

/** Where a run of the benchmarks keeps its files and its processes. */
export class Surroundings {
  readonly directory: string;
  readonly reaper: Reaper;
  #directories = 0;

  /** @param parent where the file store is to be: its file system is measured */
  constructor(parent: string) {
    this.directory = mkdtempSync(join(parent, 'incumbent-bench-'));
    this.reaper = new Reaper(this.directory);
  }

  /** A new and empty one. */
  newDirectory(): string {
    this.#directories += 1;
    const path = join(this.directory, String(this.#directories));
    mkdirSync(path);
    return path;
  }
}
