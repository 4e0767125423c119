/**
 * The place in a queue: candidates line up, the first one leads, and each other watches only the
 * place before its own. That is ZooKeeper's recipe, and that of etcd's concurrency package. This
 * code closes the gaps of the recipe. A term is believed in only from confirmations that the
 * store's quorum has committed. And the successor of a leader that ended unclean waits until that
 * leader's belief is over. The proof is in docs/design/queue.md.
 */

import type { CandidateInfo } from '../../base/candidate.ts';
import type { Candidacy, Contest, Seat, WaitMode } from '../../core/contest.ts';
import { contend } from '../contend.ts';
import { QueueContender } from './contender.ts';
import { QueueMemory } from './memory.ts';
import type { QueueParts } from './settings.ts';

export class Queue<Guard> implements Contest<Guard> {
  /**
   * A candidate that enters again is behind the others anyway. This gives a chance to those that
   * enter just now.
   */
  readonly standAsideMs = 1_000;
  readonly #parts: QueueParts<Guard>;
  #candidate: CandidateInfo;
  readonly #memory: QueueMemory;

  constructor(parts: QueueParts<Guard>, candidate: CandidateInfo) {
    this.#parts = parts;
    this.#candidate = candidate;
    this.#memory = new QueueMemory(parts);
  }

  present(candidate: CandidateInfo): void {
    this.#candidate = candidate;
  }

  /** A session proves no death: it may outlive its process, and end before it. */
  async describe(): Promise<undefined> {
    return undefined;
  }

  campaign(
    candidacy: Candidacy,
    waitMode: WaitMode,
    signal: AbortSignal,
  ): Promise<Seat<Guard> | undefined> {
    const contender = new QueueContender(this.#parts, this.#memory, {
      candidate: this.#candidate,
      candidacy,
      once: waitMode !== 'wait',
      signal,
    });
    return contend(contender, candidacy, this.#parts.scope, signal);
  }
}
