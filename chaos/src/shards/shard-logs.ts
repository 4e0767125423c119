import { join } from 'node:path';
import type { TermActivity, Violation } from '@incumbent/cli/trial';
import { FencedLog } from '@incumbent/cli/trial';
import type { Judged } from '../harness/verdict.ts';

/** A fenced log for each shard, with a judge of its own. Made before the first process starts. */
export class ShardLogs implements Judged {
  readonly #logs: readonly FencedLog[];

  constructor(directory: string, shards: number) {
    this.#logs = Array.from(
      { length: shards },
      (_none, shard) => new FencedLog(join(directory, `shard-${shard}.log`)),
    );
  }

  get paths(): readonly string[] {
    return this.#logs.map(({ path }) => path);
  }

  /** Of each shard the term with the highest token. */
  get newest(): readonly (TermActivity | undefined)[] {
    return this.#logs.map(({ judge }) => judge.newest);
  }

  get effects(): number {
    return this.#logs.reduce((sum, { judge }) => sum + judge.effects, 0);
  }

  get terms(): readonly TermActivity[] {
    return this.#logs.flatMap(({ judge }) => judge.terms);
  }

  overlaps(): ReturnType<Judged['overlaps']> {
    return this.#logs.flatMap(({ judge }) => judge.overlaps());
  }

  violations(): readonly Violation[] {
    return this.#logs.flatMap(({ judge }, shard) =>
      judge.violations().map(({ guarantee, message, key }) => ({
        guarantee,
        message: `shard ${shard}: ${message}`,
        key: `${shard} ${key}`,
      })),
    );
  }

  read(): void {
    for (const log of this.#logs) log.read();
  }

  close(): void {
    for (const log of this.#logs) log.close();
  }
}
