import type { Dataset } from './dataset.ts';

/** Where in which history a data file ends: `repl-id` and `repl-offset` of an RDB file. */
export interface Position {
  readonly replId: string;
  readonly offset: number;
}

/** A file `dump.rdb`, or what a primary sends in its place. */
export interface Rdb {
  readonly data: Dataset;
  /** Absent in one that a node wrote that had no backlog, or no primary (`rdbPopulateSaveInfo` of rdb.c). */
  readonly position: Position | undefined;
}

/** The data directory of a node. It outlives its process. */
export interface Disk {
  rdb: Rdb | undefined;
  /** `appendonlydir`. It knows no position: a start from it begins a new history. */
  aof: Dataset | undefined;
}
