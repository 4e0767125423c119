import type { Scheduler } from './scheduler.ts';
import { randomHexId } from './scheduler.ts';

export const noId: string = '0'.repeat(40);

/** Which story of writes a node tells, and how far: `server.replid` and what belongs to it. */
export class History {
  readonly #scheduler: Scheduler;
  replId: string;
  /** The story before this one, with `secondOffset`. */
  replId2: string = noId;
  /** The first byte that is not in the story of `replId2` any more; -1 without one. */
  secondOffset = -1;
  /** `master_repl_offset`. */
  offset = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
    this.replId = randomHexId(scheduler);
  }

  /** `changeReplicationId`, `clearReplicationId2`: nobody can go on from what was. */
  begin(): void {
    this.replId = randomHexId(this.#scheduler);
    this.forget();
  }

  forget(): void {
    this.replId2 = noId;
    this.secondOffset = -1;
  }

  /** `shiftReplicationId`: a replica becomes a primary, and goes on from what it has. */
  fork(): void {
    this.replId2 = this.replId;
    this.secondOffset = this.offset + 1;
    this.replId = randomHexId(this.#scheduler);
  }
}
