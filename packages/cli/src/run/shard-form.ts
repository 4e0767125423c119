import type { ShardTerm } from '@incumbent/shards';
import type { ForwardedSignal, ProgramExit } from '../guard/index.ts';

export type AnyShard = string | number;

/** How programs work for the shards of this process. */
export interface ShardForm {
  /**
   * The work for one shard. Settles when no program works for it any more, whatever that takes: then
   * another process may.
   */
  own(shard: AnyShard, term: ShardTerm<AnyShard>): Promise<void>;
  /** The one program came to its own end. Never settles where each shard has a program. */
  readonly finished: Promise<ProgramExit>;
  /** The process leaves: no program is begun any more. */
  leave(): void;
  /** Passes a signal on to all programs. */
  signal(name: ForwardedSignal): void;
  /**
   * Called after all work has settled. Resolves when no program is left. Never rejects.
   * @returns how the one program came to its end
   */
  close(): Promise<ProgramExit | undefined>;
}
